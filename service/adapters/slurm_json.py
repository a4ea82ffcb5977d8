"""Read Slurm's JSON about runs: jobcomp's documents (22.05 to 26.05) and ``sacct --json``.

The output of ``sacct --json`` has three shapes (21.08 to 22.05, 23.02, 24.05 on).
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from predictors.jobs import Completion, Status
from service.adapters.runs import Reason, SkippedError, check_times, ended_run
from service.adapters.slurm_fields import (
    KIBIBYTES_PER_MEBIBYTE,
    gpus_of,
    is_session,
    prediction_id_of,
    queue_of,
    requested_limit,
    status_of,
    trackable_resources,
)
from service.adapters.submission_facts import gpus_in, nodes_in, reported_facts
from service.adapters.values import count, moment, number, text
from terminal.words import MINUTE

if TYPE_CHECKING:
    from service.store import ReportedCompletion

RUNNING = "RUNNING"
"""State of a job in the document that a plugin sends when it starts."""

FREE_LENGTH, FEWEST_BYTES = 1 << 20, 8
"""Bytes of a document whose values are not counted, and of a longer one for each value: every job
of a document becomes an object that is larger. Compact output of sacct has 17, usual 28."""

Document = TypeVar("Document")


class Jobs(Struct, gc=False):
    """The output of ``--json``, with undecoded jobs: a malformed job must not affect others."""

    jobs: list[Raw]


class JobcompDocument(Struct, gc=False):
    """The fields of a jobcomp document that are read; the others are never decoded."""

    jobid: Any = None
    username: Any = None
    groupname: Any = None
    account: Any = None
    partition: Any = None
    job_name: Any = None
    cluster: Any = None
    state: Any = None
    elapsed: Any = None
    time_limit: Any = None
    total_cpus: Any = None
    total_nodes: Any = None
    tres_req: Any = None
    admin_comment: Any = None
    work_dir: Any = None
    script: Any = None
    qos: Any = None
    alloc_node: Any = None
    submit: Any = field(name="@submit", default=None)
    start: Any = field(name="@start", default=None)
    end: Any = field(name="@end", default=None)


_JOBCOMP = msgspec.json.Decoder(JobcompDocument)


def jobcomp_completion(body: bytes, *, cluster: str | None = None) -> "ReportedCompletion":
    """Return the run in a jobcomp document; ``cluster`` overrides the document's own.

    Times in it are UTC without saying so. ``time_limit`` is in seconds, the one in force at the
    end, and absent when there was none.

    Raises:
        SkippedError: the document contains no run that ended.
    """
    document = _decoded(body, _JOBCOMP)
    status = status_of(document.state)
    return _jobcomp_run(document, status, document.end, cluster)


def jobcomp_start(body: bytes, *, cluster: str | None = None) -> Completion | None:
    """Return the run in a document about a job that runs, as if it had ended at once.

    None stands for any other document.
    """
    try:
        document = _decoded(body, _JOBCOMP)
        if document.state != RUNNING:
            return None
        document.elapsed = None
        return _jobcomp_run(document, Status.UNKNOWN, document.start, cluster).completion
    except SkippedError:
        return None


def _jobcomp_run(
    document: JobcompDocument, status: Status, end: Any, cluster: str | None
) -> "ReportedCompletion":
    """Return the run in a document that ends at a time."""
    if not count(document.total_nodes):
        raise SkippedError(Reason.NEVER_RAN)
    times = {"@submit": document.submit, "@start": document.start, "@end": end}
    check_times(times, times)
    processors, memory = trackable_resources(document.tres_req)
    return ended_run(
        job_id=text(document.jobid),
        submit=moment(document.submit, UTC),
        start=moment(document.start, UTC),
        end=moment(end, UTC),
        elapsed=number(document.elapsed),
        requested=number(document.time_limit),
        status=status,
        cluster=cluster or text(document.cluster),
        user=text(document.username),
        group=text(document.groupname),
        project=text(document.account),
        queue=queue_of(document.partition),
        application=text(document.job_name),
        processors=count(document.total_cpus) or processors,
        memory=memory,
        prediction_id=prediction_id_of(document.admin_comment),
        facts=reported_facts(
            work_dir=document.work_dir,
            script=document.script,
            qos=document.qos,
            nodes=nodes_in(document.tres_req),
            gpus=gpus_in(document.tres_req),
            submit_host=document.alloc_node,
        ),
    )


class SacctJob(Struct, gc=False):
    """The fields of a job in ``sacct --json`` that are read; the others are never decoded."""

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
    working_directory: Any = None
    qos: Any = None
    constraints: Any = None
    association: Any = None


_JOBS = msgspec.json.Decoder(Jobs)
_BEGINNING = re.compile(rb"^[ \t]*(?:\{|\[\s*\{)", re.MULTILINE)
_SPACE = re.compile(r"\s*")
_OPENING = re.compile(r"\{|\[\s*\{")
_LINES = re.compile(rb'\s*\{[^\r\n]*"(?:job_?id|@start)"[^\r\n]*\}\s*(?:[\r\n]|$)')
"""A file of which each line is a job, as tools for JSON and searches write them."""

_DOCUMENT = re.compile(rb'\s*\{\s*"(?:jobs|meta|errors|warnings)"')

_JOB = msgspec.json.Decoder(SacctJob)


def read_sacct_json(
    body: bytes, *, cluster: str | None = None
) -> Iterator["tuple[int, ReportedCompletion | SkippedError]"]:
    """Yield number (from 1) and run of every job, or the reason to skip it.

    Each line may be a job, too, or a document of jobcomp. Lines before the document, such as
    warnings, are malformed ones.

    Raises:
        SkippedError: the document is none that ``sacct --json`` prints.
    """
    begin = _BEGINNING.search(body)
    if begin is None:
        raise SkippedError(Reason.MALFORMED)
    if FREE_LENGTH < len(body) < FEWEST_BYTES * body.count(b","):
        raise SkippedError(Reason.MALFORMED)
    before, body = body[: begin.start()].splitlines(), body[begin.start() :]
    yield from ((number, _no_json(line)) for number, line in enumerate(before, 1) if line.strip())
    jobs: Iterable[bytes | SkippedError]
    try:
        jobs = map(bytes, _decoded(body, _JOBS).jobs)
    except SkippedError:
        is_lines = _LINES.match(body) and not _DOCUMENT.match(body)
        lines = (line for line in body.splitlines() if line.strip())
        jobs = lines if is_lines else _jobs_of_documents(body)
    for position, job in enumerate(jobs, start=1):
        yield position, _run_in(job, cluster)


def _no_json(line: bytes) -> SkippedError:
    """Return the reason to skip a line of text beside a document."""
    shown = line.decode("utf-8", "replace").strip()[:40]
    return SkippedError(Reason.MALFORMED, f"{shown!r} stands beside the JSON")


def _run_in(job: bytes | SkippedError, cluster: str | None) -> "ReportedCompletion | SkippedError":
    """Return the run of one job, or the reason to skip it."""
    if isinstance(job, SkippedError):
        return job
    read = jobcomp_completion if b'"@start"' in job else sacct_completion
    try:
        return read(job, cluster=cluster)
    except SkippedError as skipped:
        return skipped


def _jobs_of_documents(body: bytes) -> Iterator[bytes | SkippedError]:
    """Yield the jobs of documents one after the other, as ``>>`` appends them, and of lists.

    Raises:
        SkippedError: there is something else, or a document without jobs.
    """
    text, place = body.decode("utf-8", "replace").strip(), 0
    decoder = json.JSONDecoder(strict=False)
    while place < len(text):
        if not _OPENING.match(text, place):
            end = text.find("\n", place)
            end = len(text) if end < 0 else end
            yield _no_json(text[place:end].encode())
            place = end + 1
            continue
        try:
            document, end = decoder.raw_decode(text, place)
            found = document["jobs"] if isinstance(document, dict) else document
            jobs = [msgspec.json.encode({**job}) for job in [*found]]
        except (ValueError, LookupError, TypeError, RecursionError) as broken:
            where = f": {broken}" if isinstance(broken, ValueError) else ""
            raise SkippedError(Reason.MALFORMED, f"{Reason.MALFORMED}{where}") from broken
        yield from jobs
        space = _SPACE.match(text, end)
        place = space.end() if space else end


def sacct_completion(body: bytes, *, cluster: str | None = None) -> "ReportedCompletion":
    """Return the run of one job of the document.

    Raises:
        SkippedError: it contains no run that ended.
    """
    job = _decoded(body, _JOB)
    if not isinstance(job.time, dict):  # squeue's jobs are in a list of the same name
        raise SkippedError(Reason.MALFORMED)
    time = job.time
    if not count(job.allocation_nodes) and not number(time.get("elapsed")):
        raise SkippedError(Reason.NEVER_RAN)
    check_times(time, ("submission", "start", "end"))
    minutes = number(time.get("limit"))
    requested = _requested(job.tres)
    return ended_run(
        job_id=text(count(job.job_id) if isinstance(job.job_id, dict) else job.job_id),
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
        user=text(job.user) or text(_table(job.association).get("user")),
        group=text(job.group),
        project=text(job.account),
        queue=queue_of(job.partition),
        application=text(job.name),
        processors=trackable_resources(_allocated(job.tres))[0]
        or count(requested.get("cpu"))
        or count(_table(job.required).get("CPUs")),
        memory=(number(requested.get("mem")) or 0) * KIBIBYTES_PER_MEBIBYTE,
        prediction_id=prediction_id_of(_table(job.comment).get("administrator")),
        eligible=moment(time.get("eligible"), UTC),
        gpus=gpus_of(_allocated(job.tres)),
        nodes=count(job.allocation_nodes),
        suspended=number(time.get("suspended")),
        interactive=is_session(job.submit_line),
        facts=reported_facts(
            work_dir=job.working_directory,
            submit_line=job.submit_line or None,
            qos=job.qos,
            nodes=requested.get("node"),
            gpus=_gpus(job.tres),
            constraint=job.constraints,
        ),
    )


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _resources(tres: Any, which: str) -> list[dict[str, Any]]:
    entries = _table(tres).get(which)
    return [_table(entry) for entry in entries] if isinstance(entries, list) else []


def _requested(tres: Any) -> dict[str, Any]:
    """Return the requested amounts by resource type: processors, MiB of memory, nodes."""
    tables = _resources(tres, "requested")
    return {kind: t.get("count") for t in tables if isinstance(kind := t.get("type"), str)}


def _gpus(tres: Any) -> tuple[int | None, str | None]:
    """Return number and type of the requested GPUs, else of the allocated ones."""
    requested = gpus_in(_trackable(tres, "requested"))
    return requested if requested[0] else gpus_in(_allocated(tres))


def _allocated(tres: Any) -> str:
    """Return the allocated resources as ``AllocTRES`` has them."""
    return _trackable(tres, "allocated")


def _trackable(tres: Any, which: str) -> str:
    tables = _resources(tres, which)
    named = ((text(t.get("type")), text(t.get("name")), t.get("count")) for t in tables)
    return ",".join(f"{kind}/{name}={n}" if name else f"{kind}={n}" for kind, name, n in named)


def _decoded(body: bytes, decoder: "msgspec.json.Decoder[Document]") -> Document:
    """Decode the document in ``body``; bytes that are not UTF-8 become replacement characters.

    Raises:
        SkippedError: it is no such document.
    """
    try:
        return decoder.decode(body)
    except UnicodeDecodeError:  # a job may be named with any bytes, and its run still counts
        return _decoded(body.decode("utf-8", "replace").encode(), decoder)
    except (msgspec.MsgspecError, RecursionError) as broken:
        raise SkippedError(Reason.MALFORMED) from broken
