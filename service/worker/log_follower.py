"""Applies the log of completions to the live state."""

import asyncio
from collections.abc import Callable
from time import perf_counter

import structlog

from service.errors import StartingError
from service.store import LogReader, StoreError
from service.worker.live_state import ClusterState, LiveState

log = structlog.get_logger()

COMPLETIONS_PER_TURN = 16
"""Completions applied at a time: half a millisecond, in which no request is answered."""

TURNS_BEFORE_ANSWERING = 128
"""Slices that are applied before an acknowledgement; further ones are lag."""

IDLE_SECONDS = 0.05
"""Seconds between two looks at the log without requests."""

BUSY_SECONDS = 0.005
"""Seconds between two slices while completions wait to be stored."""

SHORTEST_PAUSE = 0.001
"""Seconds; the event loop's timers count milliseconds."""


class LogFollower:
    """Applies the log of completions to the live state, on the event loop, in small slices.

    Before ``start`` the history is still being read.

    Args:
        before_learning: called before every slice that is applied.
        has_to_store: returns whether this process has completions that are not durable yet.

    Attributes:
        is_catching_up: whether the log is further ahead than a slice.
    """

    def __init__(
        self,
        live: LiveState,
        *,
        before_learning: Callable[[], None],
        has_to_store: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self.is_catching_up = False
        self._live = live
        self._before_learning = before_learning
        self._has_to_store = has_to_store
        self._clock = clock
        self._has_looked = False
        self._had_request = False
        self._logged_reason: str | None = None
        self._loop: asyncio.AbstractEventLoop
        self._reader: LogReader | None = None
        self._level_at = clock()

    def start(self, reader: LogReader) -> None:
        """Follow from the reader's place in the log, on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._reader = reader
        self._level_at = self._clock()

    def restart(self, reader: LogReader) -> LogReader | None:
        """Follow another reader; return the one before, which the caller closes."""
        before, self._reader = self._reader, reader
        return before

    @property
    def started(self) -> bool:
        """Return whether the history has been read."""
        return self._reader is not None

    def check_started(self) -> None:
        """Refuse what needs the history until it has been read.

        Raises:
            StartingError: the history has not been read.
        """
        if not self.started:
            raise StartingError

    @property
    def error(self) -> StoreError | None:
        """Return the reason if the log cannot be followed now; else None."""
        return self._reader.error if self._reader else None

    def lag(self) -> int:
        """Return the number of durable completions that are not applied yet."""
        return self._reader.lag() + self._live.late if self._reader else 0

    def stale_seconds(self) -> float:
        """Return the seconds since the log could last be read; 0 while it can be."""
        return self._clock() - self._level_at if self.error else 0.0

    def look(self) -> None:
        """Apply a slice, if there is news; called before an answer from the state.

        One look serves all requests in a turn of the event loop. While the log is far ahead,
        ``run`` applies it, and no request has to wait for a slice.
        """
        self._had_request = True
        if self._reader is None or self._has_looked or self.is_catching_up:
            return
        self._has_looked = True
        self._loop.call_soon(self._next_turn)
        self.step()

    def state_of(self, cluster: str) -> ClusterState:
        """Return the state of a cluster after a ``look``; operations answer from it.

        Raises:
            StartingError: the history has not been read.
        """
        self.check_started()
        self.look()
        return self._live.of(cluster)

    def _next_turn(self) -> None:
        self._has_looked = False

    def step(self) -> int:
        """Apply a slice, if there is news; return its size. Costs microseconds without news."""
        reader = self._reader
        if reader is None or not reader.has_news():
            return 0
        self._before_learning()
        completions = reader.read(COMPLETIONS_PER_TURN)
        self._live.apply(completions)
        return len(completions)

    async def catch_up(self) -> None:
        """Apply completions that are durable now, up to a limit, with pauses for other requests.

        So the worker that acknowledges a completion has applied it, unless more completions wait to
        be stored: these come first, and the rest is lag.
        """
        for _ in range(TURNS_BEFORE_ANSWERING):
            if self._has_to_store() or not self.step():
                return
            await asyncio.sleep(0)

    async def run(self) -> None:
        """Follow the log until cancelled."""
        while True:
            began = perf_counter()
            applied = self.step()
            self.is_catching_up = applied == COMPLETIONS_PER_TURN
            if applied:
                await asyncio.sleep(self._pause(perf_counter() - began))
                continue
            if self.error is None:
                self._level_at = self._clock()
            self._log_changes()
            await asyncio.sleep(IDLE_SECONDS)

    def _log_changes(self) -> None:
        """Log the reason when the history cannot be read, and when it can be read again."""
        reason = str(self.error) if self.error else None
        if reason != self._logged_reason:
            if reason:
                log.warning("the history cannot be read", reason=reason)
            else:
                log.info("the history can be read again")
            self._logged_reason = reason

    def _pause(self, slice_seconds: float) -> float:
        """Return the seconds left to requests after a slice: at least half of the time."""
        if self._has_to_store():
            return BUSY_SECONDS
        had_request, self._had_request = self._had_request, False
        return max(slice_seconds, SHORTEST_PAUSE) if had_request else 0.0

    def refresh(self) -> None:
        """Wait until durable completions can be read, before they are acknowledged."""
        if self._reader:
            self._reader.refresh()

    def close(self) -> None:
        """Stop following."""
        if self._reader:
            self._reader.close()
