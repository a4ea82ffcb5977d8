"""What the process of the live queues does: plays pools forward; all of it can be pickled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.queues.queue_columns import PoolQueue
from simulator.scheduling.forecast import Forecast, QueuedJobs, Snapshot, forecast
from simulator.scheduling.futures import futures, nominal_coverage
from simulator.scheduling.semantics import Semantics
from simulator.traces.trace import Integers

WORK = 60_000
"""Jobs that are played for one forecast, all futures together: it takes about half a second."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from now at which something happens to each job, and their ranges over futures."""

    expected: Integers
    lower: Integers | None = None
    upper: Integers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolForecast:
    """The forecast for one pool.

    Attributes:
        starts: of the waiting jobs.
        ends: of the waiting jobs.
        running_ends: of the running jobs.
        coverage: probability with which a range holds the time; None without ranges.
    """

    starts: Times
    ends: Times
    running_ends: Times
    coverage: float | None


def samples_for(jobs: int, wanted: int, plays: int = 1) -> int:
    """How many futures are played of each of ``plays`` queues, so that they do not take long."""
    return max(0, min(wanted, WORK // max(1, jobs * plays) - 1))


def play_pools(
    pools: Sequence[PoolQueue], semantics: Semantics, ratios: Sequence[float], samples: int
) -> list[PoolForecast]:
    """Play every pool once as predicted, and in ``samples`` other futures."""
    return [_play(pool, semantics, ratios, samples) for pool in pools]


def _play(
    pool: PoolQueue, semantics: Semantics, ratios: Sequence[float], samples: int
) -> PoolForecast:
    played = forecast(pool.queue, semantics)
    others = futures(pool.queue, semantics, ratios, samples, pool.ladders)
    return PoolForecast(
        starts=_times(played.start, [other.start for other in others]),
        ends=_times(played.end, [other.end for other in others]),
        running_ends=_times(played.running_end, [other.running_end for other in others]),
        coverage=nominal_coverage(len(others)) if others else None,
    )


def _times(expected: Integers, others: Sequence[Integers]) -> Times:
    if not others:
        return Times(expected)
    every = [expected, *others]
    return Times(expected, np.min(every, axis=0), np.max(every, axis=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedJob:
    """A job that is not in the queue, and where it would be.

    Attributes:
        pool: place of the pool whose queue it would join, at the end.
        job: one row.
        ladder: runtimes at the levels of ``LADDER``, if they are told.
    """

    pool: int
    job: QueuedJobs
    ladder: Sequence[float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedForecast:
    """When a job that is not in the queue would start and end, in seconds from now."""

    start: int
    end: int
    start_range: tuple[int, int] | None
    end_range: tuple[int, int] | None
    coverage: float | None


def play_added(
    pools: Sequence[PoolQueue],
    added: Sequence[AddedJob],
    semantics: Semantics,
    ratios: Sequence[float],
    samples: int,
) -> list[AddedForecast]:
    """What would become of each of several jobs, if it alone were added to the queue."""
    return [_play_added(pools[each.pool], each, semantics, ratios, samples) for each in added]


def _play_added(
    pool: PoolQueue, added: AddedJob, semantics: Semantics, ratios: Sequence[float], samples: int
) -> AddedForecast:
    queue: Snapshot = replace(pool.queue, waiting=pool.queue.waiting + added.job)
    ladders = (pool.ladders[0], [*pool.ladders[1], added.ladder])
    every: list[Forecast] = [
        forecast(queue, semantics),
        *futures(queue, semantics, ratios, samples, ladders),
    ]
    starts = [int(each.start[-1]) for each in every]
    ends = [int(each.end[-1]) for each in every]
    varies = len(every) > 1
    return AddedForecast(
        start=starts[0],
        end=ends[0],
        start_range=(min(starts), max(starts)) if varies else None,
        end_range=(min(ends), max(ends)) if varies else None,
        coverage=nominal_coverage(len(every) - 1) if varies else None,
    )
