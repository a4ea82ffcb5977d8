"""Read runs of any table with separators, given the column of each field of a run.

The CSV that ``walltimed export`` writes names its columns by these fields.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from predictors.facts import FACTS, Facts, known
from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError, ended_run
from service.adapters.table_cells import FEATURE, FIELDS, CellError, Form
from service.adapters.table_columns import ColumnsError, Source, are_numbers, places_of, sources_of
from service.adapters.values import is_word_for_nothing

if TYPE_CHECKING:
    from service.store import ReportedCompletion

    Outcome = tuple[int, ReportedCompletion | SkippedError]

NEEDED = ("job_id", "requested_walltime", "submit_time", "start_time", "end_time")
"""Columns by which the CSV of ``walltimed export`` is known."""

_OWN_FORMS = {
    "runtime": "s",
    "requested_walltime": "s",
    "submit_time": "s",
    "start_time": "s",
    "end_time": "s",
    "requested_memory": "kb",
}
_SEPARATORS = ("\t", "|", ";", ",", "\x1f", ":", " ")
_ESCAPED = re.compile(r"'[=+\-@\t\r]")

TRIED, TOO_MANY = 1000, 0.2
"""Number of first rows that check the unit of requests, and most share over twice the request."""


class UnitError(SkippedError):
    """Raised for a table whose requests in seconds contradict its runtimes."""

    def __init__(self, column: str) -> None:
        super().__init__(Reason.MALFORMED)
        self.column = column

    def __str__(self) -> str:
        """Return the options that name the unit."""
        return (
            "many runs lasted over twice their requested_walltime, if it is in seconds; name its "
            f"unit: requested_walltime={self.column}:min, :h, or :s if they are seconds"
        )


class BadCellError(SkippedError):
    """Raised for a row with a cell that has no value of its field."""

    def __init__(self, place: int, source: "Source", cell: str, fault: str) -> None:
        super().__init__(Reason.MALFORMED)
        self.place, self.source, self.cell, self.fault = place, source, cell[:40], fault

    def __str__(self) -> str:
        """Return the reason with the column, the field and the value."""
        column, field = self.source.column, self.source.field
        return f"column {self.place + 1} ({column}): {field} is {self.cell!r}, {self.fault}"


@dataclass(frozen=True, slots=True)
class _Table:
    """The layout of a table.

    Attributes:
        separator: of the cells.
        width: number of cells of a row; None where rows differ, as in files without names.
        columns: place and source of each field that is read.
        is_own: whether it is the CSV of ``walltimed export``.
    """

    separator: str
    width: int | None
    columns: Sequence[tuple[int, Source]]
    is_own: bool

    def values_of(self, cells: Sequence[str], zone: tzinfo) -> dict[str, Any]:
        """Return the values of a row by field.

        Raises:
            SkippedError: a cell has no value of its field, or their number is wrong.
        """
        last = max(place for place, _ in self.columns)
        if len(cells) <= last or len(cells) != (self.width or len(cells)):
            raise SkippedError(Reason.MALFORMED)
        found = {}
        for place, source in self.columns:
            cell = _plain(cells[place])
            if not self.is_own and is_word_for_nothing(cell):
                cell = ""  # nobody is called NULL
            try:
                found[source.field] = source.kind.read(cell, Form(source.form, zone))
            except CellError as fault:
                raise BadCellError(place, source, cell, str(fault)) from fault
        return found


def read_table(
    lines: Iterable[str],
    *,
    zone: tzinfo,
    cluster: str | None = None,
    columns: Sequence[str] = (),
) -> Iterator["Outcome"]:
    """Yield line number (from 1) and run of every row, or the reason to skip it.

    The first line that is no comment names the columns, unless all columns are given by number.

    Args:
        columns: texts such as ``user=USER,start=START:ms``; without any, the columns are named as
            the fields of a run are.

    Raises:
        ColumnsError: a column is not there.
        UnitError: the requests are not in seconds, and their unit is not named.
        SkippedError: the first line does not name the needed columns.
    """
    sources = sources_of(columns) if columns else []
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    first = next((each for each in numbered if not _is_comment(each[1], sources)), None)
    if first is None:
        return
    table = _table_of(first[1], sources)
    rows = numbered if table.width else chain([first], numbered)
    found = _runs(numbered_rows(rows, table.separator), table, zone, cluster)
    doubtful = [s for s in sources if s.field == "requested_walltime" and s.form is None]
    yield from _in_seconds(found, doubtful[0].column) if doubtful else found


def _is_comment(line: str, sources: Sequence[Source]) -> bool:
    """Return whether a line before the first row is a comment; names may follow a # as well."""
    is_marked = line.lstrip().startswith("#")
    return is_marked and (are_numbers(sources) or _separator(_names(line), sources) is None)


def _names(line: str) -> str:
    return line.rstrip("\r\n").lstrip("# ")


def _table_of(line: str, sources: Sequence[Source]) -> _Table:
    """Return the layout by the first line.

    Raises:
        ColumnsError: a column is not there.
        SkippedError: the line names no columns that are known without ``--columns``.
    """
    names = _names(line)
    if not sources:
        own = _cells(names, ",")
        if not set(NEEDED) <= set(own):
            raise SkippedError(Reason.MALFORMED)
        twice = next((name for name in own if name in FIELDS and own.count(name) > 1), None)
        if twice:
            raise SkippedError(Reason.MALFORMED, f"the column {twice} is there twice")
        sources = [Source(name, name, _OWN_FORMS.get(name)) for name in own if name in FIELDS]
        return _Table(",", len(own), _places(own, sources), is_own=True)
    separator = _separator(names, sources)
    if separator is None:
        cells = max((_cells(names, each) for each in _SEPARATORS), key=len)
        places = zip(sources, places_of(sources, cells), strict=True)
        lost = next((source for source, place in places if place is None), sources[0])
        raise ColumnsError(
            f"There is no column {lost.column!r}; the first line has {', '.join(cells)}."
            f"{lost.no_form}"
        )
    cells = _cells(names, separator)
    width = None if are_numbers(sources) else len(cells)
    return _Table(separator, width, _places(cells, sources), is_own=False)


