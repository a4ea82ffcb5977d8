"""Runs of a period, as reports and exports read them."""

from collections.abc import Generator

from msgspec import Struct
from sqlalchemy import select

from predictors.jobs import Completion
from service.store.database import Database
from service.store.rows import COMPLETION, completion_of
from service.store.tables import completions

AT_ONCE = 2000
"""Rows that are fetched at a time."""


class PastRun(Struct, frozen=True, kw_only=True, gc=False):
    """What a report needs to know of a run; times in seconds."""

    user: str | None
    queue: str | None
    project: str | None
    application: str | None
    processors: int
    requested_walltime: float
    runtime: float
    wait: float
    status: str


class PastRuns:
    """The runs of a period. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, cluster: str, since: float, until: float, most: int) -> list[PastRun]:
        """The runs of a cluster that ended within the period, the newest ``most`` of them."""
        c = completions.c
        wanted = (
            select(
                c.user_name,
                c.queue,
                c.project,
                c.application,
                c.requested_processors,
                c.requested_walltime,
                c.runtime,
                c.start_time,
                c.submit_time,
                c.status,
            )
            .where(c.cluster == cluster, c.end_time >= since, c.end_time < until)
            .order_by(c.end_time.desc())
            .limit(most)
        )
        with self._database.reading() as connection:
            found = connection.execution_options(yield_per=AT_ONCE).execute(wanted)
            return [
                PastRun(
                    user=row[0],
                    queue=row[1],
                    project=row[2],
                    application=row[3],
                    processors=row[4] or 1,
                    requested_walltime=row[5],
                    runtime=row[6],
                    wait=max(0.0, row[7] - row[8]),
                    status=row[9],
                )
                for row in found
            ]

    def exported(self, cluster: str | None, since: float, until: float) -> Generator[Completion]:
        """All runs that ended within the period, in the order of their submission."""
        c = completions.c
        wanted = select(*(c[name] for name in COMPLETION)).where(
            c.end_time >= since, c.end_time < until
        )
        if cluster is not None:
            wanted = wanted.where(c.cluster == cluster)
        wanted = wanted.order_by(c.submit_time, c.seq)
        with self._database.reading() as connection:
            for row in connection.execution_options(yield_per=AT_ONCE).execute(wanted):
                yield completion_of(tuple(row))
