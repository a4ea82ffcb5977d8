"""Job ClassAds as ``condor_history -json`` or ``-jsonl`` prints them; few have a limit."""

from collections.abc import Iterator
from datetime import UTC
from pathlib import PurePosixPath
from typing import Any

import msgspec
from msgspec import Raw, Struct

from predictors.jobs import Status
from service.adapters.documents import decoded
from service.adapters.runs import Reason, SkippedError, ended_run
from service.adapters.values import count, moment, number, text
from service.store import ReportedCompletion

KIBIBYTES_PER_MEBIBYTE = 1024
REMOVED, COMPLETED = 3, 4
"""Values of JobStatus; a job that has another one is still in the queue."""

OVER_ITS_LIMIT = frozenset({46, 47})
"""Hold codes JobDurationExceeded and JobExecuteExceeded."""


class Job(Struct, gc=False):
    """The attributes that are read; an expression that was never evaluated comes as text.

    Their names are written as the user wrote them: ``+maxruntime`` is ``MaxRuntime``.
    """

    global_job_id: Any = None
    job_status: Any = None
    owner: Any = None
    acct_group: Any = None
    job_batch_name: Any = None
    cmd: Any = None
    q_date: Any = None
    job_current_start_date: Any = None
    completion_date: Any = None
    last_remote_wall_clock_time: Any = None
    allowed_execute_duration: Any = None
    allowed_job_duration: Any = None
    max_runtime: Any = None
    request_cpus: Any = None
    request_memory: Any = None
    exit_code: Any = None
    exit_by_signal: Any = None
    last_hold_reason_code: Any = None


_JOBS = msgspec.json.Decoder(list[Raw])
_AD = msgspec.json.Decoder(dict[str, Any])
_FIELDS = {name.replace("_", ""): name for name in Job.__struct_fields__}


def read_history(
    body: bytes, *, cluster: str | None = None
) -> Iterator[tuple[int, ReportedCompletion | SkippedError]]:
    """Number (from 1) and last run of every job, or why it is skipped.

    With ``-jsonl`` each line is a job.

    Raises:
        SkippedError: the document is no list of ClassAds.
    """
    if body.lstrip().startswith(b"{"):
        jobs = [line for line in body.splitlines() if line.strip()]
    else:
        jobs = [bytes(job) for job in decoded(body, _JOBS)]
    for position, job in enumerate(jobs, start=1):
        try:
            yield position, completion_of(job, cluster=cluster)
        except SkippedError as skipped:
            yield position, skipped


def completion_of(ad: bytes, *, cluster: str | None = None) -> ReportedCompletion:
    """The last run of the job that a ClassAd tells of; earlier ones left only a sum.

    The request is the limit that HTCondor enforces, ``AllowedExecuteDuration`` or
    ``AllowedJobDuration``, else ``MaxRuntime``, which many sites enforce by a policy of their own.

    Raises:
        SkippedError: it tells of no run that ended, or of one without a limit.
    """
    attributes = {name.lower(): value for name, value in decoded(ad, _AD).items()}
    job = Job(**{_FIELDS[name]: attributes[name] for name in _FIELDS.keys() & attributes.keys()})
    if job.job_status is None:
        raise SkippedError(Reason.MALFORMED)
    if job.job_status not in (REMOVED, COMPLETED):
        raise SkippedError(Reason.NOT_ENDED)
    start, elapsed = (
        moment(job.job_current_start_date, UTC),
        number(job.last_remote_wall_clock_time),
    )
    if start is None:
        raise SkippedError(Reason.NEVER_RAN)
    limits = (job.allowed_execute_duration, job.allowed_job_duration, job.max_runtime)
    memory = number(job.request_memory)
    return ended_run(
        job_id=text(job.global_job_id),
        submit=moment(job.q_date, UTC),
        start=start,
        end=_end(job, start, elapsed),
        elapsed=elapsed,
        requested=next((limit for each in limits if (limit := number(each))), None),
        status=_status(job),
        cluster=cluster,
        user=text(job.owner),
        group=text(job.acct_group),
        application=_application(job),
        processors=count(job.request_cpus),
        memory=None if memory is None else memory * KIBIBYTES_PER_MEBIBYTE,
    )


def _end(job: Job, start: float, elapsed: float | None) -> float | None:
    """When the run ended: a job that was removed may have been held for long since then."""
    if job.job_status == COMPLETED:
        return moment(job.completion_date, UTC)
    return None if elapsed is None else start + elapsed


def _status(job: Job) -> Status:
    if job.job_status == REMOVED:
        is_over = job.last_hold_reason_code in OVER_ITS_LIMIT
        return Status.TIMEOUT if is_over else Status.CANCELLED
    is_well = job.exit_code == 0 and job.exit_by_signal is not True
    return Status.COMPLETED if is_well else Status.FAILED


def _application(job: Job) -> str | None:
    """What the user calls the job, else its program."""
    program = text(job.cmd)
    return text(job.job_batch_name) or (PurePosixPath(program).name if program else None)
