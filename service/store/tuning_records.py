"""Rounds of tuning and what they put in force.

A round is asked for, taken by a process, and ends. Of one cluster at most one round is open, which
an index holds, so it does not matter how many workers ask at once. A process that takes a round
says now and then that it is alive; a round of which nothing was heard for long is given back.
"""

import secrets
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Row, case, func, literal, select, text

from predictors.jobs import Completion
from predictors.tuning.plan import TuningPlan
from service.store.database import Database
from service.store.rows import COMPLETION, completion_of
from service.store.store_errors import TuningLostError
from service.store.tables import completions, parameters, tunings

MOST_ATTEMPTS = 3
"""A round whose processes died so often has failed."""

LISTED = 100
"""Rounds in a list, the newest."""


class Adoption(Struct, frozen=True, kw_only=True):
    """What a round puts in force.

    Attributes:
        subject: what it is about: ``knn``, ``attention``, ``price`` or ``auto``.
        parameters: as JSON; None: what the settings say.
        content: what is no JSON.
        made_until: when the last of the runs ended that it was made on; None where a later round
            is not to ask whether it has lost.
    """

    subject: str
    parameters: Any
    content: bytes | None = None
    made_until: float | None = None


class InForce(Struct, frozen=True, kw_only=True):
    """What rounds put in force.

    Attributes:
        adoption: the last one of its cluster and subject.
        replaced: the one before it; None where that was what the settings say.
    """

    adoption: Adoption
    replaced: Adoption | None = None


class TuningState(StrEnum):
    """The states of a round."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Tuning(Struct, frozen=True, kw_only=True):
    """One round of tuning.

    Attributes:
        tuning_id: names the round for good.
        cluster: whose history is tuned on.
        state: where it is.
        origin: why the round was asked for: ``history``, ``request`` or ``command``.
        plan: what it looks at, and what it wants.
        asked_at: Unix seconds, and so the other times.
        started_at: when a process took it, the last time.
        seen_at: when that was last heard of.
        finished_at: when it ended.
        attempts: how many processes took it.
        progress: how far it is, as the search says it.
        outcome: what it found.
        error: why it failed.
    """

    tuning_id: str
    cluster: str
    state: TuningState
    origin: str
    plan: TuningPlan
    asked_at: float
    started_at: float | None = None
    seen_at: float | None = None
    finished_at: float | None = None
    attempts: int = 0
    progress: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    error: str | None = None


class Tunings:
    """The rounds of all clusters. The methods block, as those of the store do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, cluster: str, plan: TuningPlan, origin: str, now: float) -> Tuning:
        """Ask for a round; where one is open, that one is the answer.

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

    def take(self, tuning_id: str, now: float) -> Tuning | None:
        """Take a waiting round, as its only process; None if it is not waiting any more."""
        taken = (
            tunings.update()
            .where(tunings.c.tuning_id == tuning_id, tunings.c.state == TuningState.WAITING)
            .values(
                state=TuningState.RUNNING,
                started_at=now,
                seen_at=now,
                attempts=tunings.c.attempts + 1,
            )
        )
        with self._database.writing() as connection:
            if not connection.execute(taken).rowcount:
                return None
            return _read(connection, tuning_id)

    def tell(self, tuning: Tuning, progress: Mapping[str, Any], now: float) -> None:
        """Say how far a round is, and that its process is alive.

        Raises:
            TuningLostError: it is not this process's any more.
        """
        with self._database.writing() as connection:
            _update(connection, tuning, seen_at=now, progress=_json(progress))

    def finish(
        self,
        tuning: Tuning,
        outcome: Mapping[str, Any],
        adopted: Sequence[Adoption],
        now: float,
    ) -> None:
        """End a round, and put what it adopted in force; both or neither.

        Raises:
            TuningLostError: it is not this process's any more.
        """
        with self._database.writing() as connection:
            _update(
                connection,
                tuning,
                state=TuningState.DONE,
                finished_at=now,
                outcome=_json(outcome),
            )
            for adoption in adopted:
                _adopt(connection, tuning, adoption, now)

    def fail(self, tuning: Tuning, error: str, now: float) -> None:
        """End a round that cannot be brought to a good end.

        Raises:
            TuningLostError: it is not this process's any more.
        """
        with self._database.writing() as connection:
            _update(connection, tuning, state=TuningState.FAILED, finished_at=now, error=error)

    def give_back(self, tuning: Tuning, now: float) -> None:
        """Let another process take a round whose process has ended without ending the round."""
        with self._database.writing() as connection:
            _give_back(connection, _held(tuning), now)

    def give_back_silent(self, now: float, silent_since: float) -> int:
        """Give silent running rounds back to the waiting ones; returns their number."""
        with self._database.writing() as connection:
            return _give_back(connection, _silent(silent_since), now)

    def waiting(self) -> list[Tuning]:
        """Rounds that no process has taken yet, oldest first."""
        waiting = select(tunings).where(tunings.c.state == TuningState.WAITING)
        with self._database.reading() as connection:
            return list(map(_tuning, connection.execute(waiting.order_by(tunings.c.asked_at))))

    def any_silent(self, silent_since: float) -> bool:
        """Whether there are running rounds of which nothing was heard since."""
        silent = select(tunings.c.tuning_id).where(_silent(silent_since))
        with self._database.reading() as connection:
            return connection.execute(silent).first() is not None

    def is_due(self, cluster: str, plan: TuningPlan) -> bool:
        """Whether t2 completions have come since the last round was asked for."""
        asked = select(func.max(tunings.c.horizon)).where(tunings.c.cluster == cluster)
        with self._database.reading() as connection:
            last = connection.execute(asked).scalar()
            needed = plan.fewest_jobs if last is None else plan.test
            return _count(connection, cluster, after=last or 0, most=needed) >= needed

    def latest_completions(self, cluster: str, count: int) -> list[Completion]:
        """The runs of a cluster that ended last, in log order."""
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
        """A number that grows with everything that is put in force."""
        with self._database.reading() as connection:
            return connection.execute(select(func.max(parameters.c.version))).scalar() or 0

    def in_force(self) -> dict[str, dict[str, InForce]]:
        """What rounds put in force last, by cluster and subject."""
        last = select(func.max(parameters.c.version)).group_by(
            parameters.c.cluster, parameters.c.subject
        )
        before = parameters.alias()
        found: dict[str, dict[str, InForce]] = {}
        chosen = (
            select(parameters, before.c.parameters, before.c.content)
            .outerjoin(before, before.c.version == parameters.c.replaced)
            .where(parameters.c.version.in_(last))
        )
        with self._database.reading() as connection:
            for row in connection.execute(chosen).all():
                values = tuple(row)
                adoption = Adoption(
                    subject=row.subject,
                    parameters=msgspec.json.decode(row.parameters),
                    content=row.content,
                    made_until=row.made_until,
                )
                replaced = None
                if values[-2] is not None:
                    replaced = Adoption(
                        subject=row.subject,
                        parameters=msgspec.json.decode(values[-2]),
                        content=values[-1],
                    )
                by_subject = found.setdefault(row.cluster, {})
                by_subject[row.subject] = InForce(adoption=adoption, replaced=replaced)
        return found

    def of_cluster(self, cluster: str) -> list[Tuning]:
        """The latest rounds, newest first."""
        latest = select(tunings).where(tunings.c.cluster == cluster)
        newest_first = latest.order_by(tunings.c.asked_at.desc(), tunings.c.tuning_id)
        with self._database.reading() as connection:
            return list(map(_tuning, connection.execute(newest_first.limit(LISTED))))

    def find(self, tuning_id: str) -> Tuning | None:
        """One round."""
        with self._database.reading() as connection:
            return _read(connection, tuning_id)


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
        "attempts": 0,
        "horizon": connection.execute(select(func.max(completions.c.seq))).scalar_one(),
    }
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    connection.execute(
        text(f"INSERT INTO tunings ({names}) VALUES ({values}) ON CONFLICT DO NOTHING"),  # noqa: S608
        row,
    )


def _adopt(connection: Connection, tuning: Tuning, adoption: Adoption, now: float) -> None:
    """Put something in force that replaces what was adopted last about the same subject."""
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
            content=adoption.content,
            replaced=connection.execute(last).scalar(),
            made_until=adoption.made_until,
        )
    )


def _open(cluster: str) -> Any:
    return (tunings.c.cluster == cluster) & tunings.c.state.in_(
        [TuningState.WAITING, TuningState.RUNNING]
    )


def _count(connection: Connection, cluster: str, *, after: int, most: int) -> int:
    """Completions behind a place in the log, counted up to ``most``."""
    few = (
        select(literal(1))
        .select_from(completions)
        .where(completions.c.cluster == cluster, completions.c.seq > after)
        .limit(most)
        .subquery()
    )
    return connection.execute(select(func.count()).select_from(few)).scalar_one()


def _silent(since: float) -> Any:
    return (tunings.c.state == TuningState.RUNNING) & (tunings.c.seen_at <= since)


def _held(tuning: Tuning) -> Any:
    """The round as its process knows it, for as long as it is that one's."""
    return (
        (tunings.c.tuning_id == tuning.tuning_id)
        & (tunings.c.state == TuningState.RUNNING)
        & (tunings.c.attempts == tuning.attempts)
    )


