"""The history store: everything that outlives the process, behind domain types."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from pathlib import Path
from typing import Literal

from sqlalchemy import delete, func, make_url, select

from predictors.base import Memory
from predictors.jobs import Completion
from service.store import (
    forgetting,
    schema,
    signs,
    warm_start,
    writing,
)
from service.store.database import Database, LogReader, StoreUnavailableError
from service.store.forgetting import Erased, Erasure
from service.store.past_runs import PastRuns
from service.store.queue_records import Queues
from service.store.rows import Ingested, RecordedPrediction, ReportedCompletion
from service.store.scores import Scores
from service.store.signs import ClusterSigns
from service.store.sqlite import SqliteDatabase
from service.store.tables import OPEN, completions, predictions
from service.store.tokens import Sessions, Tokens
from service.store.tuning_records import Tunings
from service.store.warm_start import ClusterHistory


class Store:
    """History, recorded predictions, scores, rounds of tuning and tokens in one database.

    The methods block: call them from a thread that may wait, which may be any. Each may raise
    StoreUnavailableError, and SchemaOutdatedError before ``upgrade``; those that write also
    StoreFullError.

    Attributes:
        tunings: rounds of tuning and the parameters they put in force.
        queues: the live queues of clusters, and how far off their forecasts were.
        past_runs: of a period, for reports and exports.
        scores: of the methods.
        tokens: that callers present.
        sessions: of browsers that a token let in.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tunings = Tunings(database)
        self.queues = Queues(database)
        self.past_runs = PastRuns(database)
        self.scores = Scores(database)
        self.tokens = Tokens(database)
        self.sessions = Sessions(database)

    @property
    def name(self) -> str:
        """What people call the database by: its file or its address, without a password."""
        return self._database.name

    def upgrade(self) -> bool:
        """Bring the schema up to this release's; safe from several processes at once.

        Returns whether the history is new.
        """
        return schema.upgrade(self._database)

    def check(self) -> None:
        """Raise SchemaOutdatedError unless the schema is this release's."""
        schema.check(self._database)

    def fingerprint(self) -> str:
        """A short text that is another for every history; a copy of a history has the same."""
        with self._database.reading() as connection:
            return schema.fingerprint(connection)

    def signs(self, since: float, now: float) -> list[ClusterSigns]:
        """What predictions and runs since ``since`` show of how each cluster is connected."""
        with self._database.reading() as connection:
            return signs.read(connection, since, now)

    def close(self) -> None:
        """Close all connections: those in use once they are given back."""
        self._database.close()

    def write(
        self,
        groups: Sequence[Sequence[ReportedCompletion]],
        predictions: Sequence[RecordedPrediction] = (),
    ) -> list[Ingested]:
        """Store predictions, then completions, in one transaction; return one count a group.

        All of it is durable on return, or, after an error, none of it was acknowledged. Writing
        the same again stores nothing twice and scores nothing twice.

        Raises:
            RefusedRecordError: the database cannot hold a value, so that nothing was stored.
        """
        with self._database.writing() as connection:
            counts = writing.write(connection, groups, predictions)
        if any(count.accepted for count in counts):
            with suppress(StoreUnavailableError):  # it is durable, whoever hears of it
                self._database.announce()
        return counts

    def import_completions(
        self, completions: Iterable[Completion], *, batch: int = 5000
    ) -> Iterator[Ingested]:
        """Store a history in transactions of ``batch`` runs; yields after each durable one."""
        remaining = iter(completions)
        while runs := [ReportedCompletion(completion=run) for run in islice(remaining, batch)]:
            yield self.write([runs])[0]

    def reader(self) -> LogReader:
        """Follow the log from its beginning."""
        return self._database.follow()

    def warm_start(
        self, memories: Sequence[Memory], now: float, clusters: Sequence[str] | None = None
    ) -> tuple[LogReader, list[Iterator[Completion]]]:
        """The parts of the log that ``memories`` ask for, each cluster by cluster in log order.

        What an earlier part has of a cluster's latest runs is left out of later parts: nothing of
        a long history is read twice.

        Args:
            memories: what those who learn remember.
            now: Unix seconds; later end times do not move the window.
            clusters: whose parts are wanted; by default all that have a history.

        Returns:
            A reader of what is stored after this moment, and the parts of what was before.
        """
        horizon = self._database.horizon()
        wanted = self.clusters() if clusters is None else clusters
        latest = accumulate((memory.latest_jobs for memory in memories), max, initial=0)
        parts = [
            warm_start.read_memory(
                self._database, (horizon, now), memory, wanted, but_latest=had_before
            )
            for memory, had_before in zip(memories, latest, strict=False)
        ]
        return self._database.follow(horizon), parts

    def history_length(self) -> int:
        """The number of stored completions."""
        with self._database.reading() as connection:
            return connection.execute(select(func.count()).select_from(completions)).scalar_one()

    def clusters(self) -> list[str]:
        """The clusters that have a history, by name."""
        with self._database.reading() as connection:
            return warm_start.read_clusters(connection)

    def sizes(self) -> list[ClusterHistory]:
        """How long the history of each cluster is, by name."""
        with self._database.reading() as connection:
            return warm_start.read_sizes(connection)

    def active_clusters(self) -> list[str]:
        """The clusters that have a history, those first whose runs ended last."""
        with self._database.reading() as connection:
            return warm_start.read_active_clusters(connection)

    def drop_stale_predictions(self, before: float) -> int:
        """Forget predictions recorded earlier whose job never ended; returns how many."""
        stale = delete(predictions).where(OPEN, predictions.c.recorded_at < before)
        with self._database.writing() as connection:
            return connection.execute(stale).rowcount

    def back_up(self, copy: Path) -> None:
        """Write the history as it is at this moment to a file, while it is in use.

        Raises:
            FileInTheWayError: there is such a file.
            NotOursError: the database's own tools do it.
        """
        self._database.back_up(copy)

    def restore(self, copy: Path, *, aside: Path) -> None:
        """Put the history of a file in the place of this one, which is kept as ``aside``.

        Raises:
            StoreDamagedError: the file is no whole database.
            StoreUnavailableError: somebody uses this history.
            NotOursError: the database's own tools do it.
        """
        self.close()
        self._database.restore(copy, aside=aside)

    def check_whole(self) -> None:
        """Read all of the history's pages, where the database does not do it by itself.

        Raises:
            StoreDamagedError: something is wrong with them.
        """
        self._database.check_whole()

    def erasable(self, erasure: Erasure) -> Erased:
        """Count the rows that ``erase`` would delete."""
        with self._database.reading() as connection:
            return forgetting.count(connection, erasure)

    def erase(self, erasure: Erasure, now: float) -> Erased:
        """Delete a part of the history; running workers learn the rest of it anew.

        Predictions that were answered before and are still to be recorded are deleted too.
        """
        with self._database.writing() as connection:
            self._database.hold_back_predictions(connection)
            return forgetting.erase(connection, erasure, now)

    def scrub(self, names: Collection[str]) -> str | None:
        """Overwrite what was deleted, so that no file of the database holds ``names`` any more.

        Returns what is left to be known or done, in a sentence; None if nothing is.
        """
        return self._database.scrub(names)

    def last_erasure(self) -> int:
        """A number that grows with every erasure."""
        with self._database.reading() as connection:
            return forgetting.read_last_erasure(connection)


def open_store(url: str, *, sqlite_synchronous: Literal["full", "normal"] = "full") -> Store:
    """Open the store at a SQLAlchemy URL, without touching its schema.

    Args:
        url: `sqlite:///FILE` or `postgresql+psycopg://USER@HOST/DATABASE`.
        sqlite_synchronous: `full` survives power loss, `normal` the end of the process.

    Raises:
        ValueError: the URL names no database that is known here.
    """
    try:
        parsed = make_url(url)
    except ValueError:  # its words could be part of a password
        raise ValueError(
            "the port is no number; @, : and % of a password are written %40, %3A and %25."
        ) from None
    match parsed.get_backend_name():
        case "sqlite":
            return Store(SqliteDatabase(parsed, sqlite_synchronous))
        case "postgresql":
            from service.store.postgres import PostgresDatabase  # noqa: PLC0415 - loads its driver

            return Store(PostgresDatabase(parsed))
        case other:
            raise ValueError(f"A database is sqlite or postgresql, not {other!r}.")
