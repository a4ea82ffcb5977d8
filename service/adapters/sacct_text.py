"""Read rows of ``sacct --parsable2``, below a line of column names or as exported for Open XDMoD.

Best are rows of ``TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -X -D -P`` with the separator 0x1f. With
``|`` a row is left out whose job name or command line holds it. In the export for Open XDMoD the
job name is last, and may hold it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from itertools import chain
from typing import TYPE_CHECKING

from predictors.facts import Facts
from service.adapters.csv_table import numbered_rows
from service.adapters.runs import Reason, SkippedError, check_times, ended_run
from service.adapters.slurm_fields import (
    gpus_of,
    is_session,
    prediction_id_of,
    queue_of,
    requested_limit,
    requested_memory,
    status_of,
    trackable_resources,
)
from service.adapters.submission_facts import gpus_in, nodes_in, reported_facts
from service.adapters.values import count, moment, number, text
from terminal.words import MINUTE, clock, counted

if TYPE_CHECKING:
    from service.store import ReportedCompletion

MOST_NOISE = 20
"""Lines before the one that names the columns."""

_GIVEN = frozenset({"alloctres", "allocnodes", "nodelist"})


def completion_of(
    row: Mapping[str, str], *, zone: tzinfo, cluster: str | None = None
) -> "ReportedCompletion":
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
    check_times(row, ("submit", "start", "end"), zone)
    requested, memory = trackable_resources(row.get("reqtres"))
    asked = count(row.get("reqcpus")) or requested or _allocated(row)
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
        processors=_allocated(row) or asked,
        memory=memory or requested_memory(row.get("reqmem"), processors=asked, nodes=nodes),
        prediction_id=prediction_id_of(row.get("admincomment")),
        eligible=moment(row.get("eligible"), zone),
        gpus=gpus_of(row.get("alloctres")) or gpus_of(row.get("reqtres")),
        nodes=count(row.get("nnodes")),
        cpu_time=clock(row.get("totalcpu")),
        suspended=clock(row.get("suspended")),
        interactive=is_session(row.get("submitline")),
        facts=_facts(row),
    )


def _facts(row: Mapping[str, str]) -> Facts | None:
    requested, given = row.get("reqtres"), row.get("alloctres")
    return reported_facts(
        work_dir=row.get("workdir"),
        submit_line=row.get("submitline"),
        qos=row.get("qos"),
        nodes=row.get("reqnodes") or nodes_in(requested),
        gpus=gpus_in(requested if gpus_in(requested)[0] else given),
        constraint=row.get("constraints"),
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

OLDEST_XDMOD_COLUMNS = tuple(name for name in OLD_XDMOD_COLUMNS if name != "alloctres")
"""Columns of the releases 6.6 to 8.0."""

_EXPORTS = (OLDEST_XDMOD_COLUMNS, XDMOD_COLUMNS, OLD_XDMOD_COLUMNS)
_XDMOD_ROW = re.compile(rf"\d[^|]*(?:\|[^|]*){{{len(OLDEST_XDMOD_COLUMNS) - 1}}}")
_LIMIT = re.compile(r"(?:\d+-)?\d+:\d\d:\d\d|UNLIMITED|Partition_Limit|INVALID|")
_ELAPSED = re.compile(r"(?:\d+-)?\d+:\d\d:\d\d")
_ID_COLUMN = re.compile(
    r"(?:^|([^\w \r\n]+)) *job(?:id|idraw)(?: *$| *([^\w \r\n]+))", re.IGNORECASE
)
_NAME = re.compile(r"[A-Za-z_]*")
_IDS = frozenset({"jobid", "jobidraw"})
_NEEDED = (
    frozenset({"submit"}),
    frozenset({"start"}),
    frozenset({"end"}),
    frozenset({"timelimit", "timelimitraw", "submitline"}),
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of the rows of a file.

    Attributes:
        columns: names in lower case.
        is_named: whether the file names the columns; if not, it is an export for Open XDMoD.
        is_quoted: whether cells stand in quotes, as spreadsheets write them.
    """

    columns: tuple[str, ...]
    separator: str
    is_named: bool = True
    is_quoted: bool = False

    @property
    def id_column(self) -> int:
        """Index of the column with the job's number."""
        return next(index for index, name in enumerate(self.columns) if name in _IDS)

    def cells_of(self, row: str) -> list[str]:
        """Return the cells of a row; in an export the last one may hold the separator."""
        splits = -1 if self.is_named else len(self.columns) - 1
        return row.rstrip("\r\n").split(self.separator, splits)

    @property
    def has_name_last(self) -> bool:
        """Whether the last cell is the job's name, which may hold a line break."""
        return self.columns[-1] == "jobname"


