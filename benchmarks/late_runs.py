"""Measures what others wait while runs that ended long ago are reported.

    .venv/bin/python benchmarks/late_runs.py [--late 100000] [--hours-late 168] [--per-second 50]

A service with 30,000 runs gets 100,000 more, in batches of 1,000, that ended within some hours
before its newest run: those of a forwarder after an outage, of `reconcile`, of `import` beside a
running service. Others ask for predictions meanwhile, at fixed times. Printed are what they wait
without and with late runs, and in what time batches are answered.
"""

import argparse
import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from threading import Thread

import msgspec
from harness import (
    HISTORY,
    SECONDS_BETWEEN_ENDS,
    START,
    Times,
    closed_loop,
    open_loop,
    post,
    prepared,
    requests,
    run_that_ends,
    the_service,
)
from ingesting import reported

from predictors.jobs import Completion

BATCH = 1_000
LONGEST = 600.0
"""Most seconds of a measurement."""


def late_runs(runs: int, hours: float) -> Iterator[Completion]:
    """Yield runs of the cluster that ended within some hours before its newest run."""
    chance = Random(7)  # noqa: S311 - no secrets here
    newest = START + HISTORY * SECONDS_BETWEEN_ENDS
    for job in range(runs):
        yield run_that_ends(chance, f"late{job}", newest - 3600.0 * hours * chance.random())


def batches(runs: int, hours: float, token: str) -> list[bytes]:
    """Return requests that report runs, BATCH at a time."""
    found, batch = [], []
    for run in late_runs(runs, hours):
        batch.append(reported(run))
        if len(batch) == BATCH:
            body = msgspec.json.encode({"completions": batch})
            found.append(post("/v1/completions", body, token=token))
            batch = []
    return found


def said(name: str, times: Times) -> str:
    """Return a line about times of answers."""
    p50, p99, most = (times.percentile(each) for each in (50, 99, 100))
    return f"{name:<34}{len(times.seconds):>8,}{p50:>9.3f}{p99:>9.3f}{most:>9.3f}"


def measure(file: Path, options: argparse.Namespace) -> None:
    """Measure and print."""
    token = prepared(file, HISTORY)
    todo = requests(2000, HISTORY, token)
    late = batches(options.late, options.hours_late, token)
    with the_service(file, pinned=False) as service:

        def others(seconds: float) -> Times:
            return open_loop(
                service.address, cycle(todo), per_second=options.per_second, seconds=seconds,
                going_on=lambda: seconds < LONGEST or poster.is_alive(),
            )  # fmt: skip

        posted: list[Times] = []
        poster = Thread(
            target=lambda: posted.append(closed_loop(service.address, late, connections=1))
        )
        others(2.0)
        before = others(10.0)
        poster.start()
        beside = others(LONGEST)
        poster.join()
    print(f"{'seconds':<34}{'answers':>8}{'p50':>9}{'p99':>9}{'most':>9}")
    print(said("predictions, without late runs", before))
    print(said(f"beside {options.late:,} late runs", beside))
    print(said(f"batches of {BATCH:,} late runs", posted[0]))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--late", type=int, default=100_000)
    parser.add_argument("--hours-late", type=float, default=168.0)
    parser.add_argument("--per-second", type=float, default=50.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        measure(Path(directory) / "history.sqlite3", options)


if __name__ == "__main__":
    main()
