"""Read the output of ``sacct --json``: one meaning, three shapes (21.08-22.05, 23.02, 24.05 on)."""

from collections.abc import Iterator
from datetime import UTC
from typing import Any

import msgspec
from msgspec import Struct

from service.adapters.runs import Reason, SkippedError, decoded, ended_run
from service.adapters.slurm_fields import (
    KIBIBYTES_PER_MEBIBYTE,
    Jobs,
    prediction_id_of,
    queue_of,
    requested_limit,
    status_of,
)
from service.adapters.values import MINUTE, count, moment, number, text
from service.store import ReportedCompletion


class Job(Struct, gc=False):
    """The fields that are read; all others, the job script first, are never decoded."""

    job_id: Any = None
    name: Any = None
    user: Any = None
    group: Any = None
    account: Any = None
    partition: Any = None
    cluster: Any = None
    submit_line: Any = None
    allocation_nodes: Any = None
    state: Any = None
    time: Any = None
    tres: Any = None
    required: Any = None
    comment: Any = None


_JOBS = msgspec.json.Decoder(Jobs)
_JOB = msgspec.json.Decoder(Job)


def read_sacct_json(
    body: bytes, *, cluster: str | None = None
) -> Iterator[tuple[int, ReportedCompletion | SkippedError]]:
    """Number (from 1) and run of every job, or why it is skipped.

    Raises:
        SkippedError: the document is none that ``sacct --json`` prints.
    """
    for position, job in enumerate(decoded(body, _JOBS).jobs, start=1):
        try:
            yield position, completion_of(bytes(job), cluster=cluster)
        except SkippedError as skipped:
            yield position, skipped


def completion_of(body: bytes, *, cluster: str | None = None) -> ReportedCompletion:
    """The run that one job of the document tells of.

    Raises:
        SkippedError: it tells of no run that ended.
    """
    job = decoded(body, _JOB)
    if not isinstance(job.time, dict):  # squeue's jobs are in a list of the same name
        raise SkippedError(Reason.MALFORMED)
    time = job.time
    if not count(job.allocation_nodes) and not number(time.get("elapsed")):
        raise SkippedError(Reason.NEVER_RAN)
    minutes = number(time.get("limit"))
    requested = _requested(job.tres)
    return ended_run(
        job_id=text(job.job_id),
        submit=moment(time.get("submission"), UTC),
        start=moment(time.get("start"), UTC),
        end=moment(time.get("end"), UTC),
        elapsed=number(time.get("elapsed")),
        requested=requested_limit(
            submit_line=job.submit_line or None,
            final=None if minutes is None else minutes * MINUTE,
        ),
        status=status_of(_table(job.state).get("current")),
        cluster=cluster or text(job.cluster),
        user=text(job.user),
        group=text(job.group),
        project=text(job.account),
        queue=queue_of(job.partition),
        application=text(job.name),
        processors=count(requested.get("cpu")) or count(_table(job.required).get("CPUs")),
        memory=(number(requested.get("mem")) or 0) * KIBIBYTES_PER_MEBIBYTE,
        prediction_id=prediction_id_of(_table(job.comment).get("administrator")),
    )


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _requested(tres: Any) -> dict[str, Any]:
    """Return the requested amounts by resource type: processors, MiB of memory, nodes."""
    entries = _table(tres).get("requested")
    tables = [_table(entry) for entry in entries] if isinstance(entries, list) else []
    return {kind: t.get("count") for t in tables if isinstance(kind := t.get("type"), str)}
