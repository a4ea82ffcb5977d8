"""A process of its own for what takes time: no prediction waits for it."""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

Result = TypeVar("Result")

LATE_SECONDS = 0.2
"""How much later than its limit a call is told to be late, while its process ends."""


class ChildProcess:
    """A child process that answers one call after the other.

    Args:
        limit: seconds from the call to the answer, waiting for others and for the process
            included. A call that takes longer is killed with its process; a new one is started.
        prepare: what the process does first.
        most_waiting: calls that are being answered or wait for that; more are refused.

    Attributes:
        waiting: calls that are being answered or wait for that.
    """

    def __init__(self, limit: float, *, prepare: Callable[[], None], most_waiting: int = 8) -> None:
        self.limit = limit
        self.most_waiting = most_waiting
        self._prepare = prepare
        self.waiting = 0
        self._pool: ProcessPoolExecutor | None = None
        self._children: set[multiprocessing.process.BaseProcess] = set()
        self._turn = asyncio.Lock()

    def start(self) -> ProcessPoolExecutor:
        """The process, started and told to prepare itself if there is none."""
        if self._pool is None:
            others = set(multiprocessing.active_children())
            self._pool = new_process(self._prepare)
            self._pool.submit(os.getpid)
            self._children = set(multiprocessing.active_children()) - others
        return self._pool

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call an importable function with picklable arguments in the process; return its answer.

        Raises:
            Exception: ``busy()`` if too many wait already, ``too_long()`` if the call took longer
                than the limit, and what the function raises.
        """
        if self.waiting >= self.most_waiting:
            raise self.busy()
        self.waiting += 1
        deadline = time.monotonic() + self.limit
        try:
            # The process keeps the limit by itself, unless it is still being started.
            async with asyncio.timeout(self.limit + LATE_SECONDS), self._turn:
                return await self._run(deadline, function, arguments)
        except TimeoutError:
            raise self.too_long() from None
        finally:
            self.waiting -= 1

    async def _run(
        self, deadline: float, function: Callable[..., Result], arguments: tuple[Any, ...]
    ) -> Result:
        loop = asyncio.get_running_loop()
        while True:
            pool = self.start()
            try:
                return await loop.run_in_executor(pool, _bounded, deadline, function, arguments)
            except BrokenProcessPool:
                self.close()
                self.start()  # whoever asks next finds it prepared
            # It may have been the call before, of which nobody waited for the end.
            if time.monotonic() >= deadline:
                raise self.too_long()

    def busy(self) -> Exception:
        """Told to whoever calls while too many wait."""
        raise NotImplementedError

    def too_long(self) -> Exception:
        """Told to whoever has waited for the whole limit."""
        raise NotImplementedError

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        for child in self._children:
            child.kill()  # else the end of the service would wait for what it plays or compiles
        self._children = set()


def new_process(prepare: Callable[[], None]) -> ProcessPoolExecutor:
    """A process that starts, and prepares itself, with the first thing that it is asked."""
    # A fork would take threads' locks with it in whatever state they are.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_settle, initargs=(prepare,))


def _settle(prepare: Callable[[], None]) -> None:
    """In the child: be killed by an alarm, leave ctrl-C to the parent, and prepare."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare()


def _end_with_parent() -> None:
    """A service that is killed tells its child nothing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _bounded(
    deadline: float, function: Callable[..., Result], arguments: tuple[Any, ...]
) -> Result:
    """In the child: machine code hears of no exception, but an alarm ends the process."""
    # All processes of a machine share this clock.
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    signal.setitimer(signal.ITIMER_REAL, left)
    try:
        return function(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
