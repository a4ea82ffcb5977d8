"""Measures what users gain, and others lose, who name 24-hour jobs like their short ones.

    .venv/bin/python research/gamed_order.py LOG...

The last 3,000 jobs of each log are played by the twin of Slurm, in the order by the ratio of wait
and mean runtime. Of the users with most short jobs 1, 5 or 20 turn every tenth of these into a job
of 24 hours, which has a name of its own, or the name of the short ones. The method knows the 7,000
jobs before them, and all that ended by the log's own times. With the bound ``ratio`` the mean
runtime is multiplied by the user's recent ratio of actual to predicted runtimes, if that is more
than 1. With the bound ``name`` a run of more than twice its prediction has the next jobs of its
user and name ordered by their requests.
"""

import argparse
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ladder import NODES, log_name
from numpy.typing import NDArray
from order_weeks import at_places

from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, play_jobs
from simulator.reports.tables import text_table
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.measures import bounded_slowdown
from simulator.scheduling.ratio_rules import RESPONSE_RATIO, RatioRules
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import Schedule, simulate
from simulator.scheduling.workload import prepare
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf
from simulator.traces.trace import Integers, Trace

PLAYED, HISTORY = 3_000, 7_000
"""Number of a log's last jobs that are played, and of those before them that are learned."""

DAY, SHORT = 86_400, 3_600.0
"""Seconds of a long job, and of the longest short one."""

EVERY = 10
"""One of so many short jobs becomes a long one."""

GAMERS = (1, 5, 20)
OWN_NAME, LONG_NAME = 900_001, 900_002
"""Names of a gamer's short jobs, and of the long ones of a user who does not pretend."""

RECENT = 16
"""Number of a user's last runs whose actual and predicted runtimes are compared; of the bound by
name of those of the user and the name."""

BOUNDS = ("no", "ratio", "name")
OUTLIVED = 2.0
"""Ratio of actual to predicted runtime above which a name loses its head start."""

Flags = NDArray[np.bool_]


class Played(NamedTuple):
    """Mean waits in hours, and mean bounded slowdowns of others."""

    long: float
    short: float
    others: float
    slowdown: float


def gamed(trace: Trace, gamers: int, *, pretend: bool) -> tuple[Trace, Flags, Flags]:
    """Return a log with long jobs of some users; which jobs are theirs, and which are long."""
    is_played = np.arange(len(trace)) >= len(trace) - PLAYED
    users, runs = np.unique(trace.user[is_played & (trace.run < SHORT)], return_counts=True)
    chosen = users[np.argsort(-runs, kind="stable")[:gamers]]
    theirs = np.isin(trace.user, chosen)
    short = np.flatnonzero(theirs & is_played & (trace.run < SHORT))
    long = np.zeros(len(trace), np.bool_)
    long[short[::EVERY]] = True
    names = np.where(theirs, OWN_NAME, trace.executable)
    if not pretend:
        names[long] = LONG_NAME
    changed = replace(
        trace,
        run=np.where(long, float(DAY), trace.run),
        requested_time=np.where(long, float(DAY), trace.requested_time),
        executable=names,
    )
    return changed, theirs & is_played, long


def lengths_of(trace: Trace, method: str, bound: str) -> Integers:
    """Ask a method for the mean runtime of each job at its submission, and bound it."""
    runs = list(completions(trace))
    player = InProcess({method: MethodSpec.parse(method).predictor()})
    found, lengths = np.ones(len(runs)), np.ones(len(runs))
    recent = defaultdict[tuple[str | None, ...], deque[tuple[float, float]]](
        partial(deque, maxlen=RECENT)
    )

    def own(job: int) -> deque[tuple[float, float]]:
        submission = runs[job].submission
        name = submission.application if bound == "name" else None
        return recent[submission.user, name]

    def ask(job: int) -> None:
        (answer,) = player.ask(method, [runs[job].submission])
        found[job] = answer.predicted_walltime if answer.mean is None else answer.mean
        longer = found[job] * factor_of(own(job), bound)
        lengths[job] = min(runs[job].submission.requested_walltime, longer)

    def ended(job: int) -> None:
        player.observe([runs[job]])
        own(job).append((runs[job].runtime, found[job]))

    play_jobs(runs, ended=ended, submitted=ask)
    return np.maximum(1.0, lengths).astype(np.int64)


def factor_of(recent: Sequence[tuple[float, float]], bound: str) -> float:
    """Return by how much a length grows after some actual and predicted runtimes."""
    if bound == "no" or not recent:
        return 1.0
    if bound == "name":
        return inf if any(each > OUTLIVED * predicted for each, predicted in recent) else 1.0
    actual, predicted = np.sum(recent, axis=0)
    return max(1.0, float(actual / max(1.0, predicted)))


def play(trace: Trace, lengths: Integers, cores: int | None) -> Schedule:
    """Play the last jobs of a log in the order by the given lengths."""
    last = trace.select(np.arange(len(trace)) >= len(trace) - PLAYED)
    workload = prepare(last, cores_per_node=cores)
    places = np.searchsorted(trace.line, workload.trace.line)
    estimates = Estimates("mean", known=partial(at_places, lengths, places))
    rules = Semantics(
        policy="slurm",
        order=RESPONSE_RATIO,
        estimated_backfilling=False,
        estimated_running=False,
        ratio=RatioRules(),
    )
    return simulate(workload, rules, estimates)


def measured(schedule: Schedule, trace: Trace, theirs: Flags, long: Flags) -> Played:
    """Measure a schedule."""
    workload = schedule.workload
    places = np.searchsorted(trace.line, workload.trace.line)
    wait = schedule.wait / 3600.0
    is_long, is_short, others = long[places], (theirs & ~long)[places], ~theirs[places]
    slowdowns = bounded_slowdown(schedule.wait, workload.runtime)
    return Played(
        float(wait[is_long].mean()),
        float(wait[is_short].mean()),
        float(wait[others].mean()),
        float(slowdowns[others].mean()),
    )


def rows(path: Path, method: str, bounds: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row for each number of users, names and bound."""
    whole = prepare(read_swf(str(path))).trace
    whole = whole.select(np.arange(len(whole)) >= len(whole) - PLAYED - HISTORY)
    cores = next((each for name, each in NODES.items() if path.name.startswith(name)), None)
    for gamers in GAMERS:
        for bound in bounds:
            for pretend in (False, True):
                trace, theirs, long = gamed(whole, gamers, pretend=pretend)
                lengths = lengths_of(trace, method, bound)
                found = measured(play(trace, lengths, cores), trace, theirs, long)
                yield [
                    log_name(path),
                    str(gamers),
                    f"{long.sum()}",
                    bound,
                    "their short jobs'" if pretend else "its own",
                    *(f"{each:.1f}" for each in found),
                ]


HEADS = (
    "log", "users", "long jobs", "bound", "name", "long wait h", "short wait h", "others h",
    "others' slowdown",
)  # fmt: skip


def main() -> None:
    """Play the logs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument("--method", default="attention")
    parser.add_argument("--bound", nargs="*", default=BOUNDS, choices=BOUNDS)
    given = parser.parse_args()
    found = [row for path in given.logs for row in rows(path, given.method, given.bound)]
    print(text_table(HEADS, found))


if __name__ == "__main__":
    main()
