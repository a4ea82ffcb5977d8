"""Measures the memory and the time of commands that read a long log of sacct.

    .venv/bin/python benchmarks/importing.py [--rows 1000000] [import replay backtest]

Each command is a process of its own, of which the largest resident memory is printed. The rows have
the columns that docs/slurm.md names.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from random import Random

MOST_MEGABYTES = 300
"""Of an import, and of its dry run."""

WALLTIMED = Path(sys.executable).with_name("walltimed")
COLUMNS = (
    "JobIDRaw|JobID|Cluster|User|Group|Account|Partition|JobName|Submit|Start|End|ElapsedRaw|"
    "TimelimitRaw|NNodes|ReqNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|State|SubmitLine|"
    "AdminComment|NodeList"
).replace("|", "\x1f")
FIRST = 1_700_000_000

COMMANDS = {
    "dry run": ("import", "--dry-run"),
    "import": ("import", "-d", "sqlite:///history.sqlite3"),
    "replay": ("replay", "--in-process", "--method", "max-usage"),
    "simulate": ("simulate", "--method", "max-usage", "--policy", "easy"),
    "backtest": ("backtest", "--method", "max-usage"),
}


def rows(seed: int = 1) -> Iterator[str]:
    """Yield the rows of a busy cluster of 2,000 users, without end."""
    random = Random(seed)  # noqa: S311  no secret
    submit = FIRST
    for job in count(1):
        submit += random.randrange(60)
        user, program = random.randrange(2000), random.randrange(8)
        wait, limit = random.randrange(3600), random.choice((30, 60, 240, 1440))
        ran = max(1, int(60 * limit * random.betavariate(1 + program, 6)))
        cores = 2 ** random.randrange(8)
        nodes = max(1, cores // 64)
        start = submit + wait
        asked = f"cpu={cores},mem={2 * cores}G,node={nodes},billing={cores}"
        cells = (
            job, job, "hill", f"user{user}", f"group{user % 50}", f"proj{user % 200}",
            ("batch", "long", "gpu")[program % 3], f"program-{user % 300}-{program}", submit, start,
            start + ran, ran, limit, nodes, nodes, cores, cores, f"{2 * cores}G", asked, asked,
            "COMPLETED", f"sbatch -t {limit} -n {cores} job{program}.sh", "", f"n[{job % 500}]",
        )  # fmt: skip
        yield "\x1f".join(map(str, cells))


def write_log(file: Path, number: int) -> None:
    """Write a log of sacct."""
    with file.open("w") as log:
        log.write(f"{COLUMNS}\n")
        log.writelines(f"{row}\n" for row in islice(rows(), number))


def run(name: str, directory: Path) -> tuple[float, float]:
    """Run a command on the log; return the seconds and the MB that it took."""
    command = [str(WALLTIMED), *COMMANDS[name], "history.txt", "--quiet"]
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} ended with {process.returncode}.")
    return time.perf_counter() - began, used.ru_maxrss * 1024 / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("commands", nargs="*", default=["dry run", "import"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "history.txt"
        write_log(log, options.rows)
        print(f"{options.rows:,} rows of sacct, {log.stat().st_size / 1e6:,.0f} MB", flush=True)
        for name in options.commands:
            seconds, megabytes = run(name, Path(directory))
            goal = f", goal {MOST_MEGABYTES}" if "import" in COMMANDS[name] else ""
            print(f"{name:10} {seconds:6.0f} s {megabytes:6.0f} MB{goal}", flush=True)


if __name__ == "__main__":
    main()
