"""Records starts of jobs, and reads them in the order in which they were recorded."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from sqlalchemy import Connection, delete, func, select

from predictors.jobs import Submission
from predictors.memory.running_jobs import MOST_KNOWN, Start
from service.store.database import Database
from service.store.rows import BatchStatement, columns_of
from service.store.tables import completions, starts

READ_AGAIN = 1_000
"""Places before the last one that are read again: transactions may commit in another order."""

_COLUMNS = columns_of(starts, but=("place",))
_NAMES = ", ".join(_COLUMNS)
_ADD = BatchStatement(
    _COLUMNS,
    f"INSERT INTO starts ({_NAMES}) {{incoming}} SELECT {_NAMES} FROM incoming WHERE true "  # noqa: S608 - of names
    "ON CONFLICT DO NOTHING",
)
_END = (
    select(func.min(completions.c.end_time))
    .where(
        completions.c.cluster == starts.c.cluster,
        completions.c.job_id == starts.c.job_id,
        completions.c.end_time >= starts.c.start_time,
    )
    .scalar_subquery()
)
_STARTED = [*(starts.c[name] for name in _COLUMNS), _END]
"""Columns of a start and, where it is known, the end of the run."""


def record_starts(connection: Connection, found: Iterable[Start]) -> None:
    """Record starts within a transaction; one that is there already changes nothing."""
    _ADD.execute(connection, [_row(each) for each in found if each.submission.job_id is not None])


class Starts:
    """The starts of jobs of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, found: Sequence[Start]) -> None:
        """Record starts durably; one that is there already changes nothing."""
        with self._database.writing() as connection:
            record_starts(connection, found)

    def last(self) -> int:
        """Return the place of the last start; 0 if there is none."""
        with self._database.reading() as connection:
            last = select(func.coalesce(func.max(starts.c.place), 0))
            return int(connection.execute(last).scalar_one())

    def since(self, place: int) -> list[Start]:
        """Return the starts behind a place, and some of those before it, with known ends."""
        wanted = select(*_STARTED).where(starts.c.place > place - READ_AGAIN)
        with self._database.reading() as connection:
            found = connection.execute(wanted.order_by(starts.c.place))
            return [_start_of(tuple(row)) for row in found]

    def newest(self, cluster: str) -> list[Start]:
        """Return the last starts of a cluster, with the ends that are known."""
        wanted = select(*_STARTED).where(starts.c.cluster == cluster)
        with self._database.reading() as connection:
            newest = wanted.order_by(starts.c.place.desc()).limit(MOST_KNOWN)
            rows = connection.execute(newest).all()
        return [_start_of(tuple(row)) for row in reversed(rows)]

    def clusters(self) -> list[str]:
        """Return the clusters of which starts are recorded."""
        with self._database.reading() as connection:
            return list(connection.execute(select(starts.c.cluster).distinct()).scalars())

    def drop_before(self, time: float) -> int:
        """Delete the starts that were recorded before a time; return their number."""
        with self._database.writing() as connection:
            return connection.execute(delete(starts).where(starts.c.known_from < time)).rowcount


def _row(start: Start) -> tuple[Any, ...]:
    job = start.submission
    return (
        job.cluster,
        job.job_id,
        job.user,
        job.application,
        job.requested_walltime,
        job.requested_processors,
        job.submit_time,
        start.start_time,
        start.known_from,
    )


def _start_of(row: tuple[Any, ...]) -> Start:
    submission = Submission(
        cluster=row[0],
        job_id=row[1],
        user=row[2],
        application=row[3],
        requested_walltime=row[4],
        requested_processors=row[5],
        submit_time=row[6],
    )
    return Start(submission, row[7], row[8], inf if row[9] is None else row[9])
