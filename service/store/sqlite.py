"""SQLite: one file in WAL mode with one writer at a time, and a reader of its log."""

import fcntl
import mmap
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, QueuePool, create_engine, event
from sqlalchemy.exc import DisconnectionError

from predictors.jobs import Completion
from service.store import schema, sqlite_backup
from service.store.database import (
    Database,
    LogReader,
    RefusedRecordError,
    SchemaOutdatedError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from service.store.rows import COMPLETION, completion_of
from terminal.new_files import refuse_foreign

_BUSY_SECONDS = 5.0
_CACHE_KIB = 65_536
_LAST = "SELECT coalesce(max(seq), 0) FROM completions"
_REFUSALS = frozenset({sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG})
_DAMAGES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_RIGHTS = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
_PRIMARY_CODE = 0xFF  # an error code's lower byte; the rest are details
_READ = f"SELECT {', '.join(COMPLETION)}, seq FROM completions WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - of constants
_LAG = "SELECT count(*) FROM (SELECT 1 FROM completions WHERE seq > ? LIMIT ?)"
_COUNTED = 10_000
_TRUST_SECONDS = 0.1  # a prediction must not wait for the file system each time


class SqliteDatabase(Database):
    """A SQLite file.

    Args:
        url: `sqlite:///FILE`; a file, because several connections share it.
        synchronous: `full` survives power loss, `normal` the end of the process.
    """

    log_order = "seq"
    settled = "seq <= :horizon"
    is_shared = False

    def __init__(self, url: URL, synchronous: str) -> None:
        if not url.database or url.database == ":memory:":
            raise ValueError("The store needs a file: sqlite:///FILE.")
        if synchronous not in {"full", "normal"}:
            raise ValueError(f"synchronous is full or normal, not {synchronous!r}.")
        self.file = Path(url.database).absolute()
        self.name = str(self.file)
        self._synchronous = synchronous
        self.engine = create_engine("sqlite://", creator=self._connect, poolclass=QueuePool)
        event.listen(self.engine, "connect", self._remember_file)
        event.listen(self.engine, "checkout", self._check_file)

    def _connect(self, busy_seconds: float = _BUSY_SECONDS) -> sqlite3.Connection:
        """Open the file, which must exist; transactions begin explicitly."""
        try:
            refuse_foreign(self.file)
        except PermissionError as error:
            raise StoreUnavailableError(f"{error.filename}: {error.strerror}.") from error
        connection = sqlite3.connect(
            f"file:{quote(str(self.file))}?mode=rw",
            uri=True,
            timeout=busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA secure_delete = on")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA temp_store = memory")
        return connection

    # A connection to a removed or replaced file goes on working, on data that no program will see
    # again: better none.
    def _remember_file(self, _: Any, record: Any) -> None:
        record.info["file"] = file_identity(self.file)

    def _check_file(self, _: Any, record: Any, __: Any) -> None:
        if record.info["file"] != file_identity(self.file):
            raise DisconnectionError

    def create(self) -> None:
        """Create the file, readable only to its owner, unless it exists; and turn on WAL."""
        try:
            if not self.file.exists():
                os.close(self._opened(self.file))
        except OSError as error:
            raise StoreUnavailableError(f"{self.file} cannot be made: {error.strerror}.") from error
        with self.reading() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = wal")

    def _opened(self, file: Path) -> int:
        """Open a file in the service's directory; one that root creates there is the service's.

        No link is followed: root would give away the file to which it leads.
        """
        flags, descriptor = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, -1
        with suppress(FileExistsError):
            descriptor = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o600)
        if descriptor < 0:
            return os.open(file, flags)
        owner = self.file.parent.stat()
        if os.geteuid() == 0 and owner.st_uid:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        return descriptor

    def start_writing(self, connection: Connection) -> None:
        """Take the write lock at once: a transaction that begins as reader cannot wait for it."""
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def back_up(self, copy: Path) -> None:
        """Write a copy of the database while others use it."""
        try:
            sqlite_backup.back_up(self.file, copy)
        except sqlite3.Error as error:
            raise self.meaning(error) from error

    def restore(self, copy: Path, *, aside: Path) -> None:
        """Replace the database, which no process may use."""

        def bring_up(unfinished: Path) -> None:
            self._bring_up(unfinished, copy)

        try:
            sqlite_backup.restore(copy, self.file, aside=aside, bring_up=bring_up)
        except sqlite3.Error as error:
            raise self.meaning(error) from error

    def _bring_up(self, file: Path, copy: Path) -> None:
        """Upgrade a copy of a backup to this release's schema; errors name it ``copy``."""
        database = SqliteDatabase(URL.create("sqlite", database=str(file)), self._synchronous)
        database.name = str(copy)
        try:
            if schema.upgrade(database):
                raise StoreDamagedError(f"{copy} holds no history.")
        finally:
            database.close()

    def check_whole(self) -> None:
        """Check every page."""
        sqlite_backup.check_whole(self.file, name=self.file)

    @contextmanager
    def tuning_lock(self) -> Iterator[bool]:
        """Lock a file beside the history."""
        file = self.file.with_name(f"{self.file.name}-tuning")
        try:
            descriptor = self._opened(file)
        except OSError as error:
            raise StoreUnavailableError(f"{file} cannot be made: {error.strerror}.") from error
        try:
            yield _is_locked_now(descriptor)
        finally:
            os.close(descriptor)

    def scrub(self, names: Collection[str]) -> str | None:
        """Empty the write-ahead log, and rewrite the file if a name is still found in it.

        ``secure_delete`` overwrites deleted rows; but an older release, or the copy of a split
        page, may have left bytes of them.
        """
        if not self._empty_log():
            return f"{self.file}-wal is being read and could not be emptied: run this again."
        if self._contains_any(names):
            with self.errors(), self.engine.connect() as connection:
                connection.exec_driver_sql("VACUUM")
            self._empty_log()
        if self._contains_any(names):
            return f"Other texts in {self.file} contain the name, another user's for example."
        return None

    def _empty_log(self) -> bool:
        """Move the write-ahead log into the file and truncate it; return False if it is in use."""
        with self.errors(), self.engine.connect() as connection:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar_one()
        return not busy

    def _contains_any(self, names: Collection[str]) -> bool:
        """Return whether the file or its write-ahead log contains one of the names."""
        files = (self.file, self.file.with_name(f"{self.file.name}-wal"))
        return any(_holds(file, name.encode()) for file in files for name in names)

    def meaning(self, error: BaseException) -> StoreError:
        """Return the store's error by SQLite's error code."""
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if code == sqlite3.SQLITE_FULL:
            return StoreFullError(f"No room for the database {self.file}.")
        if code in _DAMAGES:
            return StoreDamagedError(
                f"{self.file} is damaged, or no SQLite database ({error}): restore a backup by "
                "`walltimed db restore`, or name another file in database_url."
            )
        if code in _REFUSALS:
            return RefusedRecordError(f"The database refuses a value: {error}.")
        if "no such table" in str(error) or "no such column" in str(error):
            return SchemaOutdatedError(f"{self.file}: {error}; run `walltimed db upgrade`.")
        return StoreUnavailableError(
            self._obstacle(code) or f"The database {self.file} cannot be used now: {error}."
        )

    def _obstacle(self, code: int) -> str | None:
        """Return what keeps the file from being used, with its cure; None for anything else."""
        if not self.file.exists():
            return f"There is no {self.file}: `walltimed db upgrade` makes it."
        owner = denied_by(self.file) if code in _RIGHTS else None
        if owner is None:
            return None
        return f"{self.file}: permission denied. It belongs to {owner}: use `sudo -u {owner}`."

    def horizon(self) -> int:
        """Return the end of the log: with one writer at a time, no row appears before it."""
        with self.reading() as connection:
            return int(connection.exec_driver_sql(_LAST).scalar_one())

    def follow(self, horizon: int | None = None) -> LogReader:
        """Return a reader of the rows after a place in the log."""
        try:
            connect = partial(self._connect, busy_seconds=0.0)
            return SqliteLogReader(self.file, connect, self.meaning, after=horizon or 0)
        except sqlite3.Error as error:
            raise self.meaning(error) from error


