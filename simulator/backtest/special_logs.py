"""Findings on unusual logs, which decide or limit a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from simulator.backtest.believability import Believability, Quality
from simulator.backtest.plays import Play
from simulator.backtest.site import BacktestSite
from simulator.scheduling.workload import Workload
from terminal.words import counted, duration, share

BacktestVerdict = Literal[
    "turn-on", "observe", "not-worth-it", "indication", "too-little-data", "order-cannot-act"
]

FEWEST_JOBS = 300
"""Fewest jobs for a verdict."""

NO_QUEUE_SHARE = 0.01
"""If fewer jobs than this share wait longer than a minute, there is no queue."""

NO_QUEUE_WAIT = 30.0
"""If jobs wait less on average, in seconds, there is no queue."""

RIGHT_USAGE, RIGHT_SHARE = 0.95, 0.95
"""Requests are right already if at least RIGHT_SHARE of the jobs use RIGHT_USAGE of theirs."""


@dataclass(frozen=True, slots=True)
class SpecialLog:
    """Finding on an unusual log.

    Attributes:
        sentence: the unusual property, and its consequence.
        verdict: verdict of the finding alone; None if it only limits or explains.
    """

    sentence: str
    verdict: BacktestVerdict | None = None


def unusual(site: BacktestSite, today: Sequence[Play], believed: Believability) -> list[SpecialLog]:
    """List the unusual properties of a log; the first one with a verdict decides."""
    workloads = [workload for workload in site.workloads() if len(workload)]
    found = (
        few_jobs(today[0].jobs),
        no_queue(today, believed),
        right_requests(workloads),
        one_user(site),
    )
    return [each for each in found if each is not None]


def few_jobs(jobs: int) -> SpecialLog | None:
    """Return the finding that the log has too few jobs."""
    if jobs >= FEWEST_JOBS:
        return None
    return SpecialLog(
        f"The log has {counted(jobs, 'job')} that can be simulated; at least {FEWEST_JOBS} are "
        "needed to say anything, and some months of jobs to say it well.",
        "too-little-data",
    )


def no_queue(today: Sequence[Play], believed: Believability) -> SpecialLog | None:
    """Return the finding that jobs hardly wait, in the simulation or at all."""
    mean = float(np.mean([play.wait for play in today]))
    waiting = float(np.mean([play.waiting for play in today]))
    if mean >= NO_QUEUE_WAIT and waiting >= NO_QUEUE_SHARE:
        return None
    if believed.quality is Quality.POOR:
        return SpecialLog(
            f"On the simulated machine nobody waits, but in the log jobs waited "
            f"{duration(believed.logged_mean)} on average: what they waited for is not in the "
            "model, so it cannot say what predictions would gain.",
            "too-little-data",
        )
    return SpecialLog(
        f"Nobody waits on this machine: {share(1 - waiting)} of the jobs start within a minute. "
        "There is nothing to gain from the schedule.",
        "not-worth-it",
    )


def right_requests(workloads: Sequence[Workload]) -> SpecialLog | None:
    """Return the finding that nearly all requests equal the runtimes."""
    usage = np.concatenate([each.runtime / each.request for each in workloads])
    right = float(np.mean(usage >= RIGHT_USAGE))
    if right < RIGHT_SHARE:
        return None
    return SpecialLog(
        f"Users' requests are right already: {share(right)} of the jobs use at least "
        f"{RIGHT_USAGE:.0%} of the time they ask for. There is nothing to predict better.",
        "not-worth-it",
    )


def one_user(site: BacktestSite) -> SpecialLog | None:
    """Return the finding that the log has one user, or names no users."""
    users = np.unique(site.trace.user)
    if len(users) > 1:
        return None
    if len(users) and users[0] >= 0:
        return SpecialLog(
            "All jobs of the log belong to one user: what is said here is true for this user "
            "alone, and nobody can be compared with anybody."
        )
    return SpecialLog(
        "The log does not name users: most methods learn from the runs of each user and can show "
        "little here."
    )
