"""Reading the part of the log that can still change an answer, without reading the rest."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, CursorResult, func, select, text

from predictors.base import Memory
from predictors.jobs import Completion
from service.store.database import Database
from service.store.rows import COMPLETION, completion_of
from service.store.tables import completions

_ROWS_AT_ONCE = 1000

# Jumps from one value to the next larger through an index, instead of reading every row.
_CLUSTERS = """
    WITH RECURSIVE found (name) AS (
        SELECT min(cluster) FROM completions
        UNION ALL
        SELECT (SELECT min(cluster) FROM completions WHERE cluster > found.name)
        FROM found WHERE found.name IS NOT NULL
    )
    SELECT name FROM found WHERE name IS NOT NULL"""

# Users by the same jumps, and of each the runs that ended no earlier than the last one needed.
# Others of the same second come along: more of the log than is needed never does harm.
_PART_OF_LOG = """
    WITH RECURSIVE users (name) AS (
        SELECT min(user_name) FROM completions WHERE cluster = :cluster
        UNION ALL
        SELECT (SELECT min(user_name) FROM completions
                WHERE cluster = :cluster AND user_name > users.name)
        FROM users WHERE users.name IS NOT NULL
    ), wanted (seq) AS (
        SELECT own.seq FROM users CROSS JOIN completions AS own
        WHERE own.cluster = :cluster AND own.user_name = users.name
            AND own.end_time >= coalesce(
                (SELECT end_time FROM completions
                 WHERE cluster = :cluster AND user_name = users.name AND {settled}
                 ORDER BY end_time DESC LIMIT 1 OFFSET :newer_of_user), :ever)
        UNION
        SELECT seq FROM completions
        WHERE cluster = :cluster AND end_time >= :since AND end_time < :until
    )
    SELECT {columns} FROM completions
    WHERE seq IN (SELECT seq FROM wanted) AND end_time < :until AND {settled}
    ORDER BY {log_order}"""
_WHOLE_LOG = """
    SELECT {columns} FROM completions
    WHERE cluster = :cluster AND end_time < :until AND {settled} ORDER BY {log_order}"""
_NEWEST_END = "SELECT max(end_time) FROM completions WHERE cluster = :cluster"
_END_OF_NEWEST = """
    SELECT end_time FROM completions WHERE cluster = :cluster AND {settled}
    ORDER BY end_time DESC LIMIT 1 OFFSET :newer"""


class ClusterHistory(Struct, frozen=True, kw_only=True):
    """How long the history of a cluster is.

    Attributes:
        runs: how many are stored.
        last_end: when the last of them ended, in Unix seconds.
    """

    cluster: str
    runs: int
    last_end: float


def read_clusters(connection: Connection) -> list[str]:
    """The clusters that have a history, by name."""
    return list(connection.execute(text(_CLUSTERS)).scalars())


def read_sizes(connection: Connection) -> list[ClusterHistory]:
    """How many runs each cluster has, and when the last of them ended, by name."""
    ends = completions.c.end_time
    counted = select(completions.c.cluster, func.count(), func.max(ends)).group_by(
        completions.c.cluster
    )
    rows = connection.execute(counted.order_by(completions.c.cluster))
    return [ClusterHistory(cluster=name, runs=runs, last_end=end) for name, runs, end in rows]


def read_active_clusters(connection: Connection) -> list[str]:
    """The clusters that have a history, those with the latest runs first."""
    newest = {
        name: connection.execute(text(_NEWEST_END), {"cluster": name}).scalar_one()
        for name in read_clusters(connection)
    }
    return sorted(newest, key=lambda name: (-newest[name], name))


def read_memory(
    database: Database,
    before: tuple[Any, float],
    memory: Memory,
    clusters: Sequence[str],
    *,
    but_latest: int,
) -> Iterator[Completion]:
    """What ``memory`` asks for of the log, cluster by cluster in log order.

    Args:
        database: of the log.
        before: the horizon up to which it is read, and now, in Unix seconds.
        memory: of who learns.
        clusters: whose runs are wanted.
        but_latest: so many of a cluster's latest runs, and those that ended with the first of them,
            are left out; none for 0.
    """
    horizon, now = before
    words = {
        "settled": database.settled,
        "log_order": database.log_order,
        "columns": ", ".join(COMPLETION),
    }
    with database.reading() as connection:
        database.prefer_indexes(connection)
        for cluster in clusters:
            log = _Log(connection, words, {"cluster": cluster, "horizon": horizon})
            found = _remembered(log, memory, now, but_latest)
            for rows in found.partitions(_ROWS_AT_ONCE):
                yield from map(completion_of, rows)


class _Log(Struct, frozen=True):
    """The log of one cluster before a horizon."""

    connection: Connection
    words: Mapping[str, str]
    parameters: Mapping[str, Any]

    def run(self, template: str, **parameters: Any) -> CursorResult[Any]:
        """Run the query; rows come as they are asked for."""
        query = text(template.format(**self.words))
        options = {"yield_per": _ROWS_AT_ONCE}
        return self.connection.execute(
            query, {**self.parameters, **parameters}, execution_options=options
        )

    def end_of_newest(self, newer: int) -> float | None:
        """When the run ended that ``newer`` others ended after; None if there is none."""
        return self.run(_END_OF_NEWEST, newer=newer).scalar()


def _remembered(log: _Log, memory: Memory, now: float, but_latest: int) -> CursorResult[Any]:
    newest = log.end_of_newest(0)
    until = inf
    if but_latest:
        first = log.end_of_newest(but_latest - 1)
        until = -inf if first is None else first
    if newest is None or memory.window_seconds == inf:
        return log.run(_WHOLE_LOG, until=until)
    since = min(now, newest) - memory.window_seconds
    if memory.latest_jobs:
        last = log.end_of_newest(memory.latest_jobs - 1)
        since = -inf if last is None else min(since, last)
    newer = max(memory.jobs_per_user, 1) - 1
    return log.run(_PART_OF_LOG, newer_of_user=newer, ever=-inf, since=since, until=until)