def _is_locked_now(descriptor: int) -> bool:
    """Lock an open file for this process; return False if another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def denied_by(file: Path) -> str | None:
    """Return the owner of a database that this user may not write; None if rights are enough."""
    if os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK):
        return None
    try:
        return file.owner()
    except KeyError:
        return str(file.stat().st_uid)


def _holds(file: Path, wanted: bytes) -> bool:
    """Return whether a file contains these bytes."""
    if not file.exists() or not file.stat().st_size:
        return False
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as all_:
        return all_.find(wanted) >= 0


def file_identity(file: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class SqliteLogReader:
    """Compares SQLite's `data_version` before every read: it changes with commits of others.

    Args:
        connect: opens a connection to it that does not wait for locks.
        meaning: returns the store's error for an error of the driver.
        after: place in the log; rows after it are read.
    """

    def __init__(
        self,
        file: Path,
        connect: Callable[[], sqlite3.Connection],
        meaning: Callable[[BaseException], StoreError],
        after: int,
    ) -> None:
        self.error: StoreError | None = None
        self._file = file
        self._check_at = 0.0
        self._identity = file_identity(file)
        self._connection = connect()
        self._meaning = meaning
        self._seq = after
        self._read_version: int | None = None

    def has_news(self) -> bool:
        """Return whether another connection has committed since the log was read to its end."""
        try:
            return self._version() != self._read_version
        except (OSError, sqlite3.Error) as error:
            self._fail(error)
            return False

    def read(self, limit: int) -> Sequence[Completion]:
        """Return the next completions."""
        try:
            # In this order: a commit in between shows as a change the next time.
            version = self._version()
            rows = self._connection.execute(_READ, (self._seq, limit)).fetchall()
        except (OSError, sqlite3.Error) as error:
            self._fail(error)
            return []
        if rows:
            self._seq = rows[-1][-1]
        if len(rows) < limit:
            self._read_version = version
        return [completion_of(row) for row in rows]

    def lag(self) -> int:
        """Return the number of completions still to be read, counted up to 10,000."""
        try:
            counted = self._connection.execute(_LAG, (self._seq, _COUNTED)).fetchone()
        except sqlite3.Error as error:
            self._fail(error)
            return 0
        return int(counted[0])

    def refresh(self) -> None:
        """Return at once: ``has_news`` sees every commit."""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _version(self) -> int:
        if monotonic() >= self._check_at:
            self._check_file()
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        self.error = None
        return int(version)

    def _check_file(self) -> None:
        """Raise FileNotFoundError if the file was replaced; checked ten times a second at most."""
        if file_identity(self._file) != self._identity:
            raise FileNotFoundError(f"{self._file} is gone, or another file now")
        self._check_at = monotonic() + _TRUST_SECONDS

    def _fail(self, error: Exception) -> None:
        self._check_at = 0.0
        if isinstance(error, OSError):
            self.error = StoreUnavailableError(f"The database file is gone: {error}.")
        else:
            self.error = self._meaning(error)
