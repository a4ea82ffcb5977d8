"""The latest queue of each cluster, and the errors of forecast waits."""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple
from sqlalchemy import Connection, select

from predictors.memory.running_jobs import Start
from service.store.database import Database
from service.store.rows import adding
from service.store.starts import record_starts
from service.store.tables import completions, queues, wait_scores

SOUGHT_AT_ONCE = 500
"""Job ids in one statement."""


_ADD = adding(wait_scores)


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

    def replace(  # noqa: PLR0913 - all are stored in one transaction
        self,
        cluster: str,
        version: int,
        content: bytes,
        *,
        received_at: float,
        scores: Collection[WaitScore] = (),
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


def _put(connection: Connection, cluster: str, version: int, values: Mapping[str, Any]) -> bool:
    mine = queues.c.cluster == cluster
    before = queues.update().where(mine, queues.c.version == version - 1).values(**values)
    if connection.execute(before).rowcount:
        return True
    if connection.execute(select(queues.c.version).where(mine)).first() is not None:
        return False
    connection.execute(queues.insert().values(cluster=cluster, **values))
    return True
