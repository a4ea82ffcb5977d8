"""How far off forecast waits were, once jobs have started."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from service.queues.outlook import Departed, LiveQueue, Outlook, Point
from service.queues.snapshot import LiveJob, QueueSnapshot

ARRIVAL, SINCE = "arrival", "since"

PATIENCE_SECONDS = 3600.0
"""How long the completion is waited for of a job that nobody saw running."""

MOST_DEPARTED = 10_000
"""Jobs that have left unseen and are remembered, those that left last."""


class StartedJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job that was forecast while it waited, and then started."""

    job: LiveJob
    outlook: Outlook
    start_time: float


class WaitSums(Struct, kw_only=True):
    """Sums over jobs that have started; its fields are columns of the store's table."""

    jobs: float = 0.0
    wait: float = 0.0
    absolute_error: float = 0.0
    error: float = 0.0
    intervals: float = 0.0
    covered: float = 0.0

    def add(self, forecast: Point, started: StartedJob, weight: float = 1.0) -> None:
        """Compare one forecast with what came, which counts ``weight`` of a job."""
        error = forecast.start - started.start_time
        self.jobs += weight
        self.wait += weight * max(0.0, started.start_time - started.job.submission.submit_time)
        self.absolute_error += weight * abs(error)
        self.error += weight * error
        if forecast.start_span is not None:
            self.intervals += weight
            self.covered += weight * forecast.start_span.holds(started.start_time)


Sums = Mapping[tuple[str, str], WaitSums]
"""By queue, which is empty where a job names none, and by when the forecast was made."""


def started_jobs(queue: LiveQueue, newer: QueueSnapshot) -> list[StartedJob]:
    """The jobs that waited in ``queue`` when it was forecast last, and run in a newer snapshot."""
    found = []
    for job in newer.jobs:
        outlook = queue.outlooks.get(job.job_id)
        if outlook is not None and outlook.waits and job.start_time is not None:
            found.append(StartedJob(job=job, outlook=outlook, start_time=job.start_time))
    return found


def departed_jobs(
    queue: LiveQueue, before: QueueSnapshot, newer: QueueSnapshot
) -> dict[str, Departed]:
    """The jobs that waited before and are in the queue no more, and those that had left earlier.

    Args:
        queue: the outlooks, and who had left.
        before: the last snapshot; the forecast that jobs waited in may be older.
        newer: the one that came after it.
    """
    here = {job.job_id for job in newer.jobs}
    left = dict(queue.departed)
    for job in before.jobs:
        outlook = queue.outlooks.get(job.job_id)
        if outlook is not None and outlook.waits and job.job_id not in here:
            left[job.job_id] = Departed(job=job, outlook=outlook, seen_at=before.taken_at)
    fresh = {
        job_id: each
        for job_id, each in left.items()
        if newer.taken_at - each.seen_at <= PATIENCE_SECONDS and job_id not in here
    }
    return dict(list(fresh.items())[-MOST_DEPARTED:])


def ran_unseen(
    departed: Mapping[str, Departed], starts: Mapping[str, float]
) -> Iterator[StartedJob]:
    """Those of the jobs that have left of which a completion says when they started."""
    for job_id, start in starts.items():
        each = departed[job_id]
        if start >= each.job.submission.submit_time:
            yield StartedJob(job=each.job, outlook=each.outlook, start_time=start)


def sums_of(started: Sequence[StartedJob]) -> dict[tuple[str, str], WaitSums]:
    """How far off the first forecasts were, and all later ones, each job counting one."""
    sums: dict[tuple[str, str], WaitSums] = {}
    for each in started:
        made = [point for point in each.outlook.points if point.made_at <= each.start_time]
        if not made:
            continue
        queue = each.job.submission.queue or ""
        sums.setdefault((queue, ARRIVAL), WaitSums()).add(made[0], each)
        for later in made[1:]:
            since = sums.setdefault((queue, SINCE), WaitSums())
            since.add(later, each, 1.0 / (len(made) - 1))
    return sums
