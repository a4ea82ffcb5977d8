"""Rounds of tuning and what they put in force.

A round is asked for, runs, and ends. An index allows one open round per cluster, so it does not
matter how many workers ask at once. Only the process that holds ``lock`` runs rounds, one after the
other; the lock ends with the process. A round that is ``running`` while the lock is free was
interrupted, and runs anew.
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
"""Rounds in a list, the newest."""


class Adoption(Struct, frozen=True, kw_only=True):
    """What a round puts in force.

    Attributes:
        subject: what it is about: ``knn``, ``attention``, ``price`` or ``auto``.
        parameters: as JSON; None: what the settings say.
        made_until: when the last of the runs ended that it was made on; None where a later round
            is not to ask whether it has lost.
    """

    subject: str
    parameters: Any
    made_until: float | None = None


class ActiveAdoption(Struct, frozen=True, kw_only=True):
    """The last adoption of a cluster and subject.

    Attributes:
        parameters: as in ``Adoption``.
        made_until: as in ``Adoption``.
        replaced: parameters of the adoption before; None: what the settings say.
    """

    parameters: Any
    made_until: float | None
    replaced: Any = None


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
        tuning_id: names the round for good.
        cluster: whose history is tuned on.
        state: where it is.
        origin: why the round was asked for: ``history``, ``request`` or ``command``.
        plan: what it looks at, and what it wants.
        asked_at: Unix seconds, and so the other times.
        started_at: when it began to run, the last time.
        finished_at: when it ended.
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
    finished_at: float | None = None
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

    def lock(self) -> AbstractContextManager[bool]:
        """Take the lock of those who run rounds; False, without waiting, if a process has it."""
        return self._database.tuning_lock()

    def open(self) -> list[Tuning]:
        """Return the rounds that have not ended, oldest first."""
        is_open = tunings.c.state.in_(OPEN)
        with self._database.reading() as connection:
            found = connection.execute(select(tunings).where(is_open).order_by(tunings.c.asked_at))
            return list(map(_tuning, found))

    def begin(self, tuning: Tuning, now: float) -> None:
        """Note that an open round runs from now on."""
        self._update(tuning, state=TuningState.RUNNING, started_at=now, progress=None, error=None)

    def report(self, tuning: Tuning, progress: Mapping[str, Any]) -> None:
        """Note how far a round is."""
        self._update(tuning, progress=_json(progress))

    def finish(
        self,
        tuning: Tuning,
        outcome: Mapping[str, Any],
        adopted: Sequence[Adoption],
        now: float,
    ) -> None:
        """End a round, and put what it adopted in force; both, or neither if it has ended."""
        ended = {"state": TuningState.DONE, "finished_at": now, "outcome": _json(outcome)}
        with self._database.writing() as connection:
            if connection.execute(_change(tuning).values(ended)).rowcount:
                for adoption in adopted:
                    _adopt(connection, tuning, adoption, now)

    def fail(self, tuning: Tuning, error: str, now: float) -> None:
        """End a round that cannot be brought to a good end."""
        self._update(tuning, state=TuningState.FAILED, finished_at=now, error=error)

    def _update(self, tuning: Tuning, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(_change(tuning).values(values))

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

    def active(self) -> dict[str, dict[str, ActiveAdoption]]:
        """Return what rounds put in force last, by cluster and subject."""
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

    def of_cluster(self, cluster: str) -> list[Tuning]:
        """The latest rounds, newest first."""
        latest = select(tunings).where(tunings.c.cluster == cluster)
        newest_first = latest.order_by(tunings.c.asked_at.desc(), tunings.c.tuning_id)
        with self._database.reading() as connection:
            return list(map(_tuning, connection.execute(newest_first.limit(LISTED))))

    def find(self, tuning_id: str) -> Tuning | None:
        """One round."""
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
    """Completions behind a place in the log, counted up to ``most``."""
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