def read_sacct(
    lines: Iterable[str], *, zone: tzinfo = UTC, cluster: str | None = None
) -> Iterator["tuple[int, ReportedCompletion | SkippedError]"]:
    """Yield line number (from 1) and run of every row, or the reason to skip it.

    The first line names the columns, or is the first row of an export for Open XDMoD. A line that
    names the same columns again, as where files were put together, is passed over.

    Raises:
        SkippedError: the first line is no such row, and lacks a name without which no row tells of
            a run.
    """
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    noise, first = _beginning(numbered)
    if first is None:
        return
    yield from ((line_number, SkippedError(Reason.MALFORMED)) for line_number in noise)
    rows: Iterable[tuple[int, str]]
    if _XDMOD_ROW.match(first[1]):
        layout, rows = _exported_by(first[1]), chain([first], numbered)
    else:
        layout = _named_by(first[1])
        names = first[1].strip().lower()
        rows = (row for row in numbered if row[1].strip().lower() != names)
    for line_number, cells in _rows(rows, layout):
        try:
            yield line_number, _read(cells, layout, zone, cluster)
        except SkippedError as skipped:
            yield line_number, skipped


def _beginning(
    numbered: Iterator[tuple[int, str]],
) -> tuple[list[int], tuple[int, str] | None]:
    """Return the numbers of lines before the first that is one of sacct's, and that line.

    Shells print greetings, and sacct its warnings, into a file that takes both.

    Raises:
        SkippedError: none of the first lines names the columns, or is a row of an export.
    """
    noise: list[int] = []
    for line_number, line in numbered:
        try:
            if _XDMOD_ROW.match(line) or _named_by(line):
                return noise, (line_number, line)
        except SkippedError:
            noise.append(line_number)
            if len(noise) == MOST_NOISE:
                raise
    if noise:
        raise SkippedError(Reason.NO_COLUMN)
    return noise, None


def _exported_by(line: str) -> _Layout:
    """Return the layout of an export by its first row; of a broken row the newest one."""
    try:
        columns = _exported_columns(line.rstrip("\r\n").split("|"))
    except SkippedError:
        columns = XDMOD_COLUMNS
    return _Layout(columns, "|", is_named=False)


def _named_by(line: str) -> _Layout:
    """Return the layout that a line of column names gives."""
    is_quoted = line.lstrip().startswith('"')
    line = line.replace('"', "") if is_quoted else line
    found = _ID_COLUMN.search(line)
    separator = (found[1] or found[2] or "|") if found else "|"
    names = _cleaned(line.rstrip("\r\n").split(separator))
    if not _are_names(names) or any(columns.isdisjoint(names) for columns in _NEEDED):
        raise SkippedError(Reason.NO_COLUMN)
    return _Layout(names, separator, is_quoted=is_quoted and len(separator) == 1)


def _cleaned(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in names)


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether cells are column names; every row of a job has digits."""
    return not _IDS.isdisjoint(cells) and all(_NAME.fullmatch(cell) for cell in cells)


def _rows(lines: Iterable[tuple[int, str]], layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every row; a row with too few continues in the next line."""
    if layout.is_quoted:
        yield from numbered_rows(lines, layout.separator)
        return
    begin, text, separator = 0, "", layout.separator
    bar = re.escape(separator)
    cell = f"[^{bar}]*" if len(separator) == 1 else f"(?:(?!{bar}).)*"
    new_row = re.compile(
        rf"(?:{cell}{bar}){{{layout.id_column}}}\s*\d+(?:[_+.]\S*?)?\s*(?:{bar}|$)"
    )
    for line_number, line in lines:
        if text and layout.has_name_last and _is_rest_of_name(line, separator):
            text += line
            continue
        if text and (text.count(separator) >= len(layout.columns) - 1 or new_row.match(line)):
            yield begin, layout.cells_of(text)
            text = ""
        if not text:
            begin = line_number
        text += line
    if text.strip():
        yield begin, layout.cells_of(text)


def _is_rest_of_name(line: str, separator: str) -> bool:
    """Return whether a line is the rest of a name with a line break; commands' errors are not."""
    return separator not in line and not line.startswith(("sacct", "slurm"))


def _read(
    cells: list[str], layout: _Layout, zone: tzinfo, cluster: str | None
) -> "ReportedCompletion":
    job_id = cells[layout.id_column] if layout.id_column < len(cells) else ""
    if not job_id[:1].isdigit() and _are_names(_cleaned(cells)):
        raise SkippedError(Reason.MALFORMED)
    if len(cells) != len(layout.columns):
        if len(cells) > len(layout.columns):
            raise SkippedError(Reason.AMBIGUOUS)
        says = f"{counted(len(cells), 'column')} instead of {len(layout.columns)}"
        raise SkippedError(Reason.MALFORMED, says)
    columns = layout.columns if layout.is_named else _exported_columns(cells)
    if len(columns) != len(cells):
        raise SkippedError(Reason.MALFORMED)
    row = dict(zip(columns, map(str.strip, cells), strict=True))
    return completion_of(row, zone=zone, cluster=cluster)


def _exported_columns(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of an export in which the elapsed time and the limit have their forms."""
    for columns in _EXPORTS:
        elapsed, limit = columns.index("elapsed"), columns.index("timelimit")
        has_forms = limit < len(cells) and _ELAPSED.fullmatch(cells[elapsed].strip())
        if has_forms and (columns is XDMOD_COLUMNS or _LIMIT.fullmatch(cells[limit].strip())):
            return columns
    raise SkippedError(Reason.MALFORMED)
