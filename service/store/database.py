"""What a database offers to the store: connections, and a reader of the log of completions."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from predictors.jobs import Completion


class StoreError(Exception):
    """The history store could not do what it was asked."""


class StoreUnavailableError(StoreError):
    """The database cannot be reached or is too busy; the same call may succeed later."""


class StoreFullError(StoreError):
    """The database has no room left, so nothing was stored."""


class SchemaOutdatedError(StoreError):
    """The database's schema is not this release's; `walltimed db upgrade` brings it up."""


class NewerSchemaError(StoreError):
    """The schema is newer than this release."""


class ForeignDatabaseError(StoreError):
    """The database holds the tables of another program."""


class StoreDamagedError(StoreError):
    """The database's file is damaged, or no database at all."""


class EncodingError(StoreError):
    """The database cannot hold every name, because its encoding is not UTF8."""


class NotOursError(StoreError):
    """The operation belongs to the database's own tools."""


class RefusedRecordError(StoreError):
    """The database refuses a value, for example a text with a NUL character in it."""


class LogReader(Protocol):
    """One worker's place in the log of completions.

    Nothing here raises when the database is away: there is no news then, and ``error`` says why.
    Everything but ``refresh`` returns without waiting for a network.

    Attributes:
        error: why the log cannot be followed at the moment; None while it can.
    """

    error: StoreError | None

    def has_news(self) -> bool:
        """Whether ``read`` would return something; costs microseconds."""
        ...

    def read(self, limit: int) -> Sequence[Completion]:
        """The next completions in log order, at most ``limit``; moves the place behind them."""
        ...

    def lag(self) -> int:
        """How many durable completions are still to be read; large numbers are estimates."""
        ...

    def refresh(self) -> None:
        """Wait until what was durable at the time of this call is there to be read.

        The writer calls this between commit and acknowledgement. So this worker's next prediction
        already uses a completion that has been acknowledged.
        """
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class Database(ABC):
    """One database, reached through its engine's connection pool.

    Attributes:
        name: what people call it by; it has no password in it.
        engine: hands out connections.
        log_order: columns that sort completions as they are read from the log.
        settled: condition on completions: is the row behind ``:horizon``, where nothing appears
            any more?
        is_shared: whether other programs may have tables in it too.
    """

    name: str
    engine: Engine
    log_order: str
    settled: str
    is_shared: bool

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; durable when the block has been left without an error."""
        with self.errors(), self.engine.begin() as connection:
            self.start_writing(connection)
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read through."""
        with self.errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn the driver's errors into the store's own."""
        try:
            yield
        except DBAPIError as error:
            raise self.meaning(error.orig or error) from error
        except PoolTimeoutError as error:
            raise StoreUnavailableError("All connections to the database are busy.") from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise RefusedRecordError(f"The database cannot hold a value: {error}.") from error

    def close(self) -> None:
        """Close all connections: those in use once they are given back.

        The pool forgets what is in use while it is disposed of, and nobody would ever close that.
        """
        event.listen(self.engine, "checkin", _close)
        self.engine.dispose()

    @abstractmethod
    def meaning(self, error: BaseException) -> StoreError:
        """Return the store's error for an error of the driver."""

    def create(self) -> None:
        """Make the database if it is missing, where administrators do not do so."""

    def start_writing(self, connection: Connection) -> None:
        """Do what has to come first in a transaction that writes."""

    @abstractmethod
    def back_up(self, copy: Path) -> None:
        """Write the present content to a file."""

    @abstractmethod
    def restore(self, copy: Path, *, aside: Path) -> None:
        """Replace the content by the file's; the old one is kept as ``aside``."""

    def check_whole(self) -> None:
        """Read every page, on databases that do not check them by themselves."""

    def hold_back_predictions(self, connection: Connection) -> None:
        """Let no other transaction record predictions until this one, which writes, ends."""

    @abstractmethod
    def tuning_lock(self) -> AbstractContextManager[bool]:
        """Take the lock of those who run rounds of tuning, if it is free; it ends with the process.

        The context is whether this process holds the lock.
        """

    @abstractmethod
    def scrub(self, names: Collection[str]) -> str | None:
        """Overwrite deleted rows; return a sentence about remains of ``names``, or None."""

    def keep_schema(self, connection: Connection) -> None:
        """Let no other process change the schema until this transaction, which writes, ends."""

    def forget_old_server(self, connection: Connection) -> None:
        """Make a history that was brought here from another server readable."""

    def announce(self) -> None:
        """Notify other workers of news in the log, where they do not see every commit."""

    def prefer_indexes(self, connection: Connection) -> None:
        """Plan the reads of this transaction through indexes, where statistics may mislead."""

    @abstractmethod
    def horizon(self) -> Any:
        """Return the latest point of the log before which nothing appears any more."""

    @abstractmethod
    def follow(self, horizon: Any | None = None) -> LogReader:
        """Read the log from ``horizon`` on, or from its beginning."""


HIDDEN = "***"


def without_passwords(url: URL) -> str:
    """A database's address as people may see it: also parameters may be passwords."""
    secret = [name for name in url.query if "password" in name.lower()]
    shown = url.update_query_dict(dict.fromkeys(secret, HIDDEN)) if secret else url
    return shown.render_as_string(hide_password=True)


def _close(_: Any, pooled: ConnectionPoolEntry) -> None:
    """Close a connection that is given back to a pool; the next one to be taken is a new one."""
    pooled.invalidate()
