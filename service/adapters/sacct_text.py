"""Read the output of ``sacct --parsable2``, with a line of column names or without one.

Safe to read are rows of ``TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -X -D -P`` with the separator
0x1f. Rows separated by ``|`` are read too, although job names and command lines may hold it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from itertools import chain, combinations, pairwise

from service.adapters.runs import Reason, SkippedError, ended_run
from service.adapters.slurm_fields import (
    STATES,
    UNFINISHED,
    gpus_of,
    prediction_id_of,
    queue_of,
    requested_limit,
    requested_memory,
    status_of,
    trackable_resources,
)
from service.adapters.values import MINUTE, clock, count, moment, number, text
from service.store import ReportedCompletion

_GIVEN = frozenset({"alloctres", "allocnodes", "nodelist"})


def completion_of(
    row: Mapping[str, str], *, zone: tzinfo, cluster: str | None = None
) -> ReportedCompletion:
    """Return the run in a row; column names are in lower case.

    ``zone`` is the time zone sacct ran in, for times that are not Unix seconds; ``cluster``
    overrides the row's own.

    Raises:
        SkippedError: the row is a step, or contains no run that ended.
    """
    job_id = text(row.get("jobidraw")) or text(row.get("jobid"))
    if job_id and "." in job_id:
        raise SkippedError(Reason.STEP)
    if _never_ran(row):
        raise SkippedError(Reason.NEVER_RAN)
    processors, memory = trackable_resources(row.get("reqtres"))
    processors = count(row.get("reqcpus")) or processors or _allocated(row)
    nodes = count(row.get("reqnodes")) or count(row.get("nnodes"))
    start, end = _span(row, zone)
    return ended_run(
        job_id=job_id,
        submit=moment(row.get("submit"), zone),
        start=start,
        end=end,
        elapsed=_elapsed(row),
        requested=requested_limit(submit_line=row.get("submitline"), final=_limit(row)),
        status=status_of(row.get("state")),
        cluster=cluster or text(row.get("cluster")),
        user=text(row.get("user")),
        group=text(row.get("group")),
        project=text(row.get("account")),
        queue=queue_of(row.get("partition")),
        application=text(row.get("jobname")),
        processors=processors,
        memory=memory or requested_memory(row.get("reqmem"), processors=processors, nodes=nodes),
        prediction_id=prediction_id_of(row.get("admincomment")),
        eligible=moment(row.get("eligible"), zone),
        gpus=gpus_of(row.get("alloctres")) or gpus_of(row.get("reqtres")),
    )


def _span(row: Mapping[str, str], zone: tzinfo) -> tuple[float | None, float | None]:
    """Return the start and the end of a run.

    An end that comes twice in autumn is the second one, if the run lasted for so long.
    """
    start, end = moment(row.get("start"), zone), moment(row.get("end"), zone)
    elapsed = _elapsed(row)
    if start is not None and end is not None and elapsed is not None and end - start < elapsed:
        end = moment(row.get("end"), zone, fold=1)
    return start, end


def _allocated(row: Mapping[str, str]) -> int | None:
    """Return the allocated processors."""
    processors, _ = trackable_resources(row.get("alloctres"))
    return count(row.get("ncpus")) or count(row.get("alloccpus")) or processors


def _never_ran(row: Mapping[str, str]) -> bool:
    """Return whether a job was cancelled while it waited.

    Such rows have the time of the cancellation as start and end.

    Where no column tells what a job was given, one that was cancelled in its first second is
    taken for one that waited.
    """
    state = row.get("state", "")
    if state.startswith("PENDING") or row.get("nodelist") == "None assigned":
        return True
    if row.get("alloctres") or _elapsed(row):
        return False
    if row.get("alloctres") == "" or row.get("allocnodes") == "0":
        return True
    is_told = not _GIVEN.isdisjoint(row)
    return not is_told and state.startswith("CANCELLED") and row.get("start") == row.get("end")


def _elapsed(row: Mapping[str, str]) -> float | None:
    raw = number(row.get("elapsedraw"))
    return clock(row.get("elapsed")) if raw is None else raw


def _limit(row: Mapping[str, str]) -> float | None:
    """Return the seconds of ``TimelimitRaw`` (minutes) or ``Timelimit``; both may hold words."""
    minutes = number(row.get("timelimitraw"))
    return clock(row.get("timelimit")) if minutes is None else minutes * MINUTE


# fmt: off
XDMOD_COLUMNS = (
    "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user",
    "uid", "submit", "eligible", "start", "end", "elapsed", "exitcode", "state",
    "nnodes", "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres", "timelimit",
    "nodelist", "jobname",
)
"""The columns of the export that Open XDMoD reads, which has no line of names."""

OLD_XDMOD_COLUMNS = (
    "jobid", "jobidraw", "cluster", "partition", "account", "group", "gid", "user",
    "uid", "submit", "eligible", "start", "end", "elapsed", "exitcode", "state",
    "nnodes", "ncpus", "reqcpus", "reqmem", "reqgres", "reqtres", "alloctres", "timelimit",
    "nodelist", "jobname",
)
"""Columns of older releases: as many, so that only the cells tell the two apart."""
# fmt: on

MOST_EXTRA = 8
"""Separators inside the values of one row; with more of them the row is given up."""

_ID_COLUMN = re.compile(r"(?:^|([^\w \r\n])) *job(?:id|idraw)(?: *$| *([^\w \r\n]))", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d{1,11}|Unknown|None|")
_DIGITS = re.compile(r"\d*")
_DURATION = re.compile(r"[\d:.-]*|UNLIMITED|Partition_Limit|INVALID")
_STATE = re.compile(rf"(?:{'|'.join([*STATES, *UNFINISHED])})(?: by \S+|\+)?")
_COMMAND = re.compile(r"(?:(?:\S*/)?(?:sbatch|srun|salloc|scrontab)\b.*)?", re.DOTALL)
_SHAPES = {
    "state": _STATE,  # first: few readings that are wrong have one
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys(("uid", "gid", "nnodes", "ncpus", "reqcpus", "elapsedraw"), _DIGITS),
    **dict.fromkeys(("elapsed", "timelimit", "timelimitraw"), _DURATION),
    "workdir": re.compile(r"(?:/.*)?", re.DOTALL),
    "submitline": _COMMAND,
}
_IDS = frozenset({"jobid", "jobidraw"})
_NEEDED = (
    frozenset({"submit"}),
    frozenset({"start"}),
    frozenset({"end"}),
    frozenset({"timelimit", "timelimitraw", "submitline"}),
)
_FREE_TEXT = frozenset({"jobname", "workdir", "submitline", "comment", "constraints"})


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of the rows of a file.

    Attributes:
        columns: names in lower case; several readings where nothing names them, all as wide.
        separator: of the cells.
        is_named: whether the file names the columns.
    """

    columns: tuple[tuple[str, ...], ...]
    separator: str
    is_named: bool

    @property
    def width(self) -> int:
        """Number of cells."""
        return len(self.columns[0])

    @property
    def id_column(self) -> int:
        """Index of the column with the job's number."""
        ids = [index for index, name in enumerate(self.columns[0]) if name in _IDS]
        return ids[0] if ids else 0


