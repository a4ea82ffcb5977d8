"""Measures predictions over HTTP beside rounds of tuning that learn a forest.

    .venv/bin/python benchmarks/tuning_load.py [--rounds 7] [--seconds 8]

The service as it is shipped, on a history of 30,000 completions, answers 500 predictions a second
(open loop); in turn there is no round, and one round after the other, of all subjects. The rounds'
process shares the service's core, as it does where every core is busy; the load comes from the
other one.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Event, Thread

from harness import CLUSTER, SERVER_CORE, options_of, p99_ratio

from service.worker.processes import give_way

MOST = 1.3
"""How many times p99 without rounds the one with rounds may be."""


def tune_until(stop: Event, file: Path, ended: list[float]) -> None:
    """Run one round after the other, the last to its end; notes how long each took."""
    url = f"sqlite:///{file}"
    command = ("-m", "service.cli", "tune", "--cluster", CLUSTER, "--database-url", url)
    while not stop.is_set():
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
        os.sched_setaffinity(process.pid, {SERVER_CORE})
        give_way(process.pid)
        process.wait()
        ended.append(time.perf_counter() - began)


@contextmanager
def rounds(file: Path, ended: list[float]) -> Iterator[None]:
    """Rounds run meanwhile."""
    stop = Event()
    thread = Thread(target=tune_until, args=(stop, file, ended))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def main() -> None:
    """Measure both sides in turn."""
    options = options_of(__doc__, rounds=7, seconds=8.0)
    os.environ["WALLTIMED_TUNING"] = "off"
    ended: list[float] = []
    ratio = p99_ratio(lambda file: rounds(file, ended), options, name="rounds")
    print(f"; {len(ended)} rounds, {median(ended):.1f} s each beside the load")
    if ratio > MOST:
        raise SystemExit(f"p99 beside a round should be at most {MOST} times p99 without.")


if __name__ == "__main__":
    main()
