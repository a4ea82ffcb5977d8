"""The jobs of a trace as the domain has them: a submission and how its run ended."""

from collections.abc import Iterator, Mapping
from typing import Any

from predictors.jobs import DEFAULT_CLUSTER, Completion, Status, Submission
from simulator.traces.trace import Integers, Reals, Trace

STATUSES: Mapping[int, Status] = {
    0: Status.FAILED,
    1: Status.COMPLETED,
    2: Status.PREEMPTED,  # a part of a job that went on later
    3: Status.COMPLETED,  # the last part of a job that completed
    4: Status.FAILED,  # the last part of a job that failed
    5: Status.CANCELLED,
}


def completions(trace: Trace, *, cluster: str = DEFAULT_CLUSTER) -> Iterator[Completion]:
    """The runs of a trace that was cleaned, in the order of its lines.

    A job starts at submit + wait, or at once where the wait is unknown or negative. SWF has no
    project. Its executable is our application, and its -1 is ``None``.
    """
    submits = (trace.submit + trace.unix_start).tolist()
    waits = trace.wait.clip(min=0.0).tolist()
    columns = zip(
        submits,
        waits,
        trace.run.tolist(),
        trace.status.tolist(),
        _submissions(trace, submits, cluster),
        strict=True,
    )
    for submit, wait, run, status, submission in columns:
        yield Completion(
            submission=submission,
            start_time=submit + wait,
            end_time=submit + wait + run,
            runtime=run,
            status=STATUSES.get(status, Status.UNKNOWN),
        )


def _submissions(trace: Trace, submits: list[float], cluster: str) -> Iterator[Submission]:
    columns = zip(
        trace.job.tolist(),
        submits,
        trace.requested_time.tolist(),
        _names(trace.user),
        _names(trace.group),
        _names(trace.queue),
        _names(trace.executable),
        _known(trace.requested_processors),
        _known(trace.allocated_processors),
        _known(trace.requested_memory),
        strict=True,
    )
    for job, submit, request, user, group, queue, application, asked, given, memory in columns:
        yield Submission(
            requested_walltime=request,
            submit_time=submit,
            cluster=cluster,
            job_id=str(job),
            user=user,
            group=group,
            queue=queue,
            application=application,
            requested_processors=asked or given,
            requested_memory=memory,
        )


def _names(column: Integers) -> list[str | None]:
    """Numbers as names; a number is shared by many jobs, and so is its text."""
    names: dict[int, str | None] = {
        number: str(number) if number >= 0 else None for number in set(column.tolist())
    }
    return [names[number] for number in column.tolist()]


def _known(column: Integers | Reals) -> list[Any]:
    """Positive numbers, and ``None`` for what is not known."""
    return [value if value > 0 else None for value in column.tolist()]
