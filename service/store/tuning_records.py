"""Tuning rounds and the parameters that they adopted.

A round is requested, runs, and ends. An index allows one open round per cluster, so that several
workers may request one at once. Only the process that holds ``lock`` runs rounds, one after the
other; the lock is released with the process. A round in state ``running`` while the lock is free
was interrupted, and runs anew.
"""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Row, Update, func, literal, select, text

from predictors.jobs import Completion
from predictors.tuning.plan import TuningPlan
from service.store.database import Database
from service.store.rows import COMPLETION, completion_of
from service.store.tables import completions, parameters, tunings

LISTED = 100
"""Largest number of rounds in a list."""


class Adoption(Struct, frozen=True, kw_only=True):
    """Parameters of one subject that a round puts in force.

    Attributes:
        subject: ``knn``, ``forest``, ``price`` or ``auto``.
        parameters: JSON value; None for the default of the settings.
        made_until: end of the last run that the round used, in Unix seconds; None if later rounds
            do not review the adoption.
    """

    subject: str
    parameters: Any
    made_until: float | None = None


class ActiveAdoption(Struct, frozen=True, kw_only=True):
    """The last adoption of a cluster and subject.

    Attributes:
        parameters: as in ``Adoption``.
        made_until: as in ``Adoption``.
        replaced: parameters of the adoption before; None for the default of the settings.
    """

    parameters: Any
    made_until: float | None
    replaced: Any = None


class AdoptingRound(Struct, frozen=True, kw_only=True):
    """The round whose adoption is in force.

    Attributes:
        verdict: of the proposal, as the round stored it.
    """

    tuning_id: str
    adopted_at: float
    verdict: dict[str, Any]


