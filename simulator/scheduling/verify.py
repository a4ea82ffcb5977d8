"""Checks a finished schedule from its file alone, without any part of the engine.

The checks depend on the rules. A reservation or a planned start binds the scheduler only as long
as no job runs longer than was assumed. Where a job did run longer, the check is skipped.
"""

from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.scheduling.schedule_file import WrittenSchedule
from simulator.traces.trace import Reals

SHOWN = 5
"""Most violations that are listed for a check; all are counted."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        violations: the first few violations in words.
    """

    name: str
    violated: int
    violations: tuple[str, ...]


def verify(result: WrittenSchedule) -> list[CheckResult]:
    """Run all checks that apply to a schedule."""
    findings = []
    for name, (applies, check) in CHECKS.items():
        if applies(result):
            violations = list(check(result))
            findings.append(CheckResult(name, len(violations), tuple(violations[:SHOWN])))
    return findings


def starts_after_submission(result: WrittenSchedule) -> Iterator[str]:
    """No job starts before it was submitted."""
    for job in np.flatnonzero(result.trace.wait < 0):
        yield f"job {result.trace.job[job]} starts {-result.trace.wait[job]:g} s too early"


def within_capacity(result: WrittenSchedule) -> Iterator[str]:
    """Jobs never hold more processors than the machine has.

    A job that ends frees its processors in that second.
    """
    times = np.concatenate([result.end, result.start])
    changes = np.concatenate([-result.processors, result.processors])
    order = np.lexsort((changes, times))
    held = np.cumsum(changes[order])
    for moment in np.flatnonzero(held > result.size):
        yield f"{held[moment]} of {result.size} processors are held at {times[order][moment]:g}"


def within_request(result: WrittenSchedule) -> Iterator[str]:
    """No estimate exceeds the job's request or is below one second."""
    wrong = (result.estimate < 1) | (result.estimate > np.ceil(result.trace.requested_time))
    for job in np.flatnonzero(wrong):
        yield f"job {result.trace.job[job]} is estimated at {result.estimate[job]:g} s"


def in_submission_order(result: WrittenSchedule) -> Iterator[str]:
    """No job starts before a job that was submitted earlier."""
    for job in np.flatnonzero(np.diff(result.start) < 0) + 1:
        yield f"job {result.trace.job[job]} passes a job that was submitted earlier"


def backfilled_are_marked(result: WrittenSchedule) -> Iterator[str]:
    """A job is marked as backfilled if and only if it starts before an earlier submission."""
    earlier = _latest_start_before(result)
    wrong = np.where(result.backfilled, earlier < result.start, earlier > result.start)
    for job in np.flatnonzero(wrong):
        yield f"job {result.trace.job[job]} is marked {result.backfilled[job]}"


def promises_are_kept(result: WrittenSchedule) -> Iterator[str]:
    """No job starts later than was planned when it arrived."""
    late = result.trace.wait > result.predicted_wait
    for job in np.flatnonzero(late):
        yield (
            f"job {result.trace.job[job]} waits {result.trace.wait[job]:g} s, "
            f"{result.predicted_wait[job]:g} s were planned"
        )


def head_is_not_delayed(result: WrittenSchedule) -> Iterator[str]:
    """The head of the queue starts no later than the reservation that it had as new head.

    A job becomes head when all jobs submitted before it have started. Its reservation is the
    earliest time at which enough processors are free, if the jobs running then end as expected.
    """
    expected = result.start + _assumed_running(result)
    outlived = _outlived(result)
    by_start = np.argsort(result.start, kind="stable").tolist()
    running: list[tuple[float, int]] = []
    started = 0
    became_head = np.maximum(result.trace.submit, _latest_start_before(result))
    for job in np.flatnonzero(result.start > became_head):
        while started < len(by_start) and result.start[by_start[started]] <= became_head[job]:
            insort(running, (float(expected[by_start[started]]), by_start[started]))
            started += 1
        running = [pair for pair in running if result.end[pair[1]] > became_head[job]]
        reserved = _reservation(result, running, int(result.processors[job]))
        meanwhile = (result.end > became_head[job]) & (result.start < result.start[job])
        if result.start[job] > reserved and not (outlived & meanwhile).any():
            yield (
                f"job {result.trace.job[job]} starts at {result.start[job]:g}, "
                f"its reservation was {reserved:g}"
            )


def _latest_start_before(result: WrittenSchedule) -> Reals:
    """Return the latest start of the jobs submitted before each job."""
    latest = np.maximum.accumulate(result.start)
    return np.concatenate([[-np.inf], latest])[: len(latest)]


def _reservation(
    result: WrittenSchedule, running: list[tuple[float, int]], processors: int
) -> float:
    """Return the time at which ``processors`` are free, if ``running`` jobs end as expected."""
    free = result.size - sum(int(result.processors[one]) for _, one in running)
    for end, one in running:
        free += int(result.processors[one])
        if free >= processors:
            return end
    return -np.inf


def _assumed_running(result: WrittenSchedule) -> Reals:
    """Return the runtimes that are first assumed of running jobs."""
    by_estimates = result.semantics.estimated_running
    return result.estimate if by_estimates else np.ceil(result.trace.requested_time)


def _outlived(result: WrittenSchedule) -> Any:
    """Return the jobs that ran longer than assumed, before or after their start."""
    by_estimates = result.semantics.estimated_backfilling
    planned = result.estimate if by_estimates else np.ceil(result.trace.requested_time)
    return np.ceil(result.trace.run) > np.minimum(planned, _assumed_running(result))


def _always(result: WrittenSchedule) -> bool:
    del result
    return True


def _is_first_come(result: WrittenSchedule) -> bool:
    return result.semantics.is_first_come


def _keeps_order(result: WrittenSchedule) -> bool:
    rules = result.semantics
    # A job pinned to nodes that are late is passed by those pinned to other nodes.
    in_time = rules.policy == "fcfs-pinned" and not (rules.pinning and _outlived(result).any())
    return _is_first_come(result) and (rules.policy == "fcfs" or in_time)


def _reserves(result: WrittenSchedule) -> bool:
    rules = result.semantics
    return rules.policy in {"easy", "easy-sjbf"} and _is_first_come(result)


def _binds_itself(result: WrittenSchedule) -> bool:
    rules = result.semantics
    return (
        rules.policy == "conservative"
        and rules.compression != "replan"
        and rules.estimated_backfilling == rules.estimated_running
        and not _outlived(result).any()
    )


CHECKS: Mapping[
    str, tuple[Callable[[WrittenSchedule], bool], Callable[[WrittenSchedule], Iterator[str]]]
] = {
    "no start before submission": (_always, starts_after_submission),
    "no more processors held than there are": (_always, within_capacity),
    "estimates between 1 s and the request": (_always, within_request),
    "starts in the order of submission": (_keeps_order, in_submission_order),
    "backfilled jobs are marked": (_is_first_come, backfilled_are_marked),
    "the head of the queue is not delayed": (_reserves, head_is_not_delayed),
    "planned starts are kept": (_binds_itself, promises_are_kept),
}
