"""Measures sbatch with the plug-ins on a real Slurm, also while the service hangs.

    .venv/bin/python benchmarks/slurm_submit.py

Three private clusters: one without any plug-in, one with job_submit.lua, one with cli_filter.lua.
Submissions to them take turns, so that all meet the same machine.
"""

import argparse
import signal
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from private_slurm import PrivateSlurm, reason_to_skip
from slurm_site import SlurmSite

HELD = ("-H", "-t", "5", "-J", "bench")
UPDATE = ("scontrol", "update", "PartitionName=long", "MaxTime=UNLIMITED")
NOWHERE = "http://127.0.0.1:9/"
WITHOUT_PLUGINS = {"JobSubmitPlugins": None, "CliFilterPlugins": None}
OPTED_OUT = (*HELD, "--comment", "walltimed=off")


def seconds(call: Callable[[], object]) -> float:
    """Duration of a call in seconds."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def percentile(values: list[float], share: float) -> float:
    """In milliseconds."""
    return statistics.quantiles(values, n=100, method="inclusive")[int(share * 100) - 1] * 1e3


def compare(ways: Mapping[str, Callable[[], object]], rounds: int) -> None:
    """Time every way to submit a job, in turns; the first is what the others are held against."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, submit in ways.items():
            times[name].append(seconds(submit))
    print(f"{f'{rounds} submissions each, ms':40}     p50   added     p99   added")
    base: list[float] = []
    for name, taken in times.items():
        found = [percentile(taken, share) for share in (0.5, 0.99)]
        base = base or found
        cells = [
            f"{value:8.1f}{value - first:8.1f}" for value, first in zip(found, base, strict=True)
        ]
        print(f"{name:40}{''.join(cells)}")


def hang(site: SlurmSite, submissions: int) -> None:
    """Time other commands while many submit to a service that hangs."""
    site.process.send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(submissions) as pool:
        jobs = [pool.submit(seconds, lambda: site.slurm.sbatch(*HELD)) for _ in range(submissions)]
        others = []
        while not all(job.done() for job in jobs):
            others.append(seconds(lambda: site.slurm.run(*UPDATE)))
    site.process.send_signal(signal.SIGCONT)
    slowest = max(job.result() for job in jobs)
    print(f"hung service, {submissions} at once: slowest sbatch {slowest:.2f} s, ", end="")
    print(f"slowest scontrol update meanwhile {max(others):.2f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--submissions", type=int, default=20)
    options = parser.parse_args()
    if reason := reason_to_skip():
        sys.exit(reason)
    with ExitStack() as stack:
        filtered = SlurmSite(mode="observe", slurm_settings={"CliFilterPlugins": None})
        site = stack.enter_context(filtered)
        plain = stack.enter_context(PrivateSlurm([], NOWHERE, settings=WITHOUT_PLUGINS))
        only_advised = {"JobSubmitPlugins": None}
        advised = stack.enter_context(PrivateSlurm(site.scripts, NOWHERE, settings=only_advised))
        print(f"Slurm {site.slurm.version}")
        ways = {
            "no plug-in": lambda: plain.sbatch(*HELD),
            "job_submit.lua, a job that opted out": lambda: site.slurm.sbatch(*OPTED_OUT),
            "job_submit.lua, with a prediction": lambda: site.slurm.sbatch(*HELD),
            "cli_filter.lua, with advice": lambda: advised.sbatch(*HELD),
        }
        compare(ways, options.rounds)
        hang(site, options.submissions)


if __name__ == "__main__":
    main()
