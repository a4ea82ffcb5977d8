"""Measures memory and time of a verdict on a whole log, over all its processes.

    PYTHONPATH=benchmarks .venv/bin/python research/verdict_memory.py [--jobs 1000000] [--goal 1500]

A log is made by `walltimed synth`, and `walltimed backtest` plays it. Twice a second the
proportional set sizes of the command and of all that it has started are added up: memory that
processes share counts once. Time is that of all processors, which hardly depends on who else is
running, and on the clock, which does.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import family, megabytes

WALLTIMED = Path(sys.executable).with_name("walltimed")
SYNTH = ("--processors", "4096", "--users", "2000", "--load", "0.8")
SECONDS_BETWEEN_SAMPLES = 0.5


def peak_of(command: list[str], directory: Path) -> tuple[float, int, str]:
    """The most megabytes that a command holds, in how many processes, and what it prints."""
    with (directory / "printed").open("w+") as printed:
        process = subprocess.Popen(command, cwd=directory, stdout=printed)
        peak = (0.0, 0)
        while process.poll() is None:
            members = list(family(process.pid))
            peak = max(peak, (sum(map(megabytes, members)), len(members)))
            time.sleep(SECONDS_BETWEEN_SAMPLES)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        printed.seek(0)
        return *peak, printed.read()


def processor_seconds() -> float:
    """Processor time of all ended child processes, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--goal", type=float, default=1500.0, help="megabytes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        log = directory / "log.swf.gz"
        making = ["synth", "--jobs", str(options.jobs), *SYNTH, "--output", str(log)]
        subprocess.run([str(WALLTIMED), *making], check=True, stdout=subprocess.DEVNULL)
        print(f"synth: {processor_seconds():.0f} s of processor time")
        before, began = processor_seconds(), time.perf_counter()
        peak, processes, printed = peak_of([str(WALLTIMED), "backtest", log.name], directory)
        used, passed = processor_seconds() - before, time.perf_counter() - began
    print(printed)
    print(f"{options.jobs:,} jobs on {len(os.sched_getaffinity(0))} cores:")
    print(f"processor time {used:.0f} s, {passed / 60:.1f} minutes by the clock")
    verdict = "reached" if peak <= options.goal else "missed"
    print(
        f"most memory {peak:.0f} MB in {processes} processes; goal {options.goal:.0f} MB {verdict}"
    )


if __name__ == "__main__":
    main()
