"""Tuning rounds and the parameters that they adopted.

A row is written when a round begins and when it ends. Only the process that holds ``lock`` runs
rounds, one after the other; the lock is released with the process. A round in state ``running``
while the lock is free was interrupted, and is due.
"""

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Row, Select, Update, delete, func, insert, literal, select, text

from predictors.jobs import Completion
from predictors.tuning.adoption import RoundChange, Verdict
from predictors.tuning.knn_tunable import KnnRound
from predictors.tuning.plan import SUBJECTS, TuningPlan
from service.store.database import Database
from service.store.rows import COMPLETION, completion_of
from service.store.tables import completions, parameters, tunings

LISTED = 100
"""Largest number of rounds in a list."""


ADOPTING = frozenset({"adopted", "learned", "renewed"})
"""Actions of changes that put a proposal in force."""


class Adoption(Struct, frozen=True, kw_only=True):
    """Parameters of one subject that a round puts in force.

    Attributes:
        subject: ``knn`` or ``forest``; before release 0.3 also ``price`` and ``auto``.
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
        verdict: of the proposal, as the round stored it; None for a forest.
    """

    tuning_id: str
    adopted_at: float
    verdict: Verdict | None


class TuningState(StrEnum):
    """The states of a round."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class RoundOutcome(Struct, frozen=True, kw_only=True):
    """The findings of a round.

    Attributes:
        knn: the search for parameters of knn; None if the plan leaves it out.
        changes: one for each subject of the plan.
    """

    knn: KnnRound | None
    changes: Sequence[RoundChange]


class Tuning(Struct, frozen=True, kw_only=True):
    """One round of tuning.

    Attributes:
        origin: reason of the round: ``history`` or ``command``; older ones also ``request``.
        plan: data and goal of the search.
        started_at: Unix seconds of the last start.
        outcome: findings of a round that is done.
    """

    tuning_id: str
    cluster: str
    state: TuningState
    origin: str
    plan: TuningPlan
    started_at: float
    finished_at: float | None = None
    outcome: RoundOutcome | None = None
    error: str | None = None


class Tunings:
    """The rounds of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, cluster: str, plan: TuningPlan, origin: str, now: float) -> Tuning:
        """Store that a round runs from now on; the caller holds the lock.

        A round of the cluster that was interrupted runs anew under its id.

        Raises:
            TooShortHistoryError: the cluster has too few completions.
        """
        with self._database.writing() as connection:
            plan.check(_count(connection, cluster, after=0, most=plan.fewest_jobs))
            interrupted = connection.execute(_running(cluster)).scalar()
            row = {
                "tuning_id": interrupted or secrets.token_hex(8),
                "cluster": cluster,
                "state": TuningState.RUNNING.value,
                "origin": origin,
                "plan": _json(plan),
                "started_at": now,
                "horizon": connection.execute(select(func.max(completions.c.seq))).scalar_one(),
            }
            connection.execute(delete(tunings).where(tunings.c.tuning_id == interrupted))
            connection.execute(insert(tunings).values(row))
            stored = select(tunings).where(tunings.c.tuning_id == row["tuning_id"])
            return _tuning(connection.execute(stored).one())

    def lock(self) -> AbstractContextManager[bool]:
        """Take the lock of processes that run rounds; False, without waiting, if it is held."""
        return self._database.tuning_lock()

    def running(self) -> list[Tuning]:
        """Return the rounds that have not ended, oldest first."""
        is_running = tunings.c.state == TuningState.RUNNING
        oldest_first = select(tunings).where(is_running).order_by(tunings.c.started_at)
        with self._database.reading() as connection:
            return list(map(_tuning, connection.execute(oldest_first)))

    def finish(
        self,
        tuning: Tuning,
        outcome: RoundOutcome,
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
        """End a round that failed; do nothing if the round has ended."""
        ended = {"state": TuningState.FAILED, "finished_at": now, "error": error}
        with self._database.writing() as connection:
            connection.execute(_change(tuning).values(ended))

    def is_due(self, cluster: str, plan: TuningPlan) -> bool:
        """Return whether ``plan.test`` completions have come since the last round began.

        While no process runs rounds, an interrupted one is due too.
        """
        horizon = select(func.max(tunings.c.horizon)).where(tunings.c.cluster == cluster)
        with self._database.reading() as connection:
            if connection.execute(_running(cluster)).first() is None:
                last = connection.execute(horizon).scalar() or 0
                if _count(connection, cluster, after=last, most=plan.test) < plan.test:
                    return False
            needed = plan.fewest_jobs  # a part of the history may have been erased
            return _count(connection, cluster, after=0, most=needed) >= needed

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
                outcome = _outcome(row.outcome)
                for change in outcome.changes if outcome else ():
                    if change.subject == row.subject and change.action in ADOPTING:
                        found[row.subject] = AdoptingRound(
                            tuning_id=row.tuning_id, adopted_at=row.since, verdict=change.verdict
                        )
        return found

    def of_cluster(self, cluster: str) -> list[Tuning]:
        """Return the latest rounds of a cluster, newest first."""
        latest = select(tunings).where(tunings.c.cluster == cluster)
        newest_first = latest.order_by(tunings.c.started_at.desc(), tunings.c.tuning_id)
        with self._database.reading() as connection:
            return list(map(_tuning, connection.execute(newest_first.limit(LISTED))))

    def find(self, tuning_id: str) -> Tuning | None:
        """Return a round; None if there is none of this id."""
        wanted = select(tunings).where(tunings.c.tuning_id == tuning_id)
        with self._database.reading() as connection:
            row = connection.execute(wanted).first()
        return None if row is None else _tuning(row)


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


def _running(cluster: str) -> Select[tuple[str]]:
    """Return the selection of the id of a cluster's round that has not ended."""
    is_running = (tunings.c.cluster == cluster) & (tunings.c.state == TuningState.RUNNING)
    return select(tunings.c.tuning_id).where(is_running)


def _change(tuning: Tuning) -> Update:
    """Return the change of a round that has not ended."""
    return tunings.update().where(
        tunings.c.tuning_id == tuning.tuning_id, tunings.c.state == TuningState.RUNNING
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


def _plan(stored: str) -> TuningPlan:
    """Return a stored plan, without what rounds of earlier releases did besides."""
    fields = msgspec.json.decode(stored)
    known = {name: value for name, value in fields.items() if name in TuningPlan.__struct_fields__}
    known["subjects"] = [each for each in known.get("subjects", SUBJECTS) if each in SUBJECTS]
    return msgspec.convert(known, TuningPlan)


def _tuning(row: Row[Any]) -> Tuning:
    return Tuning(
        tuning_id=row.tuning_id,
        cluster=row.cluster,
        state=TuningState(row.state),
        origin=row.origin,
        plan=_plan(row.plan),
        started_at=row.started_at,
        finished_at=row.finished_at,
        outcome=_outcome(row.outcome),
        error=row.error,
    )


def _outcome(text_of_json: str | None) -> RoundOutcome | None:
    """Return the findings of a round; None if a release that stored them in another form did."""
    try:
        found = msgspec.json.decode(text_of_json or "null", type=RoundOutcome | None)
    except msgspec.ValidationError:
        return None
    return found and replace(found, changes=list(map(_in_present_words, found.changes)))


def _in_present_words(stored: RoundChange) -> RoundChange:
    """Return a change in the words of this release: no comparison ever decided about a forest."""
    if stored.subject == "forest" and stored.action in {"adopted", "renewed"}:
        return replace(stored, action="learned", verdict=None)
    return stored


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _value(text_of_json: str | None) -> Any:
    return None if text_of_json is None else msgspec.json.decode(text_of_json)
