"""The record of a queue: its snapshot, and the forecasts of its jobs since they were first seen."""

import zlib
from collections.abc import Mapping, Sequence
from itertools import chain

import msgspec
import structlog
from msgspec import Struct, field
from msgspec.structs import replace

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
from service.live_queue.told_starts import Calibration, PastWaits, ToldRecord

log = structlog.get_logger()

MOST_POINTS = 24
"""Most forecasts of one job that are stored; beyond, every other of them is dropped."""

SAME_SECONDS = 60.0
"""A forecast replaces the one before if neither start nor end differs by more than this."""


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
    """One forecast of a job, made at ``made_at``; times are Unix seconds.

    Attributes:
        played: interval of the start as it was played, before calibration.
        scheduler: start that the scheduler planned itself; None if it showed none.
        usual: start by the median of past waits; None of too few.
    """

    made_at: float
    start: float
    end: float
    start_interval: TimeInterval | None = None
    end_interval: TimeInterval | None = None
    played: tuple[float, float] | None = None
    scheduler: float | None = None
    usual: float | None = None


class JobForecast(Struct, kw_only=True, gc=False):
    """The forecasts of one job.

    Attributes:
        predicted: runtime as it was last predicted, in seconds.
        points: forecasts, the first and the last one among them; thinned between the two.
        position: place among the jobs that wait for the same processors, from 1.
        waits: whether the job waited when it was forecast last.
        basis: of ``predicted``; None where the caller has predicted the job.
        is_reached: whether the last forecast reached the job.
        arrived_unplanned: whether the first forecast with the job did not reach it.
    """

    predicted: float | None
    points: list[ForecastPoint] = field(default_factory=list)
    before: ForecastPoint | None = None
    position: int | None = None
    waits: bool = True
    basis: Basis | None = None
    is_reached: bool = True
    arrived_unplanned: bool = False

    @property
    def last(self) -> ForecastPoint | None:
        """Return the last forecast; None if it did not reach the job."""
        return self.points[-1] if self.points and self.is_reached else None

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
        seen_at: time of the last snapshot that contained the job.
    """

    job: LiveJob
    forecast: JobForecast
    seen_at: float


class LiveQueue(Struct, kw_only=True):
    """The latest queue of a cluster, and the forecasts of its jobs.

    Attributes:
        forecast_at: time of the snapshot that was forecast last.
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
        told: how near the told starts of the last jobs came.
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
    told: ToldRecord = field(default_factory=ToldRecord)


class ForecastState(Struct, frozen=True, kw_only=True):
    """The last forecast of a queue; without a queue there is none.

    Attributes:
        made_at: time of the snapshot that was forecast last; None before the first.
        no_interval: reason why it has no intervals; None if it has.
        is_old: whether a newer snapshot is overdue.
    """

    made_at: float | None = None
    age: float | None = None
    no_interval: NoInterval | None = None
    is_old: bool = False


def forecast_state(queue: LiveQueue | None, now: float, max_age: float) -> ForecastState:
    """Return the state of the last forecast of a queue, if there is a queue.

    Args:
        queue: None if none was handed over.
        max_age: seconds after which a newer snapshot is overdue.
    """
    if queue is None:
        return ForecastState()
    made_at = queue.forecast_at
    return ForecastState(
        made_at=made_at,
        age=None if made_at is None else round(now - made_at, 3),
        no_interval=queue.no_interval,
        is_old=now - queue.snapshot.taken_at > max_age,
    )


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
    before: LiveQueue,
) -> dict[str, JobForecast]:
    """Return the forecasts of each job by job id: those before, and the new one.

    Args:
        before: queue before; what it has told calibrates the intervals of starts.
    """
    forecasts = {
        job.job_id: _continued(before.forecasts.get(job.job_id), job, estimate)
        for job, estimate in zip(snapshot.jobs, estimates, strict=True)
    }
    now, past = snapshot.now, PastWaits.of(before.told.waits)
    for pool, times in zip(pools, played, strict=True):
        for row, place in enumerate(pool.running):
            job = snapshot.jobs[place]
            forecasts[job.job_id].add(running_point(times, row, now, job.start_time))
        calibration = Calibration(before.told, times.coverage)
        for row, place in enumerate(reached_places(pool, times)):
            job = snapshot.jobs[place]
            point = calibrated(waiting_point(times, row, now), calibration)
            forecasts[job.job_id].add(beside_others(point, job, past))
    reached = chain.from_iterable(map(reached_places, pools, played))
    _note_places(snapshot, forecasts, set(reached))
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
        forecast.is_reached = place in reached
        if not forecast.is_reached and not forecast.points:
            forecast.arrived_unplanned = True


def reached_places(pool: PoolQueue, played: PoolForecast) -> Sequence[int]:
    """Return the places of the waiting jobs of a pool that the forecast reaches."""
    return pool.waiting[: len(played.starts.expected)]


def is_planned(forecast: JobForecast | None, rules: SchedulerRules) -> bool:
    """Return whether the scheduler plans a job already, as far as is known."""
    if forecast is None or not forecast.is_reached:
        return forecast is None
    point, window = forecast.last, rules.planning_window
    return point is None or window is None or point.start <= point.made_at + window


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


def calibrated(point: ForecastPoint, calibration: Calibration) -> ForecastPoint:
    """Return the forecast with a calibrated interval of the start; the end moves with it."""
    start, end = point.start_interval, point.end_interval
    if start is None or end is None:
        return point
    seconds = (start.lower, point.start, start.upper)
    lower, upper = calibration.interval(*(each - point.made_at for each in seconds))
    moved = TimeInterval(_time(point.made_at, lower), _time(point.made_at, upper), start.coverage)
    ends = (
        min(point.end, _time(end.lower, moved.lower - start.lower)),
        max(point.end, _time(end.upper, moved.upper - start.upper)),
    )
    return replace(
        point,
        start_interval=moved,
        end_interval=TimeInterval(*ends, end.coverage),
        played=(start.lower, start.upper),
    )


def beside_others(point: ForecastPoint, job: LiveJob, past: PastWaits) -> ForecastPoint:
    """Return the forecast with the starts that the scheduler and past waits tell."""
    submission = job.submission
    waited = max(0.0, point.made_at - submission.submit_time)
    wait = past.wait_of(submission.queue or "", waited)
    usual = None if wait is None else submission.submit_time + wait
    return replace(point, scheduler=job.scheduler_start, usual=usual)


def _interval(times: JobTimes, row: int, now: float, coverage: float | None) -> TimeInterval | None:
    if times.lower is None or times.upper is None or coverage is None:
        return None
    return TimeInterval(_time(now, times.lower[row]), _time(now, times.upper[row]), coverage)


def _time(now: float, seconds: float) -> float:
    """Return the time to the millisecond, as a point and its interval are shown."""
    return round(now + float(seconds), 3)
