"""Plays the pools of a queue forward: jobs become columns of the simulator, and columns times.

A pool is at least as large as what runs on it, and a job that can never fit is left out: nothing
that a resource manager shows is refused. The functions that play are called in another process.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from time import perf_counter
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from predictors.memory.error_ratios import ENOUGH_RATIOS
from service.live_queue.snapshot import (
    JobState,
    LiveJob,
    NoInterval,
    Pool,
    QueueSnapshot,
    RuntimeEstimate,
    SchedulerRules,
    pool_places,
)
from simulator.engine.state import whole_seconds
from simulator.scheduling.forecast import (
    Forecast,
    Quantiles,
    QueuedJobs,
    QueueQuantiles,
    Snapshot,
    forecast,
    nominal_coverage,
    other_futures,
    running_runtime,
)
from simulator.scheduling.semantics import Semantics
from simulator.traces.trace import Integers

FIRST_DEPTH = 500
"""Waiting jobs of a pool that are played first, before it is known what a play costs."""

MOST_GROWTH = 4.0
"""Most times by which one play is deeper than the one before."""

LEAST_GROWTH = 1.2
"""Least times by which a play has to be deeper to be worth its time."""

LEAST_COVERAGE = 0.8
"""Smallest coverage of ranges where time was too short for all futures."""

NEAR_SECONDS = 3600.0
"""Time to come within which a start is forecast where most futures have it."""

SPAN_SECONDS = 1200
"""Length of the time in which most futures have it: ten minutes off are near."""

NOBODY = -1
"""Number of an owner who has no job in the queue."""

TimesFromNow = NDArray[np.int64] | NDArray[np.float64]
"""Seconds from now, one for each job; whole ones on dedicated machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolQueue:
    """The jobs of one pool.

    Attributes:
        running: places of its running jobs in the list of all jobs.
        quantiles: of the running and of the waiting jobs.
    """

    queue: Snapshot
    running: Sequence[int]
    waiting: Sequence[int]
    quantiles: QueueQuantiles

    def __len__(self) -> int:
        return len(self.running) + len(self.waiting)

    def first(self, depth: int) -> Self:
        """Return the queue without the waiting jobs behind the first ``depth``."""
        waiting = self.queue.waiting.take(np.arange(min(depth, len(self.waiting))))
        return replace(
            self,
            queue=replace(self.queue, waiting=waiting),
            waiting=self.waiting[:depth],
            quantiles=(self.quantiles[0], self.quantiles[1][:depth]),
        )


class PlayingLimits(NamedTuple):
    """Seconds in which the queue is played as predicted, and with all other futures.

    Without a limit of the first all waiting jobs are played.
    """

    expected: float | None
    total: float


LIVE = PlayingLimits(1.0, 8.0)
"""Limits of the forecast of a live queue, for which no caller waits.

They leave time for what is around the plays: with it, the expected future of 20,000 waiting jobs
should be there within 2 s, and all futures within 10 s.
"""

AWAITED = PlayingLimits(None, 0.3)
"""Limits of all plays together for which a caller waits."""


class QueueColumns(NamedTuple):
    """The pools of a queue in order, and the numbers of the owners of their jobs."""

    pools: list[PoolQueue]
    owners: Mapping[str, int]


class JobTimes(NamedTuple):
    """Times of an event of each job, and their ranges over all futures."""

    expected: TimesFromNow
    lower: TimesFromNow | None
    upper: TimesFromNow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolForecast:
    """The forecast for the jobs of one pool, or of shared nodes.

    The waiting jobs are those that were played: the first ones, if time was short.

    Attributes:
        coverage: probability that a range contains the time; None without ranges.
        no_interval: reason why there are no ranges; None with ranges.
        nodes: places of the nodes of the waiting jobs, where the policy names nodes.
        samples: number of futures beside the expected one.
        cost: seconds that the expected future took.
    """

    starts: JobTimes
    ends: JobTimes
    running_ends: JobTimes
    coverage: float | None
    no_interval: NoInterval | None
    nodes: Sequence[Sequence[int]] | None = None
    samples: int = 0
    cost: float = 0.0


def job_times(futures: Sequence[TimesFromNow]) -> JobTimes:
    """Return the times of the first future, which is the expected one, and the ranges over all."""
    if len(futures) == 1:
        return JobTimes(futures[0], None, None)
    return JobTimes(futures[0], np.min(futures, axis=0), np.max(futures, axis=0))


