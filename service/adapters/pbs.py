"""Accounting records of PBS and Torque: ``MM/DD/YYYY HH:MM:SS;E;<job id>;key=value ...``."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from msgspec.structs import replace

from predictors.facts import Facts
from predictors.jobs import Completion, Status
from service.adapters.runs import Reason, SkippedError, check_times, ended_run
from service.adapters.submission_facts import gpus_of_chunks, reported_facts
from service.adapters.values import count, kibibytes, moment, text
from terminal.words import clock

if TYPE_CHECKING:
    from service.store import ReportedCompletion

ENDED, RERUN, STARTED = "E", "R", "S"

LONGEST_RECORD = 1 << 19
"""Characters; where jobs have thousands of nodes, the nodes alone are a hundred thousand."""

_PAIR = re.compile(r'(?:^|\s)([A-Za-z_][\w.]*)=("[^"\\]*+(?:\\.[^"\\]*+)*+"|\'[^\']*+\'|\S*)')
_SECOND = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];")
_KIND = re.compile(r"[A-Za-z]")
_MACHINES = re.compile(r"\d{1,999}(?=[:#]|$)")
_CORES = re.compile(r":(?:ppn|ncpus)=(\d{1,18})")
_PLACE = re.compile(r"(\d{1,9})(?:-(\d{1,9})|\*(\d{1,9}))?")
_MARK = re.compile(r"([A-Za-z0-9_-]{1,64})(?:\.([A-Za-z0-9_-]{1,64}))?")
_UNNAMED_PROJECT = "_pbs_project_default"

# From OpenPBS: the mom ended the job for going over a limit.
_KILLED_FOR_MEMORY = frozenset({-26, -27})
_KILLED_FOR_WALLTIME = -29
# 256 plus SIGKILL or SIGTERM: qdel, or a limit where the job died of the signal itself.
_KILLED_BY_SIGNAL = frozenset({265, 271, 137, 143})


def completion_of(
    line: str, *, zone: tzinfo = UTC, cluster: str | None = None
) -> "ReportedCompletion":
    """Return the run in an E (ended) or R (run again) record.

    Times in the record are Unix seconds; only an R record without an ``end`` is dated by its own
    stamp, in ``zone``. The request is ``Resource_List.walltime``, never ``soft_walltime``.

    Raises:
        SkippedError: another kind of record, or it contains no run that ended.
    """
    if len(line) > LONGEST_RECORD:
        raise SkippedError(Reason.TOO_LARGE)
    stamp, kind, job_id, message = _parts(line)
    if kind not in (ENDED, RERUN):
        raise SkippedError(Reason.OTHER_RECORD)
    values = _values(job_id, message)
    if kind == ENDED and "end" not in values:  # the record was cut short
        raise SkippedError(Reason.MALFORMED)
    end, requested = moment(values.get("end"), UTC), clock(values.get("Resource_List.walltime"))
    end = _stamped(stamp, zone) if end is None and kind == RERUN else end
    report = _run(job_id, values, end=end, cluster=cluster)
    if kind == RERUN:
        return report
    elapsed = clock(values.get("resources_used.walltime"))
    ran = None if elapsed is None else max(elapsed, report.completion.runtime)
    status = _status(values, ran, requested)
    return replace(report, completion=replace(report.completion, status=status))


def start_of(line: str, *, cluster: str | None = None) -> "Completion | None":
    """Return the run in an S (started) record as if it had ended at once; None without one."""
    if len(line) > LONGEST_RECORD or f";{STARTED};" not in line:
        return None
    try:
        _, kind, job_id, message = _parts(line)
        values = _values(job_id, message)
        start = moment(values.get("start"), UTC)
        return (
            _run(job_id, values, end=start, cluster=cluster).completion if kind == STARTED else None
        )
    except SkippedError:
        return None


def _values(job_id: str, message: str) -> dict[str, str]:
    """Return the fields of a record.

    Raises:
        SkippedError: it is about a whole array, or has a time in no known form.
    """
    if "[]" in job_id:
        raise SkippedError(Reason.ARRAY)
    values = {key: value.strip("\"'") for key, value in _PAIR.findall(message)}
    check_times(values, ("ctime", "qtime", "start", "end"))
    return values


def _run(
    job_id: str, values: Mapping[str, str], *, end: float | None, cluster: str | None
) -> "ReportedCompletion":
    """Return the run in the fields of a record."""
    prediction_id, replaced_id = _prediction_ids(values)
    return ended_run(
        job_id=text(job_id),
        submit=moment(values.get("ctime"), UTC) or moment(values.get("qtime"), UTC),
        start=moment(values.get("start"), UTC),
        end=end,
        elapsed=clock(values.get("resources_used.walltime")),
        requested=clock(values.get("Resource_List.walltime")),
        status=Status.PREEMPTED,
        cluster=cluster,
        user=_before_host(values.get("user")),
        group=text(values.get("group")),
        project=_project(values),
        queue=_before_host(values.get("queue")),
        application=text(values.get("jobname")),
        processors=_processors(values),
        nodes=count(values.get("unique_node_count") or values.get("Resource_List.nodect")),
        gpus=_gpus(values),
        cpu_time=clock(values.get("resources_used.cput")),
        needs_proof=True,
        memory=kibibytes(values.get("Resource_List.mem"), unit=""),
        prediction_id=prediction_id,
        replaced_id=replaced_id,
        eligible=moment(values.get("etime"), UTC),
        facts=_facts(values),
    )


def _facts(values: Mapping[str, str]) -> Facts | None:
    chunks = values.get("Resource_List.select") or values.get("Resource_List.nodes")
    gpus = count(values.get("Resource_List.ngpus")) or gpus_of_chunks(chunks)
    return reported_facts(
        nodes=values.get("Resource_List.nodect"),
        gpus=(gpus, None),
        constraint=chunks,
        qos=values.get("qos") or values.get("Resource_List.qos"),
        submit_host=values.get("owner", "").partition("@")[2] or values.get("submit_host"),
    )


def _before_host(name: str | None) -> str | None:
    """Return a name without the server behind an @, as ``qstat`` shows owners."""
    return text((name or "").partition("@")[0])


def read_accounting(
    lines: Iterable[str], *, zone: tzinfo = UTC, cluster: str | None = None
) -> Iterator["tuple[int, ReportedCompletion | SkippedError]"]:
    """Yield line number (from 1) and run of every record, or the reason to skip it."""
    for line_number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            yield line_number, completion_of(line, zone=zone, cluster=cluster)
        except SkippedError as skipped:
            yield line_number, skipped


def _parts(line: str) -> tuple[str, str, str, str]:
    parts = line.strip().split(";", 3)
    if len(parts) != 4 or not _KIND.fullmatch(parts[1]):
        raise SkippedError(Reason.MALFORMED)
    stamp, kind, job_id, message = parts
    if _SECOND.search(message):
        raise SkippedError(Reason.MALFORMED, "two records in one line")
    return stamp, kind, job_id, message


def _stamped(stamp: str, zone: tzinfo) -> float | None:
    try:
        return datetime.strptime(stamp, "%m/%d/%Y %H:%M:%S").replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError):
        return None


def _status(values: Mapping[str, str], elapsed: float | None, requested: float | None) -> Status:
    try:
        code = int(values["Exit_status"])
    except (KeyError, ValueError):
        return Status.UNKNOWN
    if code == 0:
        return Status.COMPLETED
    if code == _KILLED_FOR_WALLTIME or (elapsed and requested and elapsed >= requested):
        return Status.TIMEOUT
    if code in _KILLED_FOR_MEMORY:
        return Status.OUT_OF_MEMORY
    return Status.CANCELLED if code in _KILLED_BY_SIGNAL else Status.FAILED


def _project(values: Mapping[str, str]) -> str | None:
    project = text(values.get("project"))
    name = None if project == _UNNAMED_PROJECT else project
    return name or text(values.get("account"))


def _processors(values: Mapping[str, str]) -> int | None:
    """Return requested cores: PBS counts them, Torque has ``nodes=2:ppn=8+3:ppn=1`` or ``procs``.

    Torque may give ``ncpus=1``, a queue's default, to a job of many nodes: the most counts. Without
    any, the allocated slots count.
    """
    counts = (
        count(values.get("Resource_List.ncpus")),
        count(values.get("Resource_List.procs")),
        cores_of(values.get("Resource_List.nodes")),
    )
    return (
        max((each for each in counts if each), default=None)
        or count(values.get("total_execution_slots"))
        or _slots(values.get("exec_host"))
    )


def cores_of(nodes: str | None) -> int | None:
    """Return the processors of a Torque request; None if there are none.

    >>> cores_of("2:ppn=8+node7:ppn=4"), cores_of("3"), cores_of("")
    (20, 3, None)
    """
    if not nodes:
        return None
    found = [(_MACHINES.match(chunk), _CORES.search(chunk)) for chunk in nodes.split("+")]
    return count(sum(int(m[0] if m else 1) * int(c[1] if c else 1) for m, c in found))


def _gpus(values: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the number of nodes, and of GPUs on each; None if no node count is known."""
    nodes, gpus = (
        count(values.get("Resource_List.nodect")),
        count(values.get("Resource_List.ngpus")),
    )
    return (nodes, -(-gpus // nodes)) if nodes and gpus else None


def _slots(exec_host: str | None) -> int | None:
    """Return the allocated slots in ``a/0+a/1``, ``a/0-3+b/5`` or, in PBS, ``a/0*4+b/1``."""
    places = [place.rpartition("/")[2] for place in exec_host.split("+")] if exec_host else []
    return count(sum(_size(part) for place in places for part in place.split(",")))


def _size(place: str) -> int:
    found = _PLACE.fullmatch(place)
    if not found:
        return 1
    first, last, times = found.groups()
    return int(times) if times else max(1, int(last or first) - int(first) + 1)


def _prediction_ids(values: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the ids of the prediction in the hook's resource, and of the one it replaced."""
    mark = _MARK.fullmatch(values.get("Resource_List.walltimed_prediction", ""))
    return (mark[1], mark[2]) if mark else (None, None)
