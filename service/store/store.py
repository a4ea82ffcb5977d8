"""The history store: takes and returns domain types."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal

from sqlalchemy import delete, make_url

from service.store import diagnostics, schema, writing
from service.store.database import Database, LogReader, StoreUnavailableError
from service.store.diagnostics import ClusterDiagnostics
from service.store.forgetting import Erasures
from service.store.past_runs import EndedJobs, PastRuns
from service.store.queue_records import Queues
from service.store.rows import Ingested, RecordedPrediction, ReportedCompletion
from service.store.scores import Scores
from service.store.sqlite import SqliteDatabase
from service.store.starts import Starts
from service.store.tables import OPEN, predictions
from service.store.tokens import Sessions, Tokens
from service.store.tuning_records import Tunings


class Store:
    """History, recorded predictions, scores, rounds of tuning and tokens in one database.

    The methods block, and may be called from any thread. Each may raise StoreUnavailableError, and
    SchemaOutdatedError before ``upgrade``; methods that write also StoreFullError.

    Attributes:
        tunings: tuning rounds and the parameters that they adopted.
        queues: the live queues of clusters, and the errors of their forecasts.
        starts: jobs that have started.
        ended_jobs: the runs of one job, and its prediction.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tunings = Tunings(database)
        self.queues = Queues(database)
        self.past_runs = PastRuns(database)
        self.starts = Starts(database)
        self.ended_jobs = EndedJobs(database)
        self.erasures = Erasures(database)
        self.scores = Scores(database)
        self.tokens = Tokens(database)
        self.sessions = Sessions(database)

    @property
    def name(self) -> str:
        """Return the name of the database for people: file or address, without a password."""
        return self._database.name

    def upgrade(self) -> bool:
        """Upgrade the schema to this release's; several processes may call this at once.

        Returns:
            Whether the history is new.
        """
        return schema.upgrade(self._database)

    def check(self) -> None:
        """Raise SchemaOutdatedError unless the schema is this release's."""
        schema.check(self._database)

    def fingerprint(self) -> str:
        """Return a short text that identifies a history and its copies."""
        with self._database.reading() as connection:
            return schema.fingerprint(connection)

    def diagnostics(self, since: float, now: float) -> list[ClusterDiagnostics]:
        """Return counts of predictions and runs since ``since`` (Unix seconds), by cluster."""
        with self._database.reading() as connection:
            return diagnostics.read(connection, since, now)

    def close(self) -> None:
        """Close all connections; connections in use are closed when they are returned."""
        self._database.close()

    def write(
        self,
        groups: Sequence[Sequence[ReportedCompletion]],
        predictions: Sequence[RecordedPrediction] = (),
    ) -> list[Ingested]:
        """Store predictions, then completions, in one transaction; return one count per group.

        Everything is durable on return; after an error nothing was acknowledged. Writing the same
        again stores nothing twice and scores nothing twice.

        Raises:
            RefusedRecordError: the database cannot hold a value, so that nothing was stored.
        """
        with self._database.writing() as connection:
            counts = writing.write(connection, groups, predictions)
        if any(count.accepted for count in counts):
            with suppress(StoreUnavailableError):  # it is durable also without notification
                self._database.announce()
        return counts

    def store_reports(
        self, reports: Iterable[ReportedCompletion], *, batch: int = 5000
    ) -> Iterator[Ingested]:
        """Store runs in transactions of ``batch``; yield the counts of each durable one."""
        remaining = iter(reports)
        while group := list(islice(remaining, batch)):
            yield self.write([group])[0]

    def reader(self) -> LogReader:
        """Return a reader of the log from its beginning."""
        return self._database.follow()

    def drop_stale_predictions(self, before: float) -> int:
        """Delete open predictions recorded before a time (Unix seconds); return their number."""
        stale = delete(predictions).where(OPEN, predictions.c.recorded_at < before)
        with self._database.writing() as connection:
            return connection.execute(stale).rowcount

    def back_up(self, copy: Path) -> None:
        """Write the present history to a file, while it is in use.

        Raises:
            FileInTheWayError: the file exists.
            NotOursError: the database has its own tools.
        """
        self._database.back_up(copy)

    def restore(self, copy: Path, *, aside: Path) -> None:
        """Replace this history by that of a file; the old one is renamed to ``aside``.

        Raises:
            StoreDamagedError: the file is no whole database.
            StoreUnavailableError: a process uses this history.
            NotOursError: the database has its own tools.
        """
        self.close()
        self._database.restore(copy, aside=aside)

    def check_whole(self) -> None:
        """Read all pages of the history, if the database does not check them by itself.

        Raises:
            StoreDamagedError: a page is damaged.
        """
        self._database.check_whole()


def open_store(url: str, *, sqlite_synchronous: Literal["full", "normal"] = "full") -> Store:
    """Open the store at a SQLAlchemy URL, without touching its schema.

    Args:
        url: `sqlite:///FILE` or `postgresql+psycopg://USER@HOST/DATABASE`.
        sqlite_synchronous: `full` survives power loss, `normal` the end of the process.

    Raises:
        ValueError: the URL names no database that the store supports.
    """
    try:
        parsed = make_url(url)
    except ValueError:  # the error's words could be part of a password
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
