"""What the submit filter adds to sbatch on a real Slurm, and what a hung service does to others.

    .venv/bin/python benchmarks/slurm_submit.py

Submissions with and without the filter take turns, so that both meet the same machine.
"""

import argparse
import signal
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from private_slurm import reason_to_skip
from slurm_site import SlurmSite

HELD = ("-H", "-t", "5", "-J", "bench")
UPDATE = ("scontrol", "update", "PartitionName=long", "MaxTime=UNLIMITED")
OPTED_OUT = (*HELD, "--comment", "walltimed=off")


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def percentile(values: list[float], share: float) -> float:
    """In milliseconds."""
    return statistics.quantiles(values, n=100, method="inclusive")[int(share * 100) - 1] * 1e3


def compare(site: SlurmSite, rounds: int) -> None:
    """Time sbatch for jobs that are asked about and jobs that opted out."""
    times: dict[tuple[str, ...], list[float]] = {HELD: [], OPTED_OUT: []}
    for _ in range(rounds):
        for arguments, taken in times.items():
            taken.append(seconds(lambda arguments=arguments: site.slurm.sbatch(*arguments)))
    print(f"{rounds} submissions each, ms      p50     p99")
    for name, taken in (("without a prediction", OPTED_OUT), ("with a prediction", HELD)):
        p50, p99 = percentile(times[taken], 0.5), percentile(times[taken], 0.99)
        print(f"{name:28} {p50:7.1f} {p99:7.1f}")


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
    with SlurmSite(mode="observe") as site:
        print(f"Slurm {site.slurm.version}")
        compare(site, options.rounds)
        hang(site, options.submissions)


if __name__ == "__main__":
    main()
