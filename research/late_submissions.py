"""Count the told starts that a submission would move, known before the next hand-over.

A twin of Slurm plays a log in the order of submission, or of requests. At submissions drawn at
random the queue is forecast twice, without and with the new job, with the runtimes that came.
Counted are the waiting jobs whose start moves.
"""

import sys
from dataclasses import replace as with_fields
from pathlib import Path
from random import Random
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from played_logs import Traces, log_parts, run_script

from simulator.cli.options import Distributed, Processes
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.forecast import Snapshot, forecast
from simulator.scheduling.parallel import in_parallel
from simulator.scheduling.semantics import SLURM, Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import usable_workload
from simulator.traces.trace import Integers
from terminal.console import out
from terminal.options import Limit

sys.path.insert(0, str(Path(__file__).parent / "fast_motion"))
from starts_in_twin import BY_LIMITS, Site

Flags = NDArray[np.bool_]

AGE = 30.0
"""Mean age of a queue that is handed over once a minute, in seconds."""

MOVED = 60
"""Seconds that a start moves at least to be counted."""


class Case(NamedTuple):
    """A log, the order of its queue, and the number of submissions that are looked at."""

    trace: str
    limit: int | None
    order: str
    count: int


class Moves(NamedTuple):
    """The starts that moved, in seconds, and submissions in a second of the log's time."""

    seconds: Integers
    per_second: float


def moves_of(case: Case) -> Moves:
    """Return by how much each start of a waiting job moved with each new job."""
    workload = usable_workload(case.trace, case.limit)
    rules = with_fields(BY_LIMITS, order=case.order)
    truth = simulate(workload, with_fields(rules, policy=SLURM), Estimates.named(REQUESTED))
    site = Site(workload, truth, EXACT)
    found: list[Integers] = []
    for row in Random(0).sample(range(len(workload)), case.count):  # noqa: S311 - repeatable
        queue = site.queue(int(workload.submit[row]))
        found.append(moves_by(queue.shown, queue.running == row, queue.waiting == row, rules))
    seconds = float(workload.submit[-1] - workload.submit[0])
    every = np.concatenate([np.empty(0, np.int64), *found])
    return Moves(every, len(workload) / seconds)


def moves_by(shown: Snapshot, runs: Flags, waits: Flags, rules: Semantics) -> Integers:
    """Return the seconds by which a new job, which runs or waits, moves those that wait."""
    new = shown.running.take(np.flatnonzero(runs)) + shown.waiting.take(np.flatnonzero(waits))
    others = shown.waiting.take(np.flatnonzero(~waits))
    without = with_fields(shown, running=shown.running.take(np.flatnonzero(~runs)), waiting=others)
    with_new = with_fields(without, waiting=others + new)
    before, after = (forecast(each, rules).start for each in (without, with_new))
    return np.abs(after[: len(others)] - before)


def main(  # noqa: PLR0913 - options of a command
    traces: Traces,
    *,
    order: Annotated[str, typer.Option(help="fcfs or sjf, shortest request first.")] = "fcfs",
    count: Annotated[int, typer.Option(min=1, help="Submissions that are looked at.")] = 500,
    limit: Limit = None,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Count the starts that move with each new job.

    For example: python research/late_submissions.py *.swf.gz --limit 15000 --order sjf
    """
    cases = [Case(part.trace, limit, order, count) for part in log_parts(traces, limit)]
    played = in_parallel(moves_of, cases, processes=processes, distributed=distributed)
    for case, moves in zip(cases, played, strict=True):
        moved, far = (float(np.mean(moves.seconds > each)) for each in (MOVED, 10 * MOVED))
        share = moved * AGE * moves.per_second
        out.print(
            f"{Path(case.trace).name}, {order}: {len(moves.seconds)} starts, {moved:.1%} move by "
            f"more than a minute, {far:.1%} by more than ten; a submission comes every "
            f"{1 / moves.per_second / 60:.0f} min: {share:.2%} of the starts at any time",
            markup=False, soft_wrap=True, highlight=False,
        )  # fmt: skip


if __name__ == "__main__":
    run_script(main)
