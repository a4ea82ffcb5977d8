"""Following the log in a PostgreSQL database."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg

from predictors.jobs import Completion
from service.store.rows import COMPLETION, completion_of
from service.store.store_errors import StoreError

Connection = psycopg.Connection[tuple[Any, ...]]

CHANNEL = "walltimed"
_POLL_SECONDS = 1.0
_SOON_SECONDS = 0.01  # when there is something to read that cannot be read yet
_ROWS = 256  # decoded without letting go of the interpreter lock
_ROOM = 4096
_COUNTED = 10_000

# Sequence numbers are given out before the commit, so rows appear out of their order. Rows of a
# transaction below the oldest one still running are final: nothing appears among them any more.
# A bare xid in ORDER BY would be the text that is selected: 1000 would come before 999.
_READ = f"""
    SELECT {", ".join(COMPLETION)}, xid::text, seq FROM completions
    WHERE (xid, seq) > (%s::xid8, %s) AND xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY completions.xid, completions.seq LIMIT %s"""  # noqa: S608 - of constants
_LAG = """SELECT count(*) FROM (
    SELECT 1 FROM completions WHERE (xid, seq) > (%s::xid8, %s) LIMIT %s) AS unread"""


class PostgresLogReader:
    """Reads ahead in a thread of its own, so that no prediction waits for the network.

    The thread listens for notifications, which are a hint only, and looks every second without.

    Args:
        connect: arguments of a connection in autocommit mode.
        meaning: of the driver's errors.
        first: the transaction whose rows, and all later ones, are to be read.
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
        self._connection: Connection | None = None
        self._fetching = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="log-reader", daemon=True)
        self._thread.start()

    def has_news(self) -> bool:
        """Whether something was read ahead."""
        return bool(self._ahead)

    def read(self, limit: int) -> Sequence[Completion]:
        """The next completions."""
        return [self._ahead.popleft() for _ in range(min(limit, len(self._ahead)))]

    def lag(self) -> int:
        """How many are still to be read; what is beyond 10,000 is not counted."""
        return len(self._ahead) + self._behind

    def refresh(self) -> None:
        """Read ahead now, on the caller's time."""
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
        """Read ahead whenever there may be something, until closed or disconnected."""
        with psycopg.connect(**self._connect) as hints:
            # Before the first look: whatever is committed after that look sends a hint.
            hints.execute(f"LISTEN {CHANNEL}")
            while not self._closed.is_set():
                self._read_ahead()
                seconds = _SOON_SECONDS if self._behind else _POLL_SECONDS
                deque(hints.notifies(timeout=seconds, stop_after=1), maxlen=0)

    def _read_ahead(self) -> None:
        with self._fetching:
            if self._closed.is_set():  # or there would be a connection that nobody closes
                return
            try:
                self._fetch(self._connected())
            except psycopg.Error as error:
                self.error = self._meaning(error)
                self._drop_connection()
                raise
            self.error = None

    def _fetch(self, connection: Connection) -> None:
        """Fill the room there is, and count what does not fit or is not settled yet."""
        while len(self._ahead) < _ROOM:
            rows = connection.execute(_READ, (*self._place, _ROWS)).fetchall()
            if rows:
                self._place = rows[-1][-2:]
                self._ahead.extend(completion_of(row) for row in rows)
            if len(rows) < _ROWS:
                break
        counted = connection.execute(_LAG, (*self._place, _COUNTED)).fetchone()
        self._behind = counted[0] if counted else 0

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = psycopg.connect(**self._connect)
        return self._connection

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
