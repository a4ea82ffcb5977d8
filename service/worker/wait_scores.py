"""Scores of forecast waits: jobs that started or left, and how far their forecasts were off."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from service.live_queue.forecast_record import ForecastPoint, JobForecast, LeftQueue, LiveQueue
from service.live_queue.snapshot import LiveJob, QueueSnapshot
from service.live_queue.told_starts import (
    MOST_ERRORS,
    MOST_MISSES,
    SHORTEST,
    WEEK,
    Missed,
    ToldRecord,
    horizon_of,
    with_waits,
)
from service.store import NEAR_MINUTES, StartScore, WaitScore

ARRIVAL, SINCE = "arrival", "since"

TELLERS = ("walltimed", "scheduler", "past-waits")
"""Sources of told starts, in the order of the fields of a forecast."""

PATIENCE_SECONDS = 3600.0
"""Longest wait for the completion of a job that left the queue without being seen running."""

MOST_LEFT = 10_000
"""Most jobs that have left without being seen running and are remembered, the latest ones."""

MOST_WAITS = 500
"""Most waits of jobs that were not planned at their arrival that are remembered of each queue."""

ENOUGH_WAITS = 10
"""Fewest waits whose median is told."""


class StartedJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job that was forecast while it waited, and then started; times are Unix seconds."""

    job: LiveJob
    forecast: JobForecast
    start_time: float


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
    """
    present = {job.job_id for job in newer.jobs}
    left = dict(queue.left)
    for job in queue.snapshot.jobs:
        forecast = queue.forecasts.get(job.job_id)
        if forecast is not None and forecast.waits and job.job_id not in present:
            left[job.job_id] = LeftQueue(job=job, forecast=forecast, seen_at=queue.snapshot.now)
    recent = {
        job_id: each
        for job_id, each in left.items()
        if newer.now - each.seen_at <= PATIENCE_SECONDS and job_id not in present
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
            real_wait(started),
            abs(error),
            error,
            interval is not None,
            interval is not None and interval.holds(started.start_time),
        ]
    )


def told_record(before: ToldRecord, started: Sequence[StartedJob]) -> ToldRecord:
    """Return the record of told starts with those of jobs that have started.

    Of the forecasts of a job with the same time to come, the middle one is remembered: they are
    alike, and a hundred of them are no better than one.
    """
    missed = {name: list(known) for name, known in before.misses.items()}
    for each in started:
        by_horizon: dict[str, list[ForecastPoint]] = defaultdict(list)
        for point in points_before_start(each):
            if point.played is not None and point.start_interval is not None:
                by_horizon[horizon_of(point.start - point.made_at)].append(point)
        for name, points in by_horizon.items():
            middle = points[len(points) // 2]
            missed.setdefault(name, []).append(missed_by(middle, each.start_time))
    first = [abs(points[0].start - each.start_time) for each, points in first_points(started)]
    waits = [(each.job.submission.queue or "", real_wait(each)) for each in started]
    return ToldRecord(
        misses={name: known[-MOST_MISSES:] for name, known in missed.items()},
        errors=[*before.errors, *first][-MOST_ERRORS:],
        waits=with_waits(before.waits, waits),
    )


def real_wait(started: StartedJob) -> float:
    """Return the seconds from the submission of a job to its start."""
    return max(0.0, started.start_time - started.job.submission.submit_time)


def points_before_start(started: StartedJob) -> list[ForecastPoint]:
    """Return the forecasts of a job that were made before its start."""
    return [point for point in started.forecast.points if point.made_at <= started.start_time]


def first_points(
    started: Sequence[StartedJob],
) -> Iterator[tuple[StartedJob, list[ForecastPoint]]]:
    """Yield jobs that were forecast at their arrival, with their forecasts."""
    for each in started:
        points = points_before_start(each)
        if points and not each.forecast.arrived_unplanned:
            yield each, points


def missed_by(point: ForecastPoint, start_time: float) -> Missed:
    """Return how far the played interval of a forecast missed the start, in its widths."""
    lower, upper = point.played or (point.start, point.start)
    width, shown = max(SHORTEST, upper - lower), point.start_interval
    return Missed(
        before=(lower - start_time) / width,
        after=(start_time - upper) / width,
        is_held=shown is not None and shown.holds(start_time),
        is_early=shown is not None and start_time < shown.lower,
    )


def start_scores(started: Sequence[StartedJob]) -> list[StartScore]:
    """Return sums of the errors of told starts by week, queue, time to come and teller.

    The forecasts of one job with the same time to come count as one together.
    """
    columns = len(StartScore.__struct_fields__) - 4
    sums: dict[tuple[int, str, str, str], NDArray[np.float64]] = defaultdict(
        lambda: np.zeros(columns)
    )
    for each in started:
        week, queue = int(each.start_time // WEEK), each.job.submission.queue or ""
        for horizon, points in points_by_horizon(each).items():
            for point in points:
                for place, teller in enumerate(TELLERS):
                    terms = told_terms(point, each.start_time, place)
                    sums[week, queue, horizon, teller] += terms / len(points)
    names = StartScore.__struct_fields__
    return [
        StartScore(**dict(zip(names, (*key, *sums[key].tolist()), strict=True)))
        for key in sorted(sums)
    ]


def points_by_horizon(started: StartedJob) -> dict[str, list[ForecastPoint]]:
    """Return the forecasts of a job by the time still to come, and the first one at arrival."""
    found: dict[str, list[ForecastPoint]] = defaultdict(list)
    points = points_before_start(started)
    for point in points:
        found[horizon_of(started.start_time - point.made_at)].append(point)
    if points and not started.forecast.arrived_unplanned:
        found[ARRIVAL] = points[:1]
    return found


def told_terms(point: ForecastPoint, start_time: float, place: int) -> NDArray[np.float64]:
    """Return the columns of ``StartScore`` after its key, of a teller by its place."""
    told = (point.start, point.scheduler, point.usual)[place]
    error = 0.0 if told is None else told - start_time
    interval = point.start_interval if place == 0 else None
    near = [told is not None and abs(error) <= 60 * minutes for minutes in NEAR_MINUTES]
    is_held = interval is not None and interval.holds(start_time)
    terms = [1.0, told is not None, abs(error), error, *near, interval is not None, is_held]
    return np.array(terms, np.float64)
