"""Keeping the live state level with the log of completions."""

import asyncio
from collections.abc import Callable
from time import perf_counter

import structlog

from service.store import LogReader, StoreError
from service.worker.live_state import ClusterState, LiveState

log = structlog.get_logger()

COMPLETIONS_PER_TURN = 16
"""Completions folded at a time: about half a millisecond, in which no request is answered."""

TURNS_BEFORE_ANSWERING = 128
"""Slices that are folded before an acknowledgement; what is beyond is lag."""

IDLE_SECONDS = 0.05
"""Seconds between two looks at the log when no predictions are asked for."""

BUSY_SECONDS = 0.005
"""How long is left to storing between two slices, while completions are waiting for it."""

SHORTEST_PAUSE = 0.001
"""The event loop's timers count milliseconds; less would be no pause at all."""


class LogFollower:
    """Applies the log of completions to the live state, on the event loop, in small slices.

    Before ``start`` there is nothing to follow: the history is still being folded.

    Args:
        live: what learns.
        before_learning: is called before every slice that is applied.
        has_to_store: whether this process has completions that are not durable yet.
        clock: Unix seconds.

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
        self._was_asked = False
        self._told: str | None = None
        self._loop: asyncio.AbstractEventLoop
        self._reader: LogReader | None = None
        self._level_at = clock()

    def start(self, reader: LogReader) -> None:
        """Follow from the reader's place in the log, on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._reader = reader
        self._level_at = self._clock()

    def restart(self, reader: LogReader) -> LogReader | None:
        """Follow another reader; answers the one that was followed, which is to be closed."""
        before, self._reader = self._reader, reader
        return before

    @property
    def started(self) -> bool:
        """Whether the history has been folded."""
        return self._reader is not None

    @property
    def error(self) -> StoreError | None:
        """Why the log cannot be followed at the moment."""
        return self._reader.error if self._reader else None

    def lag(self) -> int:
        """The number of durable completions that predictions do not know yet."""
        return self._reader.lag() if self._reader else 0

    def stale_seconds(self) -> float:
        """Seconds for which the state may have been out of date; 0 while the log can be read."""
        return self._clock() - self._level_at if self.error else 0.0

    def look(self) -> None:
        """Apply a slice, if there is news; called before an answer from the state.

        One look serves all requests of a turn of the event loop: each of them came in before it.
        While the log is far ahead, ``run`` catches up, and no request has to wait for a slice.
        """
        self._was_asked = True
        if self._reader is None or self._has_looked or self.is_catching_up:
            return
        self._has_looked = True
        self._loop.call_soon(self._next_turn)
        self.step()

    def state_of(self, cluster: str) -> ClusterState:
        """The state of a cluster after a ``look``; operations answer from it."""
        self.look()
        return self._live.of(cluster)

    def _next_turn(self) -> None:
        self._has_looked = False

    def step(self) -> int:
        """Apply a slice, if there is news; says how large it was. Costs microseconds if none is."""
        reader = self._reader
        if reader is None or not reader.has_news():
            return 0
        self._before_learning()
        completions = reader.read(COMPLETIONS_PER_TURN)
        self._live.apply(completions)
        return len(completions)

    async def catch_up(self) -> None:
        """Apply what is durable now, within bounds, letting other requests pass in between.

        So an acknowledged completion is known to the worker that acknowledged it, unless more
        are waiting to be stored: then storing them comes first, and learning is lag.
        """
        for _ in range(TURNS_BEFORE_ANSWERING):
            if self._has_to_store() or not self.step():
                return
            await asyncio.sleep(0)

    async def run(self) -> None:
        """Follow for ever."""
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
        """Log why the history cannot be read, and when it can be read again."""
        reason = str(self.error) if self.error else None
        if reason != self._told:
            if reason:
                log.warning("the history cannot be read", reason=reason)
            else:
                log.info("the history can be read again")
            self._told = reason

    def _pause(self, slice_seconds: float) -> float:
        """Seconds left to requests after a slice: at least half of the time."""
        if self._has_to_store():
            return BUSY_SECONDS
        asked, self._was_asked = self._was_asked, False
        return max(slice_seconds, SHORTEST_PAUSE) if asked else 0.0

    def refresh(self) -> None:
        """Wait until what is durable can be read; for the writer, before it acknowledges."""
        if self._reader:
            self._reader.refresh()

    def close(self) -> None:
        """Stop following."""
        if self._reader:
            self._reader.close()
