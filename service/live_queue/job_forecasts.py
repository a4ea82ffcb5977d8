"""Forecasts of a queue's jobs from their first sight until now, and the scores of their waits."""

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import structlog
from msgspec import Struct, field
from numpy.typing import NDArray

from predictors.jobs import Basis
from service.live_queue.playing import JobTimes, PoolForecast, PoolQueue
from service.live_queue.snapshot import (
    JobState,
    LiveJob,
    NoInterval,
    Pool,
    QueueSnapshot,
    RuntimeEstimate,
    SchedulerRules,
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
    """

    predicted: float
    points: list[ForecastPoint] = field(default_factory=list)
    before: ForecastPoint | None = None
    position: int | None = None
    waits: bool = True
    basis: Basis | None = None

    @property
    def last(self) -> ForecastPoint | None:
        """Return the last forecast."""
        return self.points[-1] if self.points else None

    def add(self, point: ForecastPoint) -> None:
        """Add one more forecast."""
        self.before = self.last
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
    """

    snapshot: QueueSnapshot
    received_at: float
    forecast_at: float | None = None
    forecasts: dict[str, JobForecast] = field(default_factory=dict)
    left: dict[str, LeftQueue] = field(default_factory=dict)
    trouble: str | None = None
    no_interval: NoInterval | None = None


_decode = msgspec.json.Decoder(LiveQueue).decode


def packed(queue: LiveQueue) -> bytes:
    """Return the stored form of a queue."""
    return zlib.compress(msgspec.json.encode(queue), FASTEST)


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
    for pool, times in zip(pools, played, strict=True):
        for row, place in enumerate(pool.running):
            job = snapshot.jobs[place]
            forecasts[job.job_id].add(running_point(times, row, now, job.start_time))
        for row, place in enumerate(pool.waiting):
            forecast = forecasts[snapshot.jobs[place].job_id]
            forecast.position = row + 1
            forecast.add(waiting_point(times, row, now))
    return forecasts


def _continued(before: JobForecast | None, job: LiveJob, estimate: RuntimeEstimate) -> JobForecast:
    """Return a copy to which the new forecast is added.

    A job that ran and waits again, as after a requeue, is forecast as if it had just arrived.
    """
    waits = job.state is not JobState.RUNNING
    if before is not None and waits and not before.waits:
        before = None
    return JobForecast(
        predicted=estimate.runtime,
        points=list(before.points) if before else [],
        before=before.before if before else None,
        waits=waits,
        basis=estimate.basis,
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


def wait_scores(started: Sequence[StartedJob]) -> list[WaitScore]:
    """Return sums of the errors of forecast waits, by queue and by when the forecast was made.

    The later forecasts of one job count as one job together.
    """
    sums: dict[tuple[str, str], NDArray[np.float64]] = defaultdict(lambda: np.zeros(6))
    for each in started:
        points = [point for point in each.forecast.points if point.made_at <= each.start_time]
        queue = each.job.submission.queue or ""
        for place, point in enumerate(points):
            made, weight = (SINCE, 1.0 / (len(points) - 1)) if place else (ARRIVAL, 1.0)
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
