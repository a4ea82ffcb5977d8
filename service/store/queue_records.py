"""The latest queue of each cluster, and the errors of forecast waits."""

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple
from sqlalchemy import Connection, func, select

from predictors.facts import Facts
from predictors.memory.running_jobs import Start
from service.store.database import Database
from service.store.matching import facts_at_submission
from service.store.rows import ReportedCompletion, adding
from service.store.starts import record_starts
from service.store.tables import completions, queues, starts, wait_scores
from service.store.tables import start_scores as start_scores_table

SOUGHT_AT_ONCE = 500
"""Job ids in one statement."""

MOST_STARTS = 10_000
"""Most starts of a cluster among which new ones are looked for, the last recorded ones."""


_ADD = adding(wait_scores)
_ADD_TOLD = adding(start_scores_table)

NEAR_MINUTES = (10, 20, 40, 80, 160, 320, 640)
"""Errors of told starts that are counted, in minutes."""


class WaitScore(Struct, frozen=True, kw_only=True):
    """Sums over forecast waits; the fields are columns of the table in their order.

    Attributes:
        queue: empty for jobs that name none.
        made: when the forecasts were made: ``arrival`` or ``since``.
        jobs: number of started jobs, in fractions where a part of a job's forecasts counts.
        error: forecast minus real wait, in seconds.
        intervals: number of forecasts with an interval.
        covered: number of these intervals that held the start.
    """

    queue: str
    made: str
    jobs: float
    wait: float
    absolute_error: float
    error: float
    intervals: float
    covered: float


class StartScore(Struct, frozen=True, kw_only=True):
    """Sums over told starts; the fields are columns of the table in their order.

    Attributes:
        week: of the starts, since 1970.
        queue: empty for jobs that name none.
        horizon: ``arrival`` for first forecasts, else the time that was still to come.
        teller: ``walltimed``, ``scheduler`` or ``past-waits``.
        jobs: number of started jobs, in fractions where a part of a job's forecasts counts.
        told: those for which a start was told; the sums that follow are over these.
        error: told minus real start, in seconds.
        within_10: starts told with an error of at most 10 minutes, and so on.
        intervals: number of starts told with an interval.
        covered: number of these intervals that held the start.
    """

    week: int
    queue: str
    horizon: str
    teller: str
    jobs: float
    told: float
    absolute_error: float
    error: float
    within_10: float
    within_20: float
    within_40: float
    within_80: float
    within_160: float
    within_320: float
    within_640: float
    intervals: float
    covered: float


class Queues:
    """The queues of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(self) -> dict[str, int]:
        """Return the version of the queue of each cluster."""
        with self._database.reading() as connection:
            found = connection.execute(select(queues.c.cluster, queues.c.version))
            return {row.cluster: row.version for row in found}

    def read(self, cluster: str) -> tuple[int, bytes] | None:
        """Return the version and the content of a queue; None if there is none."""
        wanted = select(queues.c.version, queues.c.content).where(queues.c.cluster == cluster)
        with self._database.reading() as connection:
            row = connection.execute(wanted).first()
        return None if row is None else (row.version, row.content)

    def facts_at_submission(self, jobs: Sequence[ReportedCompletion]) -> list[Facts | None]:
        """Return the facts of the recorded prediction of each job, which has not ended."""
        with self._database.reading() as connection:
            return facts_at_submission(connection, jobs)

    def replace(  # noqa: PLR0913 - all are stored in one transaction
        self,
        cluster: str,
        version: int,
        content: bytes,
        *,
        received_at: float,
        scores: Collection[WaitScore] = (),
        start_scores: Collection[StartScore] = (),
        started: Collection[Start] = (),
    ) -> bool:
        """Replace the queue of the version before by a new one; add scores and starts.

        Returns:
            False, and nothing is stored, if another process has stored this version.
        """
        values = {"version": version, "received_at": received_at, "content": content}
        with self._database.writing() as connection:
            if not _put(connection, cluster, version, values):
                return False
            _ADD.execute(connection, [(cluster, *astuple(score)) for score in scores])
            _ADD_TOLD.execute(connection, [(cluster, *astuple(each)) for each in start_scores])
            record_starts(connection, started)
            return True

    def scores(self, cluster: str) -> list[WaitScore]:
        """Return the sums of a cluster, by queue and by the time of the forecasts."""
        wanted = (
            select(*(wait_scores.c[name] for name in WaitScore.__struct_fields__))
            .where(wait_scores.c.cluster == cluster)
            .order_by(wait_scores.c.queue, wait_scores.c.made)
        )
        with self._database.reading() as connection:
            return [WaitScore(**row) for row in connection.execute(wanted).mappings()]

    def start_scores(self, cluster: str, weeks: int) -> list[StartScore]:
        """Return the sums over told starts of a cluster, of the last weeks with starts."""
        mine = start_scores_table.c.cluster == cluster
        newest = select(func.max(start_scores_table.c.week)).where(mine).scalar_subquery()
        wanted = (
            select(*(start_scores_table.c[name] for name in StartScore.__struct_fields__))
            .where(mine, start_scores_table.c.week > newest - weeks)
            .order_by(*start_scores_table.primary_key.columns)
        )
        with self._database.reading() as connection:
            return [StartScore(**row) for row in connection.execute(wanted).mappings()]

    def starts(self, cluster: str, submitted: Mapping[str, float]) -> dict[str, float]:
        """Return the start times of ended jobs, by job id.

        Args:
            submitted: submission times by job id; the first start after it counts.
        """
        found: dict[str, float] = {}
        ids = list(submitted)
        with self._database.reading() as connection:
            for first in range(0, len(ids), SOUGHT_AT_ONCE):
                wanted = select(completions.c.job_id, completions.c.start_time).where(
                    completions.c.cluster == cluster,
                    completions.c.job_id.in_(ids[first : first + SOUGHT_AT_ONCE]),
                )
                for job_id, start in connection.execute(wanted):
                    if start >= submitted[job_id]:  # resource managers use job ids again
                        found[job_id] = min(start, found.get(job_id, start))
        return found

    def starts_since(self, cluster: str, after: float, until: float) -> dict[str, float]:
        """Return the last recorded start after one time and until another, by job id."""
        place = starts.c.place
        mine = starts.c.cluster == cluster
        wanted = (
            select(starts.c.job_id, starts.c.start_time).where(mine).order_by(place.desc())
        ).limit(MOST_STARTS)
        with self._database.reading() as connection:
            found = [tuple(row) for row in connection.execute(wanted)]
        return {
            job: start for job, start in sorted(found, key=itemgetter(1)) if after < start <= until
        }

    def runs_ended(
        self, cluster: str, after: float, until: float
    ) -> dict[str, tuple[float, float]]:
        """Return start and end of the last run that ended between two times, by job id."""
        end = completions.c.end_time
        wanted = (
            select(completions.c.job_id, completions.c.start_time, end)
            .where(completions.c.cluster == cluster, end > after, end <= until)
            .order_by(end)
        )
        with self._database.reading() as connection:
            return {
                row.job_id: (row.start_time, row.end_time) for row in connection.execute(wanted)
            }


def _put(connection: Connection, cluster: str, version: int, values: Mapping[str, Any]) -> bool:
    mine = queues.c.cluster == cluster
    before = queues.update().where(mine, queues.c.version == version - 1).values(**values)
    if connection.execute(before).rowcount:
        return True
    if connection.execute(select(queues.c.version).where(mine)).first() is not None:
        return False
    connection.execute(queues.insert().values(cluster=cluster, **values))
    return True
