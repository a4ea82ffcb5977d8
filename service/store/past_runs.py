"""Reads runs from the log: for a start, for reports and exports, and those of one ended job."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, CursorResult, func, select, text

from predictors.base import Memory
from predictors.jobs import Completion, Interval
from service.store.database import Database, LogReader
from service.store.rows import COMPLETION, completion_of
from service.store.tables import completions, predictions

_RUNS = select(*(completions.c[name] for name in COMPLETION))
_ROWS_AT_ONCE = 1000

MOST_PREDICTED = 100
"""Most clusters with predictions that are named; callers may have invented any number."""

# Jumps from one value to the next larger through an index, instead of reading every row.
_NAMES = """
    WITH RECURSIVE found (name) AS (
        SELECT min(cluster) FROM {rows}
        UNION ALL
        SELECT (SELECT min(cluster) FROM {rows} AND cluster > found.name)
        FROM found WHERE found.name IS NOT NULL
    )
    SELECT name FROM found WHERE name IS NOT NULL"""
_CLUSTERS = _NAMES.format(rows="completions WHERE 1 = 1")
_PREDICTED_CLUSTERS = tuple(
    f"{_NAMES} LIMIT {MOST_PREDICTED}".format(rows=f"predictions WHERE {kind}")
    for kind in ("outcome IS NULL", "outcome = 'scored'")
)

# Users by the same jumps, and of each the runs from the end of the oldest needed one on. Further
# runs of the same second are read too, which does no harm.
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
    """The length of a cluster's history.

    Attributes:
        last_end: end of the last of them, in Unix seconds.
    """

    cluster: str
    runs: int
    last_end: float


class PastRuns:
    """The runs of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self) -> int:
        """Return the number of stored runs."""
        with self._database.reading() as connection:
            return connection.execute(select(func.count()).select_from(completions)).scalar_one()

    def clusters(self) -> list[str]:
        """Return the clusters that have a history, by name."""
        with self._database.reading() as connection:
            return list(connection.execute(text(_CLUSTERS)).scalars())

    def predicted_clusters(self) -> list[str]:
        """Return the clusters with an open or scored prediction, by name; at most some hundred."""
        with self._database.reading() as connection:
            found = [
                name
                for statement in _PREDICTED_CLUSTERS
                for name in connection.execute(text(statement)).scalars()
            ]
        return sorted({*found})

    def active_clusters(self) -> list[str]:
        """Return the clusters that have a history, those with the latest runs first."""
        with self._database.reading() as connection:
            newest = {
                name: connection.execute(text(_NEWEST_END), {"cluster": name}).scalar_one()
                for name in connection.execute(text(_CLUSTERS)).scalars().all()
            }
        return sorted(newest, key=lambda name: (-newest[name], name))

    def sizes(self) -> list[ClusterHistory]:
        """Return the length of each cluster's history, by name."""
        cluster, ends = completions.c.cluster, completions.c.end_time
        counted = select(cluster, func.count(), func.max(ends)).group_by(cluster).order_by(cluster)
        with self._database.reading() as connection:
            return [
                ClusterHistory(cluster=name, runs=runs, last_end=end)
                for name, runs, end in connection.execute(counted)
            ]

    def latest(self, cluster: str, since: float, until: float, most: int) -> list[Completion]:
        """Return the runs of a cluster that ended within a period, the newest ``most`` of them.

        Args:
            since: Unix seconds, the first that belongs to the period.
            until: Unix seconds, the first after the period.
        """
        end = completions.c.end_time
        wanted = _RUNS.where(completions.c.cluster == cluster, end >= since, end < until)
        with self._database.reading() as connection:
            options = connection.execution_options(yield_per=_ROWS_AT_ONCE)
            rows = options.execute(wanted.order_by(end.desc()).limit(most))
            return [completion_of(tuple(row)) for row in rows]

    def exported(self, cluster: str | None, since: float, until: float) -> Generator[Completion]:
        """Yield all runs that ended within a period, in the order of their submission."""
        with self._database.reading() as connection:
            yield from _exported(connection, cluster, since, until)

    def warm_start(
        self, memories: Sequence[Memory], now: float, clusters: Sequence[str] | None = None
    ) -> tuple[LogReader, list[Iterator[Completion]]]:
        """Read the parts of the log that ``memories`` ask for, by cluster and in log order.

        The latest runs of a cluster that an earlier part has are left out of later parts, so that
        nothing of a long history is read twice.

        Args:
            memories: of the methods that learn.
            now: Unix seconds; later end times do not move the window.
            clusters: clusters to read; by default all that have a history.

        Returns:
            A reader of runs that are stored after this moment, and the parts of the log before it.
        """
        horizon = self._database.horizon()
        wanted = self.clusters() if clusters is None else clusters
        latest = accumulate((memory.latest_jobs for memory in memories), max, initial=0)
        parts = [
            self._remembered((horizon, now), memory, wanted, but_latest=had_before)
            for memory, had_before in zip(memories, latest, strict=False)
        ]
        return self._database.follow(horizon), parts

    def _remembered(
        self,
        before: tuple[Any, float],
        memory: Memory,
        clusters: Sequence[str],
        *,
        but_latest: int,
    ) -> Iterator[Completion]:
        """Yield the runs that ``memory`` asks for, by cluster and in log order.

        Args:
            before: the horizon up to which the log is read, and now, in Unix seconds.
            memory: of the methods that learn.
            but_latest: number of a cluster's latest runs that are skipped, together with runs
                that ended in the same second as the first of them; 0 skips none.
        """
        horizon, now = before
        words = {
            "settled": self._database.settled,
            "log_order": self._database.log_order,
            "columns": ", ".join(COMPLETION),
        }
        with self._database.reading() as connection:
            self._database.prefer_indexes(connection)
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
        """Run a query; rows are fetched while they are read."""
        query = text(template.format(**self.words))
        options = {"yield_per": _ROWS_AT_ONCE}
        return self.connection.execute(
            query, {**self.parameters, **parameters}, execution_options=options
        )

    def end_of_newest(self, newer: int) -> float | None:
        """Return the end of the run that has ``newer`` later ones; None if there are too few."""
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


