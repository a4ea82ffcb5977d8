"""What applications are when they run alone: posted once, or taken from the CPU time of runs.

A run on shared nodes is slower than it would be alone, and tells only what it was given. Of the
runs of an application with the same number of tasks, the one that got the largest share of its
CPUs was disturbed least, so its runtime and share stand for the application. What somebody has
posted is never replaced by a run.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct
from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from predictors.jobs import Completion
from service.store.tables import characterisations as table

LEAST_SHARE = 0.001
"""The smallest share of a CPU that an application can have."""

SHORTEST_RUN = 1.0
"""Seconds; a shorter run tells nothing of its share."""

STALE_SECONDS = 90 * 86400.0
"""After this an application may have changed: any newer run takes the place of the old one."""


class Source(StrEnum):
    """The origins of a characterisation."""

    POSTED = "posted"
    ACCOUNTING = "accounting"


class Characterisation(Struct, frozen=True, kw_only=True):
    """An application as it runs alone, with one number of tasks (Hanzich et al. 2005).

    Attributes:
        execution_time: ExeTime_tot, seconds in isolation.
        cpu_share: CPU(J), the fraction of a CPU that each task uses in isolation.
        source: whether it was posted, or comes from the CPU time of a run.
        recorded_at: Unix seconds.
    """

    cluster: str
    application: str
    tasks: int
    execution_time: float
    cpu_share: float
    source: Source
    recorded_at: float


def characterised(run: Completion) -> Characterisation | None:
    """What the CPU time of a run says of its application; None if it says nothing."""
    job = run.submission
    if not run.cpu_time or job.application is None or run.runtime < SHORTEST_RUN:
        return None
    tasks = job.requested_processors or 1
    return Characterisation(
        cluster=job.cluster,
        application=job.application,
        tasks=tasks,
        execution_time=run.runtime,
        cpu_share=min(1.0, max(LEAST_SHARE, run.cpu_time / (tasks * run.runtime))),
        source=Source.ACCOUNTING,
        recorded_at=run.end_time,
    )


def learn(connection: Connection, runs: Iterable[Completion]) -> None:
    """Keep what new runs say of their applications, within the transaction that stores them."""
    best: dict[tuple[str, str, int], Characterisation] = {}
    for found in filter(None, map(characterised, runs)):
        key = (found.cluster, found.application, found.tasks)
        if key not in best or found.cpu_share >= best[key].cpu_share:
            best[key] = found
    # In one order everywhere, or two workers could wait for each other's rows.
    for key in sorted(best):
        _put(connection, best[key])


def put(connection: Connection, posted: Sequence[Characterisation]) -> None:
    """Keep what somebody has posted, in the place of whatever was known."""
    for each in sorted(posted, key=lambda each: (each.cluster, each.application, each.tasks)):
        _put(connection, each)


def read(connection: Connection, cluster: str) -> list[Characterisation]:
    """The applications of a cluster, by name and number of tasks."""
    rows = connection.execute(
        select(table).where(table.c.cluster == cluster).order_by(table.c.application, table.c.tasks)
    )
    return [
        Characterisation(**{**row._mapping, "source": Source(row.source)})  # noqa: SLF001 - a row's API
        for row in rows
    ]


def remove(connection: Connection, cluster: str, application: str) -> int:
    """Forget an application; returns how many numbers of tasks it was known with."""
    return connection.execute(
        delete(table).where(table.c.cluster == cluster, table.c.application == application)
    ).rowcount


def _put(connection: Connection, new: Characterisation) -> None:
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    values = {name: getattr(new, name) for name in new.__struct_fields__}
    statement = dialect.insert(table).values(**values)
    taken = statement.excluded
    keeps_posted = (table.c.source != Source.POSTED.value) & (
        (taken.cpu_share >= table.c.cpu_share)
        | (taken.recorded_at > table.c.recorded_at + STALE_SECONDS)
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[table.c.cluster, table.c.application, table.c.tasks],
            set_={
                name: taken[name]
                for name in ("execution_time", "cpu_share", "source", "recorded_at")
            },
            where=None if new.source is Source.POSTED else keeps_posted,
        )
    )