def read_sacct(
    lines: Iterable[str], *, zone: tzinfo = UTC, cluster: str | None = None
) -> Iterator[tuple[int, ReportedCompletion | SkippedError]]:
    """Yield line number (from 1) and run of every row, or the reason to skip it.

    The first line must name the columns, or it is the header-less export that Open XDMoD reads.
    A line that names the same columns again, as where files were put together, is
    passed over.

    Raises:
        SkippedError: the line of names lacks one without which no row tells of a run.
    """
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    first = next(numbered, None)
    if first is None:
        return
    header = _named_by(first[1])
    layout = header or _unnamed(first[1])
    rows = numbered if header else chain([first], numbered)
    if header:
        rows = (row for row in rows if row[1].strip() != first[1].strip())
    for line_number, cells in _rows(rows, layout):
        try:
            yield line_number, _read(cells, layout, zone, cluster)
        except SkippedError as skipped:
            yield line_number, skipped


def _named_by(line: str) -> _Layout | None:
    """Return the layout that a line of column names gives; None for another line."""
    found = _ID_COLUMN.search(line)
    if not found:
        return None
    separator = found[1] or found[2] or "|"
    names = _cleaned(line.rstrip("\r\n").split(separator))
    if not _are_names(names):
        return None
    if any(columns.isdisjoint(names) for columns in _NEEDED):
        raise SkippedError(Reason.NO_COLUMN)
    return _Layout((names,), separator, is_named=True)


