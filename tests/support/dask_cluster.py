"""A real Dask cluster: a scheduler and worker processes of this machine."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from patience import eventually


def written_address(file):
    try:
        return json.loads(file.read_text())["address"]
    except (FileNotFoundError, json.JSONDecodeError):
        return None


@contextmanager
def cluster(directory, workers, **environment):
    """A Dask scheduler with worker processes; gives its address."""
    file = directory / f"{workers}.json"
    common = ("--scheduler-file", str(file))

    def start(command, *options, **more):
        with Path(directory / f"{command}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{command}", *common, *options],
                stdout=log, stderr=log, cwd=directory, env={**os.environ, **more},
            )  # fmt: skip

    processes = [
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    ]  # fmt: skip
    try:
        eventually(lambda: written_address(file), seconds=60)
        processes += [
            start("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", **environment)
            for _ in range(workers)
        ]
        yield written_address(file)
    finally:
        for process in processes:
            process.kill()
            process.wait()