class TuningState(StrEnum):
    """The states of a round."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


OPEN = (TuningState.WAITING, TuningState.RUNNING)
"""States of rounds that have not ended."""


class Tuning(Struct, frozen=True, kw_only=True):
    """One round of tuning.

    Attributes:
        tuning_id: unique id.
        cluster: cluster whose runs are used.
        state: of the round.
        origin: reason of the request: ``history``, ``request`` or ``command``.
        plan: data and goal of the search.
        asked_at: time of the request, in Unix seconds, as the other times.
        started_at: time of the last start.
        finished_at: time of the end.
        progress: last report of the search.
        outcome: result.
        error: reason of a failure.
    """

    tuning_id: str
    cluster: str
    state: TuningState
    origin: str
    plan: TuningPlan
    asked_at: float
    started_at: float | None = None
    finished_at: float | None = None
    progress: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    error: str | None = None


class Tunings:
    """The rounds of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, cluster: str, plan: TuningPlan, origin: str, now: float) -> Tuning:
        """Request a round; return the cluster's open round if there is one.

        Raises:
            TooShortHistoryError: the cluster has too few completions.
        """
        with self._database.writing() as connection:
            plan.check(_count(connection, cluster, after=0, most=plan.fewest_jobs))
            while True:
                _insert(connection, cluster, plan, origin, now)
                # The round that stood in the way may have ended just now.
                if found := connection.execute(select(tunings).where(_open(cluster))).first():
                    return _tuning(found)

    def lock(self) -> AbstractContextManager[bool]:
        """Take the lock of processes that run rounds; False, without waiting, if it is held."""
        return self._database.tuning_lock()

    def open(self) -> list[Tuning]:
        """Return the rounds that have not ended, oldest first."""
        is_open = tunings.c.state.in_(OPEN)
        with self._database.reading() as connection:
            found = connection.execute(select(tunings).where(is_open).order_by(tunings.c.asked_at))
            return list(map(_tuning, found))

    def begin(self, tuning: Tuning, now: float) -> None:
        """Store that an open round runs from now on."""
        self._update(tuning, state=TuningState.RUNNING, started_at=now, progress=None, error=None)

    def report(self, tuning: Tuning, progress: Mapping[str, Any]) -> None:
        """Store a report of a round's progress."""
        self._update(tuning, progress=_json(progress))

    def finish(
        self,
        tuning: Tuning,
        outcome: Mapping[str, Any],
        adopted: Sequence[Adoption],
        now: float,
    ) -> None:
        """End a round and put its adoptions in force; do nothing if the round has ended."""
        ended = {"state": TuningState.DONE, "finished_at": now, "outcome": _json(outcome)}
        with self._database.writing() as connection:
            if connection.execute(_change(tuning).values(ended)).rowcount:
                for adoption in adopted:
                    _adopt(connection, tuning, adoption, now)

    def fail(self, tuning: Tuning, error: str, now: float) -> None:
        """End a round that failed."""
        self._update(tuning, state=TuningState.FAILED, finished_at=now, error=error)

    def _update(self, tuning: Tuning, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(_change(tuning).values(values))

    def is_due(self, cluster: str, plan: TuningPlan) -> bool:
        """Return whether ``plan.test`` completions have come since the last request of a round."""
        horizon = select(func.max(tunings.c.horizon)).where(tunings.c.cluster == cluster)
        with self._database.reading() as connection:
            last = connection.execute(horizon).scalar()
            needed = plan.fewest_jobs if last is None else plan.test
            return _count(connection, cluster, after=last or 0, most=needed) >= needed

    def latest_completions(self, cluster: str, count: int) -> list[Completion]:
        """Return the runs of a cluster that ended last, in log order."""
        columns = ", ".join(COMPLETION)
        order = self._database.log_order
        newest = text(
            f"""SELECT {columns} FROM (
                SELECT * FROM completions WHERE cluster = :cluster
                ORDER BY end_time DESC, seq DESC LIMIT :count) AS newest
            ORDER BY {order}"""  # noqa: S608 - names of columns
        )
        with self._database.reading() as connection:
            rows = connection.execute(newest, {"cluster": cluster, "count": count})
            return [completion_of(tuple(row)) for row in rows]

    def version(self) -> int:
        """Return a number that grows with every adoption; 0 without adoptions."""
        with self._database.reading() as connection:
            return connection.execute(select(func.max(parameters.c.version))).scalar() or 0

    def active(self) -> dict[str, dict[str, ActiveAdoption]]:
        """Return the last adoptions, by cluster and subject."""
        key = parameters.c.cluster, parameters.c.subject
        last = select(func.max(parameters.c.version)).group_by(*key)
        before = parameters.alias()
        chosen = (
            select(parameters, before.c.parameters.label("before"))
            .outerjoin(before, before.c.version == parameters.c.replaced)
            .where(parameters.c.version.in_(last))
        )
        found: dict[str, dict[str, ActiveAdoption]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(chosen):
                found.setdefault(row.cluster, {})[row.subject] = ActiveAdoption(
                    parameters=_value(row.parameters),
                    made_until=row.made_until,
                    replaced=_value(row.before),
                )
        return found

    def adopting(self, cluster: str) -> dict[str, AdoptingRound]:
        """Return the rounds that adopted what is in force in a cluster, by subject.

        Subjects whose last adoption was dropped are left out.
        """
        last = select(func.max(parameters.c.version)).group_by(parameters.c.subject)
        chosen = (
            select(parameters.c.subject, parameters.c.since, tunings.c.tuning_id, tunings.c.outcome)
            .join(tunings, tunings.c.tuning_id == parameters.c.tuning_id)
            .where(parameters.c.version.in_(last.where(parameters.c.cluster == cluster)))
        )
        found = {}
        with self._database.reading() as connection:
            for row in connection.execute(chosen):
                for change in (_value(row.outcome) or {}).get("changes", ()):
                    if change["subject"] == row.subject and change["action"] in {
                        "adopted",
                        "renewed",
                    }:
                        found[row.subject] = AdoptingRound(
                            tuning_id=row.tuning_id,
                            adopted_at=row.since,
                            verdict=change["verdict"],
                        )
        return found

    def of_cluster(self, cluster: str) -> list[Tuning]:
        """Return the latest rounds of a cluster, newest first."""
        latest = select(tunings).where(tunings.c.cluster == cluster)
        newest_first = latest.order_by(tunings.c.asked_at.desc(), tunings.c.tuning_id)
        with self._database.reading() as connection:
            return list(map(_tuning, connection.execute(newest_first.limit(LISTED))))

    def find(self, tuning_id: str) -> Tuning | None:
        """Return a round; None if there is none of this id."""
        wanted = select(tunings).where(tunings.c.tuning_id == tuning_id)
        with self._database.reading() as connection:
            row = connection.execute(wanted).first()
        return None if row is None else _tuning(row)


def _insert(
    connection: Connection, cluster: str, plan: TuningPlan, origin: str, now: float
) -> None:
    """Add a round, unless one is open."""
    row = {
        "tuning_id": secrets.token_hex(8),
        "cluster": cluster,
        "state": TuningState.WAITING.value,
        "origin": origin,
        "plan": _json(plan),
        "asked_at": now,
        "horizon": connection.execute(select(func.max(completions.c.seq))).scalar_one(),
    }
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    connection.execute(
        text(f"INSERT INTO tunings ({names}) VALUES ({values}) ON CONFLICT DO NOTHING"),  # noqa: S608
        row,
    )


def _adopt(connection: Connection, tuning: Tuning, adoption: Adoption, now: float) -> None:
    """Store an adoption, which replaces the last one of the same subject."""
    last = select(func.max(parameters.c.version)).where(
        parameters.c.cluster == tuning.cluster, parameters.c.subject == adoption.subject
    )
    connection.execute(
        parameters.insert().values(
            cluster=tuning.cluster,
            tuning_id=tuning.tuning_id,
            parameters=_json(adoption.parameters),
            since=now,
            subject=adoption.subject,
            replaced=connection.execute(last).scalar(),
            made_until=adoption.made_until,
        )
    )


def _open(cluster: str) -> Any:
    return (tunings.c.cluster == cluster) & tunings.c.state.in_(OPEN)


def _change(tuning: Tuning) -> Update:
    """Return the change of a round that has not ended."""
    return tunings.update().where(
        tunings.c.tuning_id == tuning.tuning_id, tunings.c.state.in_(OPEN)
    )


def _count(connection: Connection, cluster: str, *, after: int, most: int) -> int:
    """Count completions after a place in the log, up to ``most``."""
    few = (
        select(literal(1))
        .select_from(completions)
        .where(completions.c.cluster == cluster, completions.c.seq > after)
        .limit(most)
        .subquery()
    )
    return connection.execute(select(func.count()).select_from(few)).scalar_one()


def _tuning(row: Row[Any]) -> Tuning:
    return Tuning(
        tuning_id=row.tuning_id,
        cluster=row.cluster,
        state=TuningState(row.state),
        origin=row.origin,
        plan=msgspec.json.decode(row.plan, type=TuningPlan),
        asked_at=row.asked_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        progress=_value(row.progress),
        outcome=_value(row.outcome),
        error=row.error,
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _value(text_of_json: str | None) -> Any:
    return None if text_of_json is None else msgspec.json.decode(text_of_json)