def _unnamed(line: str) -> _Layout:
    separator = "\x1f" if "\x1f" in line else "|"
    return _Layout((XDMOD_COLUMNS, OLD_XDMOD_COLUMNS), separator, is_named=False)


def _cleaned(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in names)


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether cells are column names; every row of a job has digits."""
    return not _IDS.isdisjoint(cells) and all(_NAME.fullmatch(cell) for cell in cells)


def _rows(lines: Iterable[tuple[int, str]], layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every row; a row with too few continues in the next line."""
    begin, text, separator = 0, "", layout.separator
    bar = re.escape(separator)
    new_row = re.compile(
        rf"(?:[^{bar}]*{bar}){{{layout.id_column}}}\s*\d+(?:[_+.]\S*?)?\s*(?:{bar}|$)"
    )
    for line_number, line in lines:
        if text and (text.count(separator) >= layout.width - 1 or new_row.match(line)):
            yield begin, text.rstrip("\r\n").split(separator)
            text = ""
        if not text:
            begin = line_number
        text += line
    if text.strip():
        yield begin, text.rstrip("\r\n").split(separator)


def _read(
    cells: list[str], layout: _Layout, zone: tzinfo, cluster: str | None
) -> ReportedCompletion:
    job_id = cells[layout.id_column] if layout.id_column < len(cells) else ""
    if not job_id[:1].isdigit() and _are_names(_cleaned(cells)):
        raise SkippedError(Reason.MALFORMED)
    if layout.is_named and len(cells) == layout.width:
        row = dict(zip(layout.columns[0], cells, strict=True))
        return completion_of(row, zone=zone, cluster=cluster)
    return _only(
        [
            _outcome(row, zone, cluster)
            for names in layout.columns
            for row in _alignments(cells, names)
            if _is_plausible(row)
        ]
    )


def _outcome(row: dict[str, str], zone: tzinfo, cluster: str | None) -> ReportedCompletion | Reason:
    try:
        return completion_of(row, zone=zone, cluster=cluster)
    except SkippedError as skipped:
        return skipped.reason


def _only(readings: list[ReportedCompletion | Reason]) -> ReportedCompletion:
    """Return the run that all readings of a row agree on."""
    if not readings:
        raise SkippedError(Reason.MALFORMED)
    first, *others = readings
    if any(reading != first for reading in others):
        raise SkippedError(Reason.AMBIGUOUS)
    if isinstance(first, Reason):
        raise SkippedError(first)
    return first


def _alignments(cells: list[str], names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield every way to assign surplus separators to the columns of free text."""
    extra = len(cells) - len(names)
    if extra == 0:
        yield dict(zip(names, cells, strict=True))
        return
    free = [index for index, name in enumerate(names) if name in _FREE_TEXT]
    if not free or extra not in range(MOST_EXTRA + 1):
        return
    separators = extra + len(free) - 1
    for bars in combinations(range(separators), len(free) - 1):
        edges = (-1, *bars, separators)
        sizes = [right - left - 1 for left, right in pairwise(edges)]
        yield _joined(cells, names, dict(zip(free, sizes, strict=True)))


def _joined(cells: list[str], names: tuple[str, ...], extra_at: dict[int, int]) -> dict[str, str]:
    row, at = {}, 0
    for index, name in enumerate(names):
        after = at + 1 + extra_at.get(index, 0)
        row[name] = "|".join(cells[at:after])
        at = after
    return row


def _is_plausible(row: dict[str, str]) -> bool:
    """Return whether all cells of columns with a known form have that form."""
    if any(not shape.fullmatch(row[name]) for name, shape in _SHAPES.items() if name in row):
        return False
    comment = row.get("admincomment")
    return comment is None or "wtp=" in comment or all("wtp=" not in v for v in row.values())