def nearer_starts(starts: Sequence[Integers]) -> Integers:
    """Return the starts of the expected future, within the hour those of most futures.

    A job starts when the first of several running jobs ends, which is mostly before the first of
    their median ends. A start that is not in the twenty minutes in which most futures have it is
    replaced by their middle (results/starts.txt).
    """
    near = np.flatnonzero(np.median(starts, axis=0) < NEAR_SECONDS)
    ordered, jobs = np.sort(np.array(starts)[:, near], axis=0), np.arange(len(near))
    last = (ordered <= ordered[:, None] + SPAN_SECONDS).sum(axis=1) - 1
    first = (last - np.arange(len(starts))[:, None]).argmax(axis=0)
    middle = (ordered[first, jobs] + ordered[last[first, jobs], jobs]) // 2
    found = starts[0].copy()
    is_off = np.abs(found[near] - middle) > SPAN_SECONDS // 2
    found[near] = np.where(is_off, middle, found[near])
    return found


def moved(times: JobTimes, seconds: Integers) -> JobTimes:
    """Return the times with the expected ones so many seconds later, within their ranges."""
    if times.lower is None or times.upper is None:
        return times
    return times._replace(expected=np.clip(times.expected + seconds, times.lower, times.upper))


def range_coverage(futures: int) -> float | None:
    """Return the probability that one more future is in the range; None if there is only one."""
    return nominal_coverage(futures - 1) if futures > 1 else None


def no_interval(futures: int, samples: int) -> NoInterval | None:
    """Return why ``samples`` requested futures gave no ranges; None if they did."""
    if futures > 1:
        return None
    return "too-few-runs" if samples else "no-samples"


def first_no_interval(
    pools: Sequence[PoolQueue], played: Sequence[PoolForecast]
) -> NoInterval | None:
    """Return why the jobs of some pool have no intervals; None if all have."""
    reasons = [each.no_interval for pool, each in zip(pools, played, strict=True) if len(pool)]
    return next((reason for reason in reasons if reason), None)


def beyond_depth(snapshot: QueueSnapshot) -> frozenset[int]:
    """Return the places of the waiting jobs that are too far behind for the scheduler to plan."""
    depth = snapshot.rules.planning_depth
    if depth is None:
        return frozenset()
    waiting = [place for place, job in enumerate(snapshot.jobs) if job.state is JobState.WAITING]
    return frozenset(waiting[depth:])


def queue_columns(snapshot: QueueSnapshot, estimates: Sequence[RuntimeEstimate]) -> QueueColumns:
    """Return the columns of every pool, of the jobs that the scheduler plans.

    Args:
        estimates: one for each job of the snapshot.
    """
    running: list[list[int]] = [[] for _ in snapshot.pools]
    waiting: list[list[int]] = [[] for _ in snapshot.pools]
    beyond, places_of_pools = beyond_depth(snapshot), pool_places(snapshot.pools)
    for place, job in enumerate(snapshot.jobs):
        pool = places_of_pools[job.submission.queue]
        if job.state is JobState.RUNNING:
            running[pool].append(place)
        elif place in beyond:
            continue
        elif job.state is JobState.WAITING and job.processors <= snapshot.pools[pool].processors:
            waiting[pool].append(place)
    owners: dict[str, int] = {}
    pools = [
        _pool_queue(snapshot, estimates, pool, places, owners)
        for pool, *places in zip(snapshot.pools, running, waiting, strict=True)
    ]
    return QueueColumns(pools, owners)


