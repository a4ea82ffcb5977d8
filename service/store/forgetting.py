"""Deleting what the history holds of a person, of a cluster, or of long ago."""

from collections.abc import Iterator

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, select, true, update

from service.store.scores import DAY_SECONDS
from service.store.tables import (
    completions,
    daily_scores,
    erasures,
    parameters,
    predictions,
    queues,
    scores,
    tokens,
    tunings,
    wait_scores,
)

ERASED = "(erased)"
"""Stands in the place of a name in a token, which is revoked."""


class Erasure(Struct, frozen=True, kw_only=True):
    """What is to be deleted: exactly one of these.

    Attributes:
        users: the names that a person has in the history, on all clusters.
        cluster: all that is known of it, its scores and tuned parameters too.
        before: Unix seconds; runs that ended, and predictions that were recorded, earlier.
    """

    users: frozenset[str] = frozenset()
    cluster: str | None = None
    before: float | None = None


class Erased(Struct, frozen=True, kw_only=True):
    """The number of rows that an erasure concerns."""

    runs: int
    predictions: int


def count(connection: Connection, erasure: Erasure) -> Erased:
    """Count the rows that ``erase`` would delete."""
    counted = {
        table.name: connection.execute(
            select(func.count()).select_from(table).where(condition)
        ).scalar_one()
        for table, condition in _doomed(erasure)
    }
    return Erased(runs=counted[completions.name], predictions=counted[predictions.name])


def erase(connection: Connection, erasure: Erasure, now: float) -> Erased:
    """Delete it, and note that something was deleted, though not what: workers follow the notes."""
    deleted = {
        table.name: connection.execute(delete(table).where(condition)).rowcount
        for table, condition in _doomed(erasure)
    }
    if erasure.users:
        # Were the row deleted, the service could take it that no token was ever issued.
        theirs = update(tokens).where(tokens.c.user_name.in_(erasure.users))
        connection.execute(theirs.values(name=ERASED, user_name=ERASED, revoked_at=now))
    connection.execute(insert(erasures).values(erased_at=now))
    return Erased(runs=deleted[completions.name], predictions=deleted[predictions.name])


def read_last_erasure(connection: Connection) -> int:
    """The number of the last erasure; 0 if there never was one."""
    last: int = connection.execute(
        select(func.coalesce(func.max(erasures.c.erasure), 0))
    ).scalar_one()
    return last


def _doomed(erasure: Erasure) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """The rows to delete, table by table."""
    if erasure.users:
        for table in (predictions, completions):
            yield table, table.c.user_name.in_(erasure.users)
        yield queues, true()  # whoever is in them is handed over again, if still there
    elif erasure.cluster is not None:
        of_cluster = (
            predictions,
            completions,
            scores,
            parameters,
            tunings,
            queues,
            wait_scores,
            daily_scores,
        )
        for table in of_cluster:
            yield table, table.c.cluster == erasure.cluster
    elif erasure.before is not None:
        yield predictions, predictions.c.recorded_at < erasure.before
        yield completions, completions.c.end_time < erasure.before
        yield daily_scores, (daily_scores.c.day + 1) * DAY_SECONDS <= erasure.before
    else:
        raise ValueError("Nothing is said to be erased.")
