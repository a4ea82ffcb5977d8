"""Deletes the data of a person, of a cluster, or from before a time."""

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct
from sqlalchemy import ColumnElement, Table, delete, func, insert, select, true, update

from service.store.database import Database
from service.store.scores import DAY_SECONDS
from service.store.tables import (
    completions,
    daily_scores,
    erasures,
    parameters,
    predictions,
    queues,
    scores,
    start_scores,
    starts,
    tokens,
    tunings,
    wait_scores,
)

ERASED = "(erased)"
"""Replaces the name in a token of a deleted user, which is revoked."""


class Erasure(Struct, frozen=True, kw_only=True):
    """The rows to delete: exactly one attribute is set, or ``job`` and ``cluster``.

    Attributes:
        users: names of a person in the history, on all clusters.
        cluster: name; its scores and tuned parameters are deleted too.
        before: Unix seconds; runs that ended, and predictions that were recorded, earlier.
        after: Unix seconds; runs that ended, and predictions of jobs submitted, later.
        job: id, of all runs and predictions with it; with ``cluster`` of that cluster alone.
    """

    users: frozenset[str] = frozenset()
    cluster: str | None = None
    before: float | None = None
    after: float | None = None
    job: str | None = None


class Erased(Struct, frozen=True, kw_only=True):
    """The number of rows that an erasure concerns."""

    runs: int
    predictions: int


class Erasures:
    """Deletes parts of the history. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, erasure: Erasure) -> Erased:
        """Count the rows that ``erase`` would delete."""
        with self._database.reading() as connection:
            return _erased(
                {
                    table.name: connection.execute(
                        select(func.count()).select_from(table).where(condition)
                    ).scalar_one()
                    for table, condition in _rows_to_delete(erasure)
                }
            )

    def erase(self, erasure: Erasure, now: float) -> Erased:
        """Delete a part of the history; running workers learn the rest of it anew.

        A row in ``erasures`` notes the time of the deletion and nothing else; workers follow these
        rows. Predictions that were answered before and are still to be recorded are deleted too.
        """
        with self._database.writing() as connection:
            self._database.hold_back_predictions(connection)
            deleted = {
                table.name: connection.execute(delete(table).where(condition)).rowcount
                for table, condition in _rows_to_delete(erasure)
            }
            if erasure.users:
                # Without the row the service might conclude that no token was ever issued.
                theirs = update(tokens).where(tokens.c.user_name.in_(erasure.users))
                connection.execute(theirs.values(name=ERASED, user_name=ERASED, revoked_at=now))
            connection.execute(insert(erasures).values(erased_at=now))
        return _erased(deleted)

    def scrub(self, names: Collection[str]) -> str | None:
        """Overwrite deleted rows, so that no file of the database holds ``names`` any more.

        Returns:
            A sentence about remains, or work that is left; None if there is neither.
        """
        return self._database.scrub(names)

    def last(self) -> int:
        """Return the number of the last erasure, which grows; 0 if there never was one."""
        last = select(func.coalesce(func.max(erasures.c.erasure), 0))
        with self._database.reading() as connection:
            return int(connection.execute(last).scalar_one())


def _erased(rows: Mapping[str, int]) -> Erased:
    return Erased(runs=rows[completions.name], predictions=rows[predictions.name])


def _rows_to_delete(erasure: Erasure) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Yield the condition for rows to delete, table by table."""
    if erasure.users:
        for table in (predictions, completions, starts):
            yield table, table.c.user_name.in_(erasure.users)
        yield queues, true()  # a queue is sent again within seconds
    elif erasure.job is not None:
        for table in (predictions, completions, starts):
            its = table.c.job_id == erasure.job
            yield table, its & (table.c.cluster == erasure.cluster) if erasure.cluster else its
    elif erasure.cluster is not None:
        of_cluster = (
            predictions,
            completions,
            starts,
            scores,
            parameters,
            tunings,
            queues,
            wait_scores,
            start_scores,
            daily_scores,
        )
        for table in of_cluster:
            yield table, table.c.cluster == erasure.cluster
    elif erasure.before is not None:
        yield predictions, predictions.c.recorded_at < erasure.before
        yield completions, completions.c.end_time < erasure.before
        yield starts, starts.c.start_time < erasure.before
        yield daily_scores, (daily_scores.c.day + 1) * DAY_SECONDS <= erasure.before
    elif erasure.after is not None:
        yield predictions, predictions.c.submit_time > erasure.after
        yield completions, completions.c.end_time > erasure.after
        yield starts, starts.c.start_time > erasure.after
        yield daily_scores, daily_scores.c.day * DAY_SECONDS > erasure.after
    else:
        raise ValueError("Nothing is said to be erased.")
