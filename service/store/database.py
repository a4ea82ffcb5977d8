"""Interface of a database to the store: connections, errors and the log of completions."""

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
from service.errors import RequestError, UnavailableError
from terminal.exit_codes import ExitCode


class StoreError(Exception):
    """Raised when the history store cannot do an operation."""

    exit_code = ExitCode.FAILED


class StoreUnavailableError(StoreError, UnavailableError):
    """The database cannot be reached or is too busy; the same call may succeed later."""

    exit_code = ExitCode.UNAVAILABLE


class StoreFullError(StoreError, UnavailableError):
    """The database has no room left, so nothing was stored."""

    exit_code = ExitCode.UNAVAILABLE


class SchemaOutdatedError(StoreError, UnavailableError):
    """The database's schema is not this release's; `walltimed db upgrade` brings it up."""


class NewerSchemaError(StoreError):
    """The schema is newer than this release."""


class ForeignDatabaseError(StoreError):
    """The database holds the tables of another program."""


class StoreDamagedError(StoreError, UnavailableError):
    """The database's file is damaged, or no database at all."""


class EncodingError(StoreError):
    """The database cannot hold every name, because its encoding is not UTF8."""


class NotOursError(StoreError):
    """The operation belongs to the database's own tools."""


class RefusedRecordError(StoreError, RequestError):
    """The database refuses a value, for example a text with a NUL character in it."""


class LogReader(Protocol):
    """One worker's place in the log of completions.

    No method raises when the database is away: there is no news then, and ``error`` is set. All
    methods but ``refresh`` return without waiting for a network.

    Attributes:
        error: the reason if the log cannot be followed now; else None.
    """

    error: StoreError | None

    def has_news(self) -> bool:
        """Return whether ``read`` would return something; costs microseconds."""
        ...

    def read(self, limit: int) -> Sequence[Completion]:
        """Return the next completions in log order, at most ``limit``, and move past them."""
        ...

    def lag(self) -> int:
        """Return the number of durable completions still to be read, counted up to 10,000."""
        ...

    def refresh(self) -> None:
        """Wait until completions that are durable at the time of this call can be read.

        The writer calls this between commit and acknowledgement, so that this worker's next
        prediction already uses a completion that has been acknowledged.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Database(ABC):
    """One database, reached through its engine's connection pool.

    Attributes:
        name: for people; without a password.
        log_order: columns that sort completions as they are read from the log.
        settled: SQL condition on completions: the row is before ``:horizon``, where no further
            rows appear.
        is_shared: whether the database may have tables of other programs.
    """

    name: str
    engine: Engine
    log_order: str
    settled: str
    is_shared: bool

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that writes; it is durable when the block ends without an error."""
        with self.errors(), self.engine.begin() as connection:
            self.start_writing(connection)
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection to read through."""
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

        A pool that is disposed of forgets connections in use, which would stay open.
        """
        event.listen(self.engine, "checkin", _close)
        self.engine.dispose()

    @abstractmethod
    def meaning(self, error: BaseException) -> StoreError:
        """Return the store's error for an error of the driver."""

    def create(self) -> None:
        """Make the database if it is missing, where administrators do not do so."""

    def start_writing(self, connection: Connection) -> None:
        """Run what has to come first in a transaction that writes."""

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
        """Take the lock of rounds of tuning, if it is free; it is released with the process.

        The value of the context is whether this process holds the lock.
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
    """Return a database's address without passwords, which may stand in parameters too."""
    secret = [name for name in url.query if "password" in name.lower()]
    public = url.update_query_dict(dict.fromkeys(secret, HIDDEN)) if secret else url
    return public.render_as_string(hide_password=True)


def _close(_: Any, pooled: ConnectionPoolEntry) -> None:
    """Close a connection that is given back to a pool; the next one to be taken is a new one."""
    pooled.invalidate()
