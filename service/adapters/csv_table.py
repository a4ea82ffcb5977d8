"""Read the CSV that ``walltimed export`` writes."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError, check_times, ended_run
from service.adapters.values import count, moment, number, text

if TYPE_CHECKING:
    from service.store import ReportedCompletion

NEEDED = ("job_id", "requested_walltime", "submit_time", "start_time", "end_time")
"""Columns without which no row is a run."""

_TIMES = ("submit_time", "start_time", "end_time")
_ESCAPED = re.compile(r"'[=+\-@\t\r]")


def read_table(
    lines: Iterable[str], *, zone: tzinfo, cluster: str | None = None
) -> Iterator["tuple[int, ReportedCompletion | SkippedError]"]:
    """Yield line number (from 1) and run of every row, or the reason to skip it.

    Raises:
        SkippedError: the first line does not name the needed columns.
    """
    rows = csv.reader(lines)
    names = next(rows, [])
    if not set(NEEDED) <= set(names):
        raise SkippedError(Reason.MALFORMED)
    while True:
        begin = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error:
            cells = []
        try:
            yield begin, _run_in(names, cells, zone, cluster)
        except SkippedError as skipped:
            yield begin, skipped


def _run_in(
    names: list[str], cells: list[str], zone: tzinfo, cluster: str | None
) -> "ReportedCompletion":
    if len(names) != len(cells):
        raise SkippedError(Reason.MALFORMED)
    row = dict(zip(names, map(_plain, cells), strict=True))
    check_times(row, _TIMES)
    submit, start, end = (moment(row[name], zone) for name in _TIMES)
    elapsed = number(row.get("runtime") or None)
    processors, memory = count(row.get("requested_processors")), number(row.get("requested_memory"))
    return ended_run(
        job_id=text(row["job_id"]),
        submit=submit,
        start=start,
        end=end,
        elapsed=elapsed,
        suspended=_suspended(start, end, elapsed),
        requested=number(row["requested_walltime"]),
        status=_status(row),
        cluster=cluster or text(row.get("cluster")),
        user=text(row.get("user")),
        group=text(row.get("group")),
        project=text(row.get("project")),
        queue=text(row.get("queue")),
        application=text(row.get("application")),
        processors=processors,
        memory=memory * (processors or 1) if memory else None,
    )


def _plain(cell: str) -> str:
    """Return a cell without the apostrophe that keeps a spreadsheet from computing it."""
    return cell[1:] if _ESCAPED.match(cell) else cell.strip()


def _suspended(start: float | None, end: float | None, elapsed: float | None) -> float | None:
    """Return the time that a stored run was suspended: its runtime was checked before."""
    return None if None in (start, end, elapsed) else (end or 0) - (start or 0) - (elapsed or 0)


def _status(row: Mapping[str, str]) -> Status:
    written = row.get("status")
    try:
        return Status(written) if written else Status.UNKNOWN
    except ValueError:
        raise SkippedError(Reason.MALFORMED) from None
