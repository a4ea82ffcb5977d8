"""Facts of jobs in a queue: those that were sent when their submissions were predicted."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from predictors.facts import Facts
from predictors.jobs import Completion, Submission
from service.live_queue.snapshot import LiveJob, QueueSnapshot
from service.store import ReportedCompletion

SOUGHT_SECONDS = 600.0
"""Age of a submission up to which its prediction is looked for again: it may be stored late."""

FindFacts = Callable[[Sequence[ReportedCompletion]], list[Facts | None]]


def with_facts(
    snapshot: QueueSnapshot, before: QueueSnapshot | None, find: FindFacts
) -> QueueSnapshot:
    """Return the queue with the facts of its jobs, as far as they are recorded.

    Args:
        before: queue that was forecast before, whose facts count.
        find: returns the facts of the predictions of jobs.
    """
    known = {job.job_id: job.submission for job in before.jobs} if before else {}
    facts = {job.job_id: each for job in snapshot.jobs if (each := _known_of(job, known))}
    sought = {
        job.array or job.job_id: job
        for job in snapshot.jobs
        if job.job_id not in facts and _is_sought(job, known, snapshot.now)
    }
    asked = [_as_if_ended(job, snapshot.now) for job in sought.values()]
    found = dict(zip(sought, find(asked), strict=True)) if asked else {}
    jobs = (
        _with(job, facts.get(job.job_id) or found.get(job.array or job.job_id))
        for job in snapshot.jobs
    )
    return replace(snapshot, jobs=tuple(jobs)) if facts or any(found.values()) else snapshot


def _known_of(job: LiveJob, known: Mapping[str, Submission]) -> Facts | None:
    """Return the facts of a job that are known already."""
    before = known.get(job.job_id)
    is_same = before is not None and _identity(before) == _identity(job.submission)
    return before.facts if before is not None and is_same else None


def _identity(submission: Submission) -> tuple[str | None, float]:
    """Return who submitted a job and when: resource managers use job ids again."""
    return submission.user, submission.submit_time


def _is_sought(job: LiveJob, known: Mapping[str, Submission], now: float) -> bool:
    return job.job_id not in known or now - job.submission.submit_time < SOUGHT_SECONDS


def _as_if_ended(job: LiveJob, now: float) -> ReportedCompletion:
    """Return a job as if it had ended now; its prediction is found in the same way."""
    submission, start = job.submission, job.start_time
    started = submission.submit_time if start is None else start
    run = Completion(submission=submission, start_time=started, end_time=now, runtime=0.0)
    return ReportedCompletion(completion=run, prediction_id=job.prediction_id)


def _with(job: LiveJob, facts: Facts | None) -> LiveJob:
    return job if facts is None else replace(job, submission=replace(job.submission, facts=facts))
