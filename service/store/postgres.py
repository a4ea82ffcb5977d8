"""PostgreSQL: one history for several workers and machines, and a reader of its log."""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DBAPIError

from predictors.jobs import Completion
from service.store.database import (
    Database,
    EncodingError,
    LogReader,
    NotOursError,
    RefusedRecordError,
    SchemaOutdatedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    without_passwords,
)
from service.store.rows import COMPLETION, completion_of

# A server that disappears is noticed within seconds, not after TCP's quarter of an hour.
_CONNECTING: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 6000,
    "application_name": "walltimed",
    "options": "-c lock_timeout=10s",
}
_SCHEMA_LOCK = 0x77616C6C  # any number that no other program in this database uses
_TUNING_LOCK = _SCHEMA_LOCK + 1
# The server notices within a minute that a client's machine went down, not within two hours.
_NOTICE_DEATH = (
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
)
_INDEXES_ONLY = (
    "enable_bitmapscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "enable_seqscan = off",
    "work_mem = '64MB'",
)
_FULL = "53100"
_MISSING = frozenset({"42P01", "42703", "3F000"})  # table, column, schema
_REFUSAL_CLASSES = frozenset({"22", "23"})  # data exception, constraint violation

_Driver = psycopg.Connection[tuple[Any, ...]]

CHANNEL = "walltimed"
_POLL_SECONDS = 1.0
_SOON_SECONDS = 0.01  # when there is something to read that cannot be read yet
_ROWS = 256  # decoded without releasing the interpreter lock
_ROOM = 4096
_COUNTED = 10_000

# Sequence numbers are assigned before the commit, so rows appear out of order. Rows of transactions
# older than the oldest running one are final: no further rows appear among them. A bare xid in
# ORDER BY would be the selected text: 1000 would come before 999.
_READ = f"""
    SELECT {", ".join(COMPLETION)}, xid::text, seq FROM completions
    WHERE (xid, seq) > (%s::xid8, %s) AND xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY completions.xid, completions.seq LIMIT %s"""  # noqa: S608 - of constants
_LAG = """SELECT count(*) FROM (
    SELECT 1 FROM completions WHERE (xid, seq) > (%s::xid8, %s) LIMIT %s) AS unread"""


class PostgresDatabase(Database):
    """A PostgreSQL database."""

    log_order = "xid, seq"
    settled = "xid < CAST(:horizon AS xid8)"
    is_shared = True

    def __init__(self, url: URL) -> None:
        self._url = url.set(drivername="postgresql+psycopg")
        self.name = without_passwords(url)
        # A ping costs a fiftieth of a commit, and without it the first write after a restart of the
        # server fails.
        self.engine = create_engine(self._url, connect_args=_CONNECTING, pool_pre_ping=True)
        event.listen(self.engine, "do_connect", self._connect)

    def _connect(self, dialect: Any, _: Any, arguments: Any, options: Any) -> Any:
        """Connect and check the encoding first: in other encodings names arrive as bytes."""
        connection = dialect.connect(*arguments, **options)
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            connection.close()
            raise EncodingError(
                f"The database {self.name} has the encoding {encoding}; it must be UTF8: make it "
                "by `createdb --encoding=UTF8 --template=template0 NAME`."
            )
        return connection

    def back_up(self, copy: Path) -> None:
        """Refuse: PostgreSQL has its own tools."""
        raise NotOursError(
            f"A PostgreSQL history is backed up by its own tools: `pg_dump --format=custom "
            f"--file={copy} DATABASE`, or a base backup of the server."
        )

    def restore(self, copy: Path, *, aside: Path) -> None:
        """Refuse: PostgreSQL has its own tools."""
        del aside
        raise NotOursError(
            f"A PostgreSQL history is restored by its own tools: `pg_restore --clean --if-exists "
            f"--single-transaction --dbname=DATABASE {copy}` with all services stopped, then "
            "`walltimed db upgrade`."
        )

    def hold_back_predictions(self, connection: Connection) -> None:
        """Wait for the transactions that record predictions, and block further ones."""
        connection.exec_driver_sql("LOCK TABLE predictions IN SHARE ROW EXCLUSIVE MODE")

    @contextmanager
    def tuning_lock(self) -> Iterator[bool]:
        """Hold an advisory lock in a session that ends soon after a failure of its machine."""
        with self.errors():
            connection = self.engine.connect()
        try:
            with self.errors():
                connection.execution_options(isolation_level="AUTOCOMMIT")
                connection.exec_driver_sql(_NOTICE_DEATH)
                lock = "SELECT pg_try_advisory_lock(%s)"
                is_held = connection.exec_driver_sql(lock, (_TUNING_LOCK,)).scalar_one()
            yield is_held
        finally:
            with suppress(DBAPIError):  # a server that is away has already ended the session
                connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")
            connection.invalidate()  # no other session may inherit its settings
            connection.close()

    def scrub(self, names: Collection[str]) -> str | None:
        """Return a sentence about the server's files, which only the server can rewrite."""
        del names
        return (
            "PostgreSQL keeps the deleted rows in its files until VACUUM has freed their space "
            "and new rows have taken it: `VACUUM FULL completions, predictions` rewrites the "
            "tables at once. Its write-ahead log, archived segments and backups hold them until "
            "they expire."
        )

    def keep_schema(self, connection: Connection) -> None:
        """Hold an advisory lock until the transaction ends."""
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))

    def forget_old_server(self, connection: Connection) -> None:
        """Give rows from a dump of a server with higher transaction ids the id 0.

        They would look like rows of future transactions, and never be read.
        """
        connection.exec_driver_sql(
            "UPDATE completions SET xid = '0' WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())"
        )

    def announce(self) -> None:
        """Notify the listening workers.

        This comes after the commit, not within it: a transaction that notifies holds a lock during
        its commit, so that no two such transactions of a database commit at the same time.
        """
        with self.errors(), self.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql(f"NOTIFY {CHANNEL}")

    def meaning(self, error: BaseException) -> StoreError:
        """Return the store's error by SQLSTATE; an error without one is the connection's."""
        state = getattr(error, "sqlstate", None) or ""
        sentence = str(error).strip().partition("\n")[0]
        if state == _FULL:
            return StoreFullError(f"No room for the database: {sentence}.")
        if state in _MISSING:
            return SchemaOutdatedError(f"{sentence}; run `walltimed db upgrade`.")
        if state[:2] in _REFUSAL_CLASSES or isinstance(error, psycopg.DataError):
            return RefusedRecordError(f"The database refuses a value: {sentence}.")
        return StoreUnavailableError(f"The database cannot be used now: {sentence}.")

    def prefer_indexes(self, connection: Connection) -> None:
        """Disable other plans: after an import statistics are missing or misleading."""
        for setting in _INDEXES_ONLY:
            connection.exec_driver_sql(f"SET LOCAL {setting}")

    def horizon(self) -> str:
        """Return the id of the oldest transaction that may still add rows."""
        with self.reading() as connection:
            oldest = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"
            return str(connection.exec_driver_sql(oldest).scalar_one())

    def follow(self, horizon: str | None = None) -> LogReader:
        """Return a reader of the rows of a transaction and of later ones."""
        _, arguments = self.engine.dialect.create_connect_args(self._url)
        connect = {**arguments, **_CONNECTING, "autocommit": True}
        return PostgresLogReader(connect, self.meaning, horizon or "0")


