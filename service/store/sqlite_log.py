"""Following the log in a SQLite file."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from predictors.jobs import Completion
from service.store.rows import COMPLETION, completion_of
from service.store.store_errors import StoreError, StoreUnavailableError

_READ = f"SELECT {', '.join(COMPLETION)}, seq FROM completions WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - of constants
_LAG = "SELECT count(*) FROM (SELECT 1 FROM completions WHERE seq > ? LIMIT ?)"
_COUNTED = 10_000
_TRUST_SECONDS = 0.1  # a prediction must not wait for the file system each time


def file_identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class SqliteLogReader:
    """Asks SQLite before every read whether another connection has committed (`data_version`).

    Args:
        file: the database.
        connect: opens a connection to it that does not wait for locks.
        meaning: of the driver's errors.
        after: the last place in the log that is known already.
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
        """Whether another connection has committed since the log was read to its end."""
        try:
            return self._version() != self._read_version
        except (OSError, sqlite3.Error) as error:
            self._fail(error)
            return False

    def read(self, limit: int) -> Sequence[Completion]:
        """The next completions."""
        try:
            # In this order: what is committed in between shows as a change the next time.
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
        """How many completions are still to be read; 10,000 also stands for more."""
        try:
            counted = self._connection.execute(_LAG, (self._seq, _COUNTED)).fetchone()
        except sqlite3.Error as error:
            self._fail(error)
            return 0
        return int(counted[0])

    def refresh(self) -> None:
        """Nothing to wait for: `has_news` sees every commit at once."""

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
        """Whether what is followed is still what the name stands for; no system call each time."""
        if file_identity(self._file) != self._identity:
            raise FileNotFoundError(f"{self._file} is gone, or another file now")
        self._check_at = monotonic() + _TRUST_SECONDS

    def _fail(self, error: Exception) -> None:
        self._check_at = 0.0
        if isinstance(error, OSError):
            self.error = StoreUnavailableError(f"The database file is gone: {error}.")
        else:
            self.error = self._meaning(error)
