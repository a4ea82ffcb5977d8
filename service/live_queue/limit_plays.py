"""Longer limits of running jobs that move no planned start of another job by more than a bound."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from service.live_queue.playing import FIRST_DEPTH, PoolQueue, queue_columns, scheduler_semantics
from service.live_queue.snapshot import (
    JobState,
    QueueSnapshot,
    RuntimeEstimate,
    SchedulerRules,
)
from simulator.scheduling.forecast import Snapshot, forecast
from simulator.traces.trace import Integers

PARTS = (1.0, 0.5, 0.25, 0.125)
"""Shares of what is to be added that are tried, largest first."""


class WantedLimit(NamedTuple):
    """A longer limit for a running job.

    Attributes:
        pool: place of the job's pool.
        row: place among the running jobs of the pool.
        walltime: the new limit in seconds from the start of the job.
        step: seconds of which a limit is a multiple.
        parts: number of ``PARTS`` that may be tried.
    """

    pool: int
    row: int
    walltime: int
    step: int = 1
    parts: int = 1


class PlayedLimit(NamedTuple):
    """The outcome of the plays for a longer limit.

    Attributes:
        walltime: the largest limit that holds the bound, in seconds; None without one.
        delay: most seconds by which a planned start moves later, under the limit tried last.
    """

    walltime: int | None
    delay: float


def pools_by_limits(snapshot: QueueSnapshot) -> list[PoolQueue]:
    """Return the queues of the pools, in which every job runs for as long as it may."""
    limits = [
        RuntimeEstimate(runtime=job.submission.requested_walltime, priority=0.0)
        for job in snapshot.jobs
    ]
    return [_by_limits(pool.first(FIRST_DEPTH)) for pool in queue_columns(snapshot, limits).pools]


def _by_limits(pool: PoolQueue) -> PoolQueue:
    running, waiting = pool.queue.running, pool.queue.waiting
    runtimes = np.maximum(running.request, running.age + 1)
    return replace(pool, queue=pool.queue.with_runtimes(runtimes, waiting.request))


def running_rows(
    snapshot: QueueSnapshot, pools: Sequence[PoolQueue]
) -> Mapping[str, tuple[int, int]]:
    """Return the pool and the row in it of each running job, by job id."""
    return {
        snapshot.jobs[place].job_id: (number, row)
        for number, pool in enumerate(pools)
        for row, place in enumerate(pool.running)
        if snapshot.jobs[place].state is JobState.RUNNING
    }


def play_limits(
    pools: Sequence[PoolQueue],
    rules: SchedulerRules,
    wanted: Sequence[WantedLimit],
    bound: float,
    seconds: float,
) -> list[PlayedLimit | None]:
    """Play the queue with each longer limit; one that holds the bound stays for those behind it.

    Args:
        pools: in which jobs run until their limits.
        wanted: the limits, most urgent first.
        bound: seconds by which a planned start may move later.
        seconds: time for all plays; None is the outcome of limits that are left then.
    """
    began, semantics = perf_counter(), scheduler_semantics(rules)
    queues = [pool.queue for pool in pools]
    starts = {each.pool: forecast(queues[each.pool], semantics).start for each in wanted}
    found: list[PlayedLimit | None] = []
    for each in wanted:
        outcome: PlayedLimit | None = None
        for walltime in tried_walltimes(int(queues[each.pool].running.request[each.row]), each):
            if perf_counter() - began > seconds:
                break
            longer = with_limit(queues[each.pool], each.row, walltime)
            delay = latest_move(starts[each.pool], forecast(longer, semantics).start)
            outcome = PlayedLimit(walltime if delay <= bound else None, delay)
            if outcome.walltime is not None:
                queues[each.pool] = longer
                break
        found.append(outcome)
    return found


def tried_walltimes(limit: int, wanted: WantedLimit) -> list[int]:
    """Return the longer limits to try, in whole steps, largest first."""
    added = wanted.walltime - limit
    steps = [int(added * part) // wanted.step * wanted.step for part in PARTS[: wanted.parts]]
    return [limit + each for each in dict.fromkeys(steps) if each > 0]


def with_limit(queue: Snapshot, row: int, walltime: int) -> Snapshot:
    """Return the queue with a running job that has another limit and runs until then."""
    running = queue.running
    columns = {name: getattr(running, name).copy() for name in ("request", "estimate", "runtime")}
    for column in columns.values():
        column[row] = walltime
    return replace(queue, running=replace(running, **columns))


def latest_move(before: Integers, after: Integers) -> float:
    """Return the most seconds by which a start is later than before; 0 without any."""
    return float(np.max(after - before, initial=0))