def _pool_queue(
    snapshot: QueueSnapshot,
    estimates: Sequence[RuntimeEstimate],
    pool: Pool,
    places: Sequence[Sequence[int]],
    owners: dict[str, int],
) -> PoolQueue:
    """Return the queue of a pool; ``places`` are those of its running and its waiting jobs."""
    size = pool.node_cores or 1
    jobs = [[snapshot.jobs[place] for place in kind] for kind in places]
    runtimes = [[estimates[place] for place in kind] for kind in places]
    running, waiting = (
        _columns(kind, each, snapshot, owners, size)
        for kind, each in zip(jobs, runtimes, strict=True)
    )
    return PoolQueue(
        queue=Snapshot(
            processors=max(int(running.processors.sum()), pool.processors // size),
            running=running,
            waiting=waiting,
            running_nodes=[job.nodes for job in jobs[0]] if pool.node_cores else None,
        ),
        running=places[0],
        waiting=places[1],
        quantiles=(
            [each.quantiles for each in runtimes[0]],
            [each.quantiles for each in runtimes[1]],
        ),
    )


def _columns(
    jobs: Sequence[LiveJob],
    estimates: Sequence[RuntimeEstimate],
    snapshot: QueueSnapshot,
    owners: dict[str, int],
    node_cores: int = 1,
) -> QueuedJobs:
    """Return jobs with the scheduler's estimates, and the likely runtimes that they are played by.

    New owners get the next number in ``owners``.
    """
    requests = [ceil(job.submission.requested_walltime) for job in jobs]
    predicted = [whole_seconds(estimate.runtime) for estimate in estimates]
    likely = [
        min(request, whole_seconds(estimate.expected))
        for request, estimate in zip(requests, estimates, strict=True)
    ]
    ages = [_age(job, snapshot.now) for job in jobs]
    rows = zip(jobs, likely, requests, ages, strict=True)
    return QueuedJobs(
        processors=_whole([ceil(job.processors / node_cores) for job in jobs]),
        request=_whole(requests),
        estimate=_whole(predicted),
        runtime=_whole(
            [
                seconds
                if job.start_time is None
                else running_runtime(seconds, request, age, snapshot.rules.correction)
                for job, seconds, request, age in rows
            ]
        ),
        age=_whole(ages),
        priority=np.array([estimate.priority for estimate in estimates], np.float64),
        owner=_whole([owners.setdefault(job.owner, len(owners)) for job in jobs]),
        array=_whole([_array_number(job, owners) for job in jobs]),
        array_limit=_whole([job.array_limit or 0 for job in jobs]),
    )


def _array_number(job: LiveJob, numbers: dict[str, int]) -> int:
    """Return the number of a job's array, beside those of owners; -1 for none."""
    return NOBODY if job.array is None else numbers.setdefault(f"array {job.array}", len(numbers))


def _whole(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def _age(job: LiveJob, now: float) -> int:
    """Return the whole seconds since the start, or since the submission of a waiting job."""
    since = job.submission.submit_time if job.start_time is None else job.start_time
    return max(0, int(now - since))


def with_job(
    snapshot: QueueSnapshot, columns: QueueColumns, job: LiveJob, estimate: RuntimeEstimate
) -> PoolQueue:
    """Return the queue of the pool that a job would join, with the job at its end.

    The job varies together with those of its own user, and with no other.
    """
    queue = columns.pools[pool_places(snapshot.pools)[job.submission.queue]]
    owners = {job.owner: columns.owners.get(job.owner, NOBODY)}
    row = _columns([job], [estimate], snapshot, owners)
    return replace(
        queue,
        queue=replace(queue.queue, waiting=queue.queue.waiting + row),
        quantiles=(queue.quantiles[0], [*queue.quantiles[1], estimate.quantiles]),
    )


class FreeProcessors(NamedTuple):
    """The free processors of a pool by a forecast.

    Attributes:
        times: seconds from now, ascending, the first one 0.
        free: processors that are free from each time until the next one.
    """

    times: NDArray[np.float64]
    free: NDArray[np.int64]

    @classmethod
    def beside(cls, spans: Sequence[tuple[float, float, int]], processors: int) -> Self:
        """Return those of a pool of so many processors.

        A pool is at least as large as what runs on it.

        Args:
            spans: start, end and processors of each job, in seconds from now.
        """
        starts, ends, sizes = np.array([(0.0, 0.0, 0.0), *spans]).T
        times, places = np.unique(np.maximum(0.0, [*starts, *ends]), return_inverse=True)
        used = np.cumsum(np.bincount(places, [*sizes, *-sizes])).round().astype(np.int64)
        return cls(times, max(processors, int(used[0])) - used)

    def first_gap(self, processors: int, duration: float) -> float:
        """Return the earliest start of one more job that moves no other, in seconds from now.

        Args:
            processors: that the job needs; at most those of the pool.
            duration: seconds for which it needs them.
        """
        changes = np.diff(self.free >= processors, prepend=False, append=False)
        edges = np.append(self.times, np.inf)[np.flatnonzero(changes)]
        begins, ends = edges[::2], edges[1::2]
        return float(begins[np.argmax(ends - begins >= duration)])


def scheduler_semantics(rules: SchedulerRules) -> Semantics:
    """Return the rules as the simulator takes them."""
    by_predictions = rules.plans_by == "predictions"
    return Semantics(
        policy=rules.policy,
        order=rules.order,
        depth=rules.depth,
        compression=rules.compression,
        correction=rules.correction,
        pinning=rules.pinning,
        pinned=rules.pinned,
        estimated_order=by_predictions,
        estimated_backfilling=by_predictions,
        estimated_running=by_predictions,
    )


def play_pools(
    pools: Sequence[PoolQueue],
    rules: SchedulerRules,
    ratios: Sequence[float],
    samples: int,
    limits: PlayingLimits | None = None,
) -> list[PoolForecast]:
    """Play every pool once as expected, and in ``samples`` other futures.

    Where time is short, first there are fewer futures, then fewer waiting jobs. Ranges over so few
    futures that they would cover less than ``LEAST_COVERAGE`` are left out.

    Args:
        pools: jobs in them run for as long as is likely.
        ratios: recent ratios of runtime to prediction, ascending, for jobs without quantiles.
        samples: number of other futures; none are played while too few errors are known.
        limits: of time for all pools together; by default all is played.
    """
    semantics = scheduler_semantics(rules)
    if limits is None:
        return [_play(pool, semantics, ratios, samples) for pool in pools]
    began, forecasts = perf_counter(), []
    expected = None if limits.expected is None else limits.expected / len(pools)
    for place, pool in enumerate(pools):
        passed, others = perf_counter() - began, len(pools) - place
        share = PlayingLimits(expected, (limits.total - passed) / others)
        forecasts.append(_play(pool, semantics, ratios, samples, share))
    return forecasts


def has_known_errors(ratios: Sequence[float], quantiles: Iterable[Quantiles]) -> bool:
    """Return whether enough is known of the errors of every job's prediction for intervals.

    Args:
        ratios: recent ratios of runtime to prediction, for jobs without quantiles.
    """
    return len(ratios) >= ENOUGH_RATIOS or all(each is not None for each in quantiles)


def _play(
    pool: PoolQueue,
    semantics: Semantics,
    ratios: Sequence[float],
    samples: int,
    limits: PlayingLimits | None = None,
) -> PoolForecast:
    deadline = None if limits is None else perf_counter() + limits.total
    pool, expected, cost = _deepest(pool, semantics, limits.expected if limits else None)
    every = [expected]
    if has_known_errors(ratios, chain(*pool.quantiles)) and _fits(cost, deadline):
        for other in other_futures(pool.queue, semantics, ratios, samples, pool.quantiles):
            every.append(other)
            if not _fits(cost, deadline):
                break
    if 1 < len(every) <= samples and nominal_coverage(len(every) - 1) < LEAST_COVERAGE:
        every = every[:1]
    reason = no_interval(len(every), samples)
    starts = [each.start for each in every]
    nearer = (expected.start if limits is None else nearer_starts(starts)) - expected.start
    return PoolForecast(
        starts=moved(job_times(starts), nearer),
        ends=moved(job_times([each.end for each in every]), nearer),
        running_ends=job_times([each.running_end for each in every]),
        coverage=range_coverage(len(every)),
        no_interval="no-time" if reason and not _fits(cost, deadline) else reason,
        nodes=expected.nodes,
        samples=len(every) - 1,
        cost=cost,
    )


def _fits(cost: float, deadline: float | None) -> bool:
    """Return whether one more play of ``cost`` seconds would end before the deadline."""
    return deadline is None or perf_counter() + cost <= deadline


def _deepest(
    pool: PoolQueue, semantics: Semantics, left: float | None
) -> tuple[PoolQueue, Forecast, float]:
    """Play as many waiting jobs as fit into the time; return them, their play, and its seconds.

    The time of a play grows up to the cube of the number of waiting jobs. With None as the
    seconds that are ``left`` all of them are played.
    """
    depth = len(pool.waiting) if left is None else FIRST_DEPTH
    while True:
        first = pool.first(depth) if depth < len(pool.waiting) else pool
        began = perf_counter()
        expected = forecast(first.queue, semantics)
        cost = perf_counter() - began
        if left is None or depth >= len(pool.waiting):
            return first, expected, cost
        left -= cost
        growth = min(MOST_GROWTH, (max(0.0, left) / cost) ** (1 / 3))
        if growth < LEAST_GROWTH:
            return first, expected, cost
        depth = int(depth * growth)
