"""Forecasts of a queue's jobs from their first sight until now, and the scores of their waits."""

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import structlog
from msgspec import Struct, field
from numpy.typing import NDArray

from predictors.jobs import Basis, Interval
from service.live_queue.playing import JobTimes, PoolForecast, PoolQueue
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
from service.store import WaitScore

log = structlog.get_logger()

MOST_POINTS = 24
"""Most forecasts of one job that are stored; beyond, every other of them is dropped."""

SAME_SECONDS = 60.0
"""A forecast replaces the one before if neither start nor end differs by more than this."""

ARRIVAL, SINCE = "arrival", "since"

PATIENCE_SECONDS = 3600.0
"""Longest wait for the completion of a job that left the queue without being seen running."""

MOST_LEFT = 10_000
"""Most jobs that have left without being seen running and are remembered, the latest ones."""

MOST_WAITS = 500
"""Most waits of jobs that were not planned at their arrival that are remembered of each queue."""

ENOUGH_WAITS = 10
"""Fewest waits whose median is told."""

FASTEST = 1
"""Level of zlib: a queue is written every minute."""


class TimeInterval(Struct, frozen=True, array_like=True, gc=False):
    """Bounds of a time, in Unix seconds, that contain it with probability ``coverage``."""

    lower: float
    upper: float
    coverage: float

    def holds(self, time: float) -> bool:
        """Return whether a time is within the bounds."""
        return self.lower <= time <= self.upper


def bounds(interval: TimeInterval | None) -> Interval | None:
    """Return the bounds of a time with their names, as answers have them."""
    if interval is None:
        return None
    return Interval(lower=interval.lower, upper=interval.upper, coverage=interval.coverage)


class ForecastPoint(Struct, frozen=True, array_like=True, gc=False):
    """One forecast of a job, made at ``made_at``; times are Unix seconds."""

    made_at: float
    start: float
    end: float
    start_interval: TimeInterval | None = None
    end_interval: TimeInterval | None = None


class JobForecast(Struct, kw_only=True, gc=False):
    """The forecasts of one job.

    Attributes:
        predicted: runtime as it was last predicted, in seconds.
        points: forecasts, the first and the last one among them; thinned between the two.
        before: forecast before the last one.
        position: place among the jobs that wait for the same processors, from 1.
        waits: whether the job waited when it was forecast last.
        basis: of ``predicted``; None where the caller has predicted the job.
        is_planned: whether the last forecast reached the job.
        arrived_unplanned: whether the first forecast with the job did not reach it.
    """

    predicted: float | None
    points: list[ForecastPoint] = field(default_factory=list)
    before: ForecastPoint | None = None
    position: int | None = None
    waits: bool = True
    basis: Basis | None = None
    is_planned: bool = True
    arrived_unplanned: bool = False

    @property
    def last(self) -> ForecastPoint | None:
        """Return the last forecast; None if it did not reach the job."""
        return self.points[-1] if self.points and self.is_planned else None

    def add(self, point: ForecastPoint) -> None:
        """Add one more forecast."""
        self.before = self.points[-1] if self.points else None
        if len(self.points) > 2 and _is_same(self.points[-2], self.points[-1]):
            self.points.pop()
        self.points.append(point)
        if len(self.points) > MOST_POINTS:
            self.points = [*self.points[:-1][::2], point]

    def shift_seconds(self, *, running: bool, since_arrival: bool = False) -> float | None:
        """Return how much later the last forecast has the job start, or end if it runs.

        Args:
            running: whether the job runs.
            since_arrival: compare with the first forecast, not with the one before the last.
        """
        before = (self.points[0] if self.points else None) if since_arrival else self.before
        if before is None or self.last is None:
            return None
        return self.last.end - before.end if running else self.last.start - before.start


def _is_same(point: ForecastPoint, next_point: ForecastPoint) -> bool:
    return (
        abs(point.start - next_point.start) <= SAME_SECONDS
        and abs(point.end - next_point.end) <= SAME_SECONDS
    )


class LeftQueue(Struct, frozen=True, kw_only=True, gc=False):
    """A job that has left the queue and was never seen running.

    Attributes:
        job: as it was seen last.
        forecast: its forecasts.
        seen_at: ``taken_at`` of the last snapshot that contained the job.
    """

    job: LiveJob
    forecast: JobForecast
    seen_at: float


class StartedJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job that was forecast while it waited, and then started; times are Unix seconds."""

    job: LiveJob
    forecast: JobForecast
    start_time: float


class LiveQueue(Struct, kw_only=True):
    """The latest queue of a cluster, and the forecasts of its jobs.

    Attributes:
        snapshot: the queue.
        received_at: Unix seconds.
        forecast_at: ``taken_at`` of the snapshot that was forecast last.
        forecasts: by job id, of the jobs of the snapshot that was forecast last.
        left: jobs that waited when they were last seen, by job id. Whether they have run is open.
        trouble: reason why the queue could not be forecast, in a sentence.
        no_interval: reason why the last forecast has no intervals; None if it has.
        planned: number of waiting jobs that the last forecast reached.
        unplayed: number of waiting jobs behind those that were played.
        samples: number of futures beside the expected one in the last forecast.
        cost: seconds that the expected future took.
        unplanned_waits: waits of jobs that were not planned at their arrival, by queue, the latest
            last; in seconds.
    """

    snapshot: QueueSnapshot
    received_at: float
    forecast_at: float | None = None
    forecasts: dict[str, JobForecast] = field(default_factory=dict)
    left: dict[str, LeftQueue] = field(default_factory=dict)
    trouble: str | None = None
    no_interval: NoInterval | None = None
    planned: int = 0
    unplayed: int = 0
    samples: int = 0
    cost: float = 0.0
    unplanned_waits: dict[str, list[float]] = field(default_factory=dict)


_decode = msgspec.msgpack.Decoder(LiveQueue).decode


def packed(queue: LiveQueue) -> bytes:
    """Return the stored form of a queue."""
    return zlib.compress(msgspec.msgpack.encode(queue), FASTEST)


def unpacked(content: bytes, cluster: str) -> LiveQueue:
    """Return a stored queue; an empty one of 1970 if another release stored it in another form."""
    try:
        return _decode(zlib.decompress(content))
    except (zlib.error, msgspec.MsgspecError) as error:
        log.warning("a stored queue cannot be read", cluster=cluster, reason=str(error))
        nothing = QueueSnapshot(
            cluster=cluster,
            taken_at=0.0,
            rules=SchedulerRules(),
            pools=(Pool(processors=1),),
            jobs=(),
        )
        return LiveQueue(snapshot=nothing, received_at=0.0)


def job_forecasts(
    snapshot: QueueSnapshot,
    estimates: Sequence[RuntimeEstimate],
    pools: Sequence[PoolQueue],
    played: Sequence[PoolForecast],
    before: Mapping[str, JobForecast],
) -> dict[str, JobForecast]:
    """Return the forecasts of each job by job id: those before, and the new one."""
    forecasts = {
        job.job_id: _continued(before.get(job.job_id), job, estimate)
        for job, estimate in zip(snapshot.jobs, estimates, strict=True)
    }
    now = snapshot.taken_at
    planned = planned_rows(snapshot.rules, played)
    for pool, times, rows in zip(pools, played, planned, strict=True):
        for row, place in enumerate(pool.running):
            job = snapshot.jobs[place]
            forecasts[job.job_id].add(running_point(times, row, now, job.start_time))
        for row in sorted(rows):
            job = snapshot.jobs[pool.waiting[row]]
            forecasts[job.job_id].add(waiting_point(times, row, now))
    reached = {pool.waiting[row] for pool, rows in zip(pools, planned, strict=True) for row in rows}
    _note_places(snapshot, forecasts, reached)
    return forecasts


def _note_places(
    snapshot: QueueSnapshot, forecasts: Mapping[str, JobForecast], reached: set[int]
) -> None:
    """Note the position of each waiting job, and whether the forecast reached it."""
    waiting, places_of_pools = [0] * len(snapshot.pools), pool_places(snapshot.pools)
    for place, job in enumerate(snapshot.jobs):
        pool = places_of_pools[job.submission.queue]
        if job.state is not JobState.WAITING or job.processors > snapshot.pools[pool].processors:
            continue
        waiting[pool] += 1
        forecast = forecasts[job.job_id]
        forecast.position = waiting[pool]
        forecast.is_planned = place in reached
        if not forecast.is_planned and not forecast.points:
            forecast.arrived_unplanned = True


def planned_rows(rules: SchedulerRules, played: Sequence[PoolForecast]) -> list[set[int]]:
    """Return the rows of the waiting jobs of each pool that the forecast reaches."""
    window = np.inf if rules.planning_window is None else rules.planning_window
    return [set(np.flatnonzero(times.starts.expected <= window).tolist()) for times in played]


def _continued(before: JobForecast | None, job: LiveJob, estimate: RuntimeEstimate) -> JobForecast:
    """Return a copy to which the new forecast is added.

    A job that ran and waits again, as after a requeue, is forecast as if it had just arrived.
    """
    waits = job.state is not JobState.RUNNING
    if before is not None and waits and not before.waits:
        before = None
    return JobForecast(
        predicted=estimate.runtime if estimate.is_predicted else None,
        points=list(before.points) if before else [],
        before=before.before if before else None,
        waits=waits,
        basis=estimate.basis,
        arrived_unplanned=before is not None and before.arrived_unplanned,
    )


def running_point(
    played: PoolForecast, row: int, now: float, start_time: float | None
) -> ForecastPoint:
    """Return the forecast of a running job; ``row`` is its place among those of its pool."""
    return ForecastPoint(
        made_at=now,
        start=now if start_time is None else start_time,
        end=_time(now, played.running_ends.expected[row]),
        end_interval=_interval(played.running_ends, row, now, played.coverage),
    )


def waiting_point(played: PoolForecast, row: int, now: float) -> ForecastPoint:
    """Return the forecast of a waiting job; ``row`` is its place among those of its pool."""
    return ForecastPoint(
        made_at=now,
        start=_time(now, played.starts.expected[row]),
        end=_time(now, played.ends.expected[row]),
        start_interval=_interval(played.starts, row, now, played.coverage),
        end_interval=_interval(played.ends, row, now, played.coverage),
    )


def _interval(times: JobTimes, row: int, now: float, coverage: float | None) -> TimeInterval | None:
    if times.lower is None or times.upper is None or coverage is None:
        return None
    return TimeInterval(_time(now, times.lower[row]), _time(now, times.upper[row]), coverage)


def _time(now: float, seconds: float) -> float:
    """Return the time to the millisecond, as a point and its interval are shown."""
    return round(now + float(seconds), 3)


def started_jobs(queue: LiveQueue, newer: QueueSnapshot) -> list[StartedJob]:
    """Return the jobs that waited in the last forecast of ``queue`` and run in ``newer``."""
    found = []
    for job in newer.jobs:
        forecast = queue.forecasts.get(job.job_id)
        if forecast is not None and forecast.waits and job.start_time is not None:
            found.append(StartedJob(job=job, forecast=forecast, start_time=job.start_time))
    return found


def left_jobs(queue: LiveQueue, newer: QueueSnapshot) -> dict[str, LeftQueue]:
    """Return the jobs that have left without being seen running, earlier ones included.

    Args:
        queue: the snapshot before, and the jobs that had left by then.
        newer: the snapshot after it.
    """
    present = {job.job_id for job in newer.jobs}
    left = dict(queue.left)
    for job in queue.snapshot.jobs:
        forecast = queue.forecasts.get(job.job_id)
        if forecast is not None and forecast.waits and job.job_id not in present:
            left[job.job_id] = LeftQueue(
                job=job, forecast=forecast, seen_at=queue.snapshot.taken_at
            )
    recent = {
        job_id: each
        for job_id, each in left.items()
        if newer.taken_at - each.seen_at <= PATIENCE_SECONDS and job_id not in present
    }
    return dict(list(recent.items())[-MOST_LEFT:])


def ran_unseen(left: Mapping[str, LeftQueue], starts: Mapping[str, float]) -> Iterator[StartedJob]:
    """Yield the jobs that have left and whose completion gives a start, by job id in ``starts``."""
    for job_id, start in starts.items():
        each = left[job_id]
        yield StartedJob(job=each.job, forecast=each.forecast, start_time=start)


def with_unplanned_waits(
    before: Mapping[str, list[float]], started: Sequence[StartedJob]
) -> dict[str, list[float]]:
    """Return the waits of jobs that were not planned at their arrival, with new ones, by queue."""
    waits = {queue: list(known) for queue, known in before.items()}
    for each in started:
        if each.forecast.arrived_unplanned:
            submission = each.job.submission
            wait = max(0.0, each.start_time - submission.submit_time)
            waits.setdefault(submission.queue or "", []).append(wait)
    return {queue: known[-MOST_WAITS:] for queue, known in waits.items()}


def usual_wait(
    waits: Mapping[str, Sequence[float]], queue: str | None, waited: float
) -> float | None:
    """Return the median wait of jobs that were not planned at their arrival and waited longer.

    They are those of the same queue if these are enough, else those of all queues; None if these
    are too few as well.

    Args:
        waits: by queue, in seconds.
        queue: of the job.
        waited: seconds that the job has waited.
    """
    every = [wait for known in waits.values() for wait in known]
    for known in (waits.get(queue or "", []), every):
        longer = [wait for wait in known if wait > waited]
        if len(longer) >= ENOUGH_WAITS:
            return float(np.median(longer))
    return None


def wait_scores(started: Sequence[StartedJob]) -> list[WaitScore]:
    """Return sums of the errors of forecast waits, by queue and by when the forecast was made.

    The later forecasts of one job count as one job together.
    """
    sums: dict[tuple[str, str], NDArray[np.float64]] = defaultdict(lambda: np.zeros(6))
    for each in started:
        points = [point for point in each.forecast.points if point.made_at <= each.start_time]
        queue = each.job.submission.queue or ""
        is_late = each.forecast.arrived_unplanned
        others = len(points) if is_late else len(points) - 1
        for place, point in enumerate(points):
            made, weight = (SINCE, 1.0 / others) if place or is_late else (ARRIVAL, 1.0)
            sums[queue, made] += weight * _error_terms(point, each)
    names = WaitScore.__struct_fields__
    return [
        WaitScore(**dict(zip(names, (*key, *sums[key].tolist()), strict=True)))
        for key in sorted(sums)
    ]


def _error_terms(point: ForecastPoint, started: StartedJob) -> NDArray[np.float64]:
    """Return the columns of ``WaitScore`` after its key, for one forecast of one job."""
    error = point.start - started.start_time
    interval = point.start_interval
    return np.array(
        [
            1.0,
            max(0.0, started.start_time - started.job.submission.submit_time),
            abs(error),
            error,
            interval is not None,
            interval is not None and interval.holds(started.start_time),
        ]
    )