def _update(connection: Connection, tuning: Tuning, **values: Any) -> None:
    """Change a round that its process still has."""
    change = tunings.update().where(_held(tuning)).values(**values)
    if not connection.execute(change).rowcount:
        raise TuningLostError(f"The round {tuning.tuning_id} was given to another process.")


def _give_back(connection: Connection, which: Any, now: float) -> int:
    worn_out = tunings.c.attempts >= MOST_ATTEMPTS
    change = (
        tunings.update()
        .where(which)
        .values(
            state=case((worn_out, TuningState.FAILED), else_=TuningState.WAITING),
            finished_at=case((worn_out, now), else_=None),
            error=f"Its process died, {MOST_ATTEMPTS} times.",
        )
    )
    return connection.execute(change).rowcount


def _read(connection: Connection, tuning_id: str) -> Tuning | None:
    row = connection.execute(select(tunings).where(tunings.c.tuning_id == tuning_id)).first()
    return None if row is None else _tuning(row)


def _tuning(row: Row[Any]) -> Tuning:
    return Tuning(
        tuning_id=row.tuning_id,
        cluster=row.cluster,
        state=TuningState(row.state),
        origin=row.origin,
        plan=msgspec.json.decode(row.plan, type=TuningPlan),
        asked_at=row.asked_at,
        started_at=row.started_at,
        seen_at=row.seen_at,
        finished_at=row.finished_at,
        attempts=row.attempts,
        progress=_value(row.progress),
        outcome=_value(row.outcome),
        error=row.error if row.state == TuningState.FAILED else None,
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _value(text_of_json: str | None) -> dict[str, Any] | None:
    return None if text_of_json is None else msgspec.json.decode(text_of_json)
