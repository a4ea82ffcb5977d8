"""The history store: everything that outlives the process, behind domain types."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal

from sqlalchemy import delete, make_url

from predictors.jobs import Completion
from service.store import diagnostics, schema, writing
from service.store.database import Database, LogReader, StoreUnavailableError
from service.store.diagnostics import ClusterDiagnostics
from service.store.forgetting import Erasures
from service.store.past_runs import PastRuns
from service.store.queue_records import Queues
from service.store.rows import Ingested, RecordedPrediction, ReportedCompletion
from service.store.scores import Scores
from service.store.sqlite import SqliteDatabase
from service.store.tables import OPEN, predictions
from service.store.tokens import Sessions, Tokens
from service.store.tuning_records import Tunings


class Store:
    """History, recorded predictions, scores, rounds of tuning and tokens in one database.

    The methods block: call them from a thread that may wait, which may be any. Each may raise
    StoreUnavailableError, and SchemaOutdatedError before ``upgrade``; those that write also
    StoreFullError.

    Attributes:
        tunings: rounds of tuning and the parameters they put in force.
        queues: the live queues of clusters, and how far off their forecasts were.
        past_runs: the runs of all clusters.
        erasures: delete parts of the history.
        scores: of the methods.
        tokens: that callers present.
        sessions: of browsers that a token let in.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tunings = Tunings(database)
        self.queues = Queues(database)
        self.past_runs = PastRuns(database)
        self.erasures = Erasures(database)
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

    def diagnostics(self, since: float, now: float) -> list[ClusterDiagnostics]:
        """What predictions and runs since ``since`` show of how each cluster is connected."""
        with self._database.reading() as connection:
            return diagnostics.read(connection, since, now)

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