_SAME_NAMES = ("user_name", "queue", "application")


class ScoredPrediction(Struct, frozen=True, kw_only=True):
    """The prediction that a run was scored by.

    Attributes:
        median: seconds; None where the method gave none.
        interval: None where the method gave none.
        underestimation_rate: nominal rate of underestimates; None for the method's own trade-off.
        basis_jobs: number of past runs of the answer; None for predictions of older releases.
        basis_reason: in one word, likewise.
    """

    recorded_at: float
    method: str
    predicted_walltime: float
    median: float | None
    interval: Interval | None
    underestimation_rate: float | None = None
    basis_jobs: int | None = None
    basis_reason: str | None = None


class EndedRun(Struct, frozen=True):
    """One run of a job.

    Attributes:
        prediction: None if none was recorded, or it has been deleted.
    """

    run: Completion
    prediction: ScoredPrediction | None


class EndedJobs:
    """The ended jobs of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def runs_of(self, cluster: str, job_id: str, most: int = 10) -> list[EndedRun]:
        """Return the runs of a job, the newest first; several if it was requeued."""
        of_job = completions.c.cluster == cluster, completions.c.job_id == job_id
        wanted = _RUNS.where(*of_job).order_by(completions.c.start_time.desc()).limit(most)
        with self._database.reading() as connection:
            runs = [completion_of(tuple(row)) for row in connection.execute(wanted)]
            return [EndedRun(run, _prediction_of(connection, run)) for run in runs]

    def exported(self, cluster: str | None, since: float, until: float) -> Generator[EndedRun]:
        """Yield all runs that ended within a period, in the order of their submission."""
        c = predictions.c
        scored = select(func.min(c.ended_at)).where(c.outcome == "scored")
        with self._database.reading() as connection:
            first = connection.execute(scored).scalar_one()
            for run in _exported(connection, cluster, since, until):
                is_scored = first is not None and run.end_time >= first
                yield EndedRun(run, _prediction_of(connection, run) if is_scored else None)

    def earlier_runs(self, run: Completion, most: int) -> list[Completion]:
        """Return the newest runs of the same user and job name that ended before a submission."""
        job, c = run.submission, completions.c
        if job.user is None:
            return []
        wanted = _RUNS.where(
            c.cluster == job.cluster,
            c.user_name == job.user,
            c.application.is_not_distinct_from(job.application),
            c.end_time < job.submit_time,
        )
        with self._database.reading() as connection:
            rows = connection.execute(wanted.order_by(c.end_time.desc()).limit(most))
            return [completion_of(tuple(row)) for row in rows]


def _exported(
    connection: Connection, cluster: str | None, since: float, until: float
) -> Generator[Completion]:
    c = completions.c
    wanted = _RUNS.where(c.end_time >= since, c.end_time < until)
    if cluster is not None:
        wanted = wanted.where(c.cluster == cluster)
    wanted = wanted.order_by(c.submit_time, c.seq)
    for row in connection.execute(wanted, execution_options={"yield_per": _ROWS_AT_ONCE}):
        yield completion_of(tuple(row))


def _prediction_of(connection: Connection, run: Completion) -> ScoredPrediction | None:
    """Return the prediction that was scored by a run: of several alike, the nearest in time."""
    c, job = predictions.c, run.submission
    names = dict(zip(_SAME_NAMES, (job.user, job.queue, job.application), strict=True))
    wanted = (
        select(predictions)
        .where(
            c.cluster == job.cluster,
            c.ended_at == run.end_time,
            c.outcome == "scored",
            c.runtime == run.runtime,
            func.coalesce(c.job_id, job.job_id) == job.job_id,
            *(c[name].is_not_distinct_from(value) for name, value in names.items()),
        )
        .order_by(func.abs(c.submit_time - job.submit_time))
        .limit(1)
    )
    row = connection.execute(wanted).one_or_none()
    if row is None:
        return None
    bounds = (row.lower_bound, row.upper_bound, row.coverage)
    return ScoredPrediction(
        recorded_at=row.recorded_at,
        method=row.method,
        predicted_walltime=row.predicted_walltime,
        median=row.median,
        interval=None
        if None in bounds
        else Interval(lower=row.lower_bound, upper=row.upper_bound, coverage=row.coverage),
        underestimation_rate=row.underestimation_rate,
        basis_jobs=row.basis_jobs,
        basis_reason=row.basis_reason,
    )