def _places(cells: Sequence[str], sources: Sequence[Source]) -> list[tuple[int, Source]]:
    pairs = zip(places_of(sources, cells), sources, strict=True)
    return [(place, source) for place, source in pairs if place is not None]


def _separator(names: str, sources: Sequence[Source]) -> str | None:
    """Return the separator that gives the most cells among those that give all columns."""
    fitting = [
        (len(cells), -place, separator)
        for place, separator in enumerate(_SEPARATORS)
        if (cells := _cells(names, separator)) and None not in places_of(sources, cells)
    ]
    return max(fitting)[2] if fitting else None


def _cells(line: str, separator: str) -> list[str]:
    text = line.strip() if separator == " " else line
    try:
        return next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return []


def numbered_rows(
    lines: Iterable[tuple[int, str]], separator: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every row; quoted cells may hold separators and line breaks.

    A row that cannot be split into cells yields an empty list.
    """
    begin = 0

    def texts() -> Iterator[str]:
        nonlocal begin
        for line_number, line in lines:
            begin = begin or line_number
            yield f"{line.strip()}\n" if separator == " " else line

    rows = csv.reader(texts(), delimiter=separator, skipinitialspace=True)
    while True:
        try:
            cells = next(rows, None)
        except csv.Error:
            cells = []
        if cells is None:
            return
        yield begin, cells
        begin = 0


def _runs(
    rows: Iterable[tuple[int, list[str]]], table: _Table, zone: tzinfo, cluster: str | None
) -> Iterator["Outcome"]:
    for line_number, cells in rows:
        if cells and cells[0].startswith("#"):  # a comment
            continue
        try:
            values = table.values_of(cells, zone)
            yield line_number, _run_of(values, cluster, is_own=table.is_own)
        except SkippedError as skipped:
            yield line_number, skipped


def _in_seconds(outcomes: Iterator["Outcome"], column: str) -> Iterator["Outcome"]:
    """Yield the outcomes, if the first runs do not contradict requests in seconds."""
    first = list(islice(outcomes, TRIED))
    runs = [found.completion for _, found in first if not isinstance(found, SkippedError)]
    outlived = sum(run.runtime > 2 * run.submission.requested_walltime for run in runs)
    if outlived > TOO_MANY * len(runs):
        raise UnitError(column)
    yield from chain(first, outcomes)


def _run_of(values: dict[str, Any], cluster: str | None, *, is_own: bool) -> "ReportedCompletion":
    submit, start, end = _times(values)
    runtime, processors = values.get("runtime"), values.get("requested_processors")
    memory = values.get("requested_memory")
    return ended_run(
        job_id=values["job_id"],
        submit=submit,
        start=start,
        end=end,
        elapsed=runtime,
        suspended=_suspended(start, end, runtime) if is_own else None,
        requested=values["requested_walltime"],
        status=_status(values),
        cluster=cluster or values.get("cluster"),
        user=values.get("user"),
        group=values.get("group"),
        project=values.get("project"),
        queue=values.get("queue"),
        application=values.get("application"),
        processors=processors,
        nodes=values.get("nodes"),
        cpu_time=values.get("cpu_time"),
        memory=memory * (processors or 1) if memory else values.get("memory"),
        eligible=values.get("eligible_time"),
        interactive=values.get("interactive", False),
        facts=_facts(values),
    )


def _facts(values: Mapping[str, Any]) -> Facts | None:
    """Return the further facts in the values of a row; None for none."""
    named = {
        field.removeprefix(FEATURE): value
        for field, value in values.items()
        if field.startswith(FEATURE) and value is not None
    }
    found = {name: values.get(name) for name in FACTS if name not in {"features", "interactive"}}
    return known(Facts(**found, features=(values.get("features") or {}) | named))


def _times(values: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Return submission, start and end; one that has no column follows from wait or runtime."""
    submit, start, end = (values.get(f"{name}_time") for name in ("submit", "start", "end"))
    wait, runtime = values.get("wait"), values.get("runtime")
    if "start_time" not in values:
        start = _sum(submit, wait) if "wait" in values else _sum(end, runtime, sign=-1)
    if "submit_time" not in values:
        submit = _sum(start, wait, sign=-1)
    if "end_time" not in values:
        end = _sum(start, runtime)
    return submit, start, end


def _sum(time: float | None, seconds: float | None, sign: int = 1) -> float | None:
    return None if time is None or seconds is None else time + sign * seconds


def _plain(cell: str) -> str:
    """Return a cell without the apostrophe that keeps a spreadsheet from computing it."""
    return cell[1:] if _ESCAPED.match(cell) else cell.strip()


def _suspended(start: float | None, end: float | None, elapsed: float | None) -> float | None:
    """Return the time that a stored run was suspended: its runtime was checked before."""
    return None if None in (start, end, elapsed) else (end or 0) - (start or 0) - (elapsed or 0)


def _status(values: Mapping[str, Any]) -> Status:
    """Return the end of a run, by its status, else by its exit code."""
    status: Status = values.get("status") or Status.UNKNOWN
    code: Status | None = values.get("exit_code")
    return code if code and status is Status.UNKNOWN else status
