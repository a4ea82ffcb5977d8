"""Starts and ends that were reported after the resource manager showed a queue."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from service.live_queue.snapshot import JobState, LiveJob, QueueSnapshot

SAME_START = 1.0
"""Most seconds between the starts of one run, as a queue and its record show them."""


class Run(Struct, frozen=True, gc=False):
    """The start and the end of a run that has ended, in Unix seconds."""

    start: float
    end: float


class ReportedChanges(Struct, frozen=True):
    """Reported changes by job id: starts of jobs, and last runs that have ended."""

    starts: Mapping[str, float]
    runs: Mapping[str, Run]


def with_changes(snapshot: QueueSnapshot, reported: ReportedChanges, now: float) -> QueueSnapshot:
    """Return the queue without ended jobs, started jobs running; unchanged if nothing is new.

    A waiting job starts or leaves only by a start since ``taken_at``, as resource managers count
    whole seconds: of earlier ones they knew, and the job waits again.

    Args:
        now: latest time of the changed queue: the resource manager's clock may be ahead.
    """
    running: list[LiveJob] = []
    waiting: list[LiveJob] = []
    times: list[float] = []
    for job in snapshot.jobs:
        run = reported.runs.get(job.job_id)
        if run is not None and _is_over(job, run, snapshot.taken_at):
            times.append(run.end)
            continue
        start = reported.starts.get(job.job_id)
        if job.state is JobState.RUNNING:
            running.append(job)
        elif start is not None and start >= int(snapshot.taken_at):
            times.append(start)
            running.append(replace(job, state=JobState.RUNNING, start_time=start))
        else:
            waiting.append(job)
    if not times:
        return snapshot
    changed_at = max(snapshot.now, min(now, max(times)))
    return replace(snapshot, jobs=(*running, *waiting), changed_at=changed_at)


def _is_over(job: LiveJob, run: Run, taken_at: float) -> bool:
    """Return whether an ended run is that which is shown, or a later one.

    Resource managers use job ids again, and a requeued job has several runs.
    """
    is_shown = job.start_time is not None and abs(run.start - job.start_time) <= SAME_START
    return is_shown or run.start >= int(taken_at)