class PostgresLogReader:
    """Reads ahead in its own thread, so that no prediction waits for the network.

    The thread listens for notifications, and reads every second without one.

    Args:
        connect: arguments of a connection in autocommit mode.
        meaning: returns the store's error for an error of the driver.
        first: id of the first transaction whose rows are read.
    """

    def __init__(
        self, connect: Mapping[str, Any], meaning: Callable[[BaseException], StoreError], first: str
    ) -> None:
        self.error: StoreError | None = None
        self._connect = connect
        self._meaning = meaning
        self._place: tuple[Any, ...] = (first, -1)
        self._ahead: deque[Completion] = deque()
        self._behind = 0
        self._connection: _Driver | None = None
        self._fetching = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="log-reader", daemon=True)
        self._thread.start()

    def has_news(self) -> bool:
        """Return whether completions were read ahead."""
        return bool(self._ahead)

    def read(self, limit: int) -> Sequence[Completion]:
        """Return the next completions."""
        return [self._ahead.popleft() for _ in range(min(limit, len(self._ahead)))]

    def lag(self) -> int:
        """Return the number of completions still to be read; rows beyond 10,000 are not counted."""
        return len(self._ahead) + self._behind

    def refresh(self) -> None:
        """Read ahead now, in the calling thread."""
        with suppress(psycopg.Error):
            self._read_ahead()

    def close(self) -> None:
        """Stop the thread."""
        self._closed.set()
        with suppress(psycopg.Error), psycopg.connect(**self._connect) as connection:
            connection.execute(f"NOTIFY {CHANNEL}")
        self._thread.join()
        with self._fetching:
            self._drop_connection()

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                self._listen()
            except psycopg.Error as error:
                self.error = self._meaning(error)
                self._closed.wait(_POLL_SECONDS)

    def _listen(self) -> None:
        """Read ahead whenever there may be news, until closed or disconnected."""
        with psycopg.connect(**self._connect) as hints:
            # Before the first read: a commit after that read sends a notification.
            hints.execute(f"LISTEN {CHANNEL}")
            while not self._closed.is_set():
                self._read_ahead()
                seconds = _SOON_SECONDS if self._behind else _POLL_SECONDS
                deque(hints.notifies(timeout=seconds, stop_after=1), maxlen=0)

    def _read_ahead(self) -> None:
        with self._fetching:
            if self._closed.is_set():  # or a connection would stay open
                return
            try:
                self._fetch(self._connected())
            except psycopg.Error as error:
                self.error = self._meaning(error)
                self._drop_connection()
                raise
            self.error = None

    def _fetch(self, connection: _Driver) -> None:
        """Fill the buffer, and count rows that do not fit or may still be preceded by others."""
        while len(self._ahead) < _ROOM:
            rows = connection.execute(_READ, (*self._place, _ROWS)).fetchall()
            if rows:
                self._place = rows[-1][-2:]
                self._ahead.extend(completion_of(row) for row in rows)
            if len(rows) < _ROWS:
                break
        counted = connection.execute(_LAG, (*self._place, _COUNTED)).fetchone()
        self._behind = counted[0] if counted else 0

    def _connected(self) -> _Driver:
        if self._connection is None:
            self._connection = psycopg.connect(**self._connect)
        return self._connection

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
