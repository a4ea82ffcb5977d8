"""Plays queues forward in a process of its own: no prediction waits for a forecast."""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, TypeVar

from service.errors import ForecastsBusyError, ForecastTooLongError
from simulator.scheduling.simulate import warm_up

Result = TypeVar("Result")

MOST_WAITING = 8
"""Forecasts that are being made or wait for that; more are refused."""


LATE_SECONDS = 0.2
"""How much later than its limit a forecast is told to be late, while its process ends."""


class ForecastProcess:
    """A child process that makes one forecast after the other.

    Args:
        limit: seconds from the call to the answer, waiting for others and for the process
            included. A forecast that takes longer is killed with its process; a new one is started.
        prepare: what the process does first: it compiles the engine.

    Attributes:
        waiting: forecasts that are being made or wait for that.
    """

    def __init__(self, limit: float, *, prepare: Callable[[], None] = warm_up) -> None:
        self.limit = limit
        self._prepare = prepare
        self.waiting = 0
        self._pool: ProcessPoolExecutor | None = None
        self._children: set[multiprocessing.process.BaseProcess] = set()
        self._turn = asyncio.Lock()

    def start(self) -> ProcessPoolExecutor:
        """The process, started and told to compile if there is none."""
        if self._pool is None:
            others = set(multiprocessing.active_children())
            self._pool = new_process(self._prepare)
            self._pool.submit(os.getpid)
            self._children = set(multiprocessing.active_children()) - others
        return self._pool

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call an importable function with picklable arguments in the process; return its answer.

        Raises:
            ForecastsBusyError: too many wait already.
            ForecastTooLongError: it took longer than the limit.
        """
        if self.waiting >= MOST_WAITING:
            raise ForecastsBusyError(f"{MOST_WAITING} forecasts are being made already.")
        self.waiting += 1
        deadline = time.monotonic() + self.limit
        try:
            # The process keeps the limit by itself, unless it is still being started.
            async with asyncio.timeout(self.limit + LATE_SECONDS), self._turn:
                return await self._run(deadline, function, arguments)
        except TimeoutError:
            raise self._too_long() from None
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
                self.start()  # whoever asks next finds it compiled
            # It may have been the forecast before, of which nobody waited for the end.
            if time.monotonic() >= deadline:
                raise self._too_long()

    def _too_long(self) -> ForecastTooLongError:
        return ForecastTooLongError(
            f"The forecast took more than {self.limit:g} s: ask for fewer samples or jobs."
        )

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        for child in self._children:
            child.kill()  # else the end of the service would wait for what it plays or compiles
        self._children = set()


class ForecastProcesses(NamedTuple):
    """One for dedicated machines, whose engine is compiled, one for shared nodes, and one more.

    The third plays live queues: nobody waits for it, so it may take longer.
    """

    dedicated: ForecastProcess
    shared: ForecastProcess
    queues: ForecastProcess

    def start(self) -> None:
        """Start the one that has something to compile; the others begin when asked."""
        self.dedicated.start()

    def close(self) -> None:
        """End them all."""
        for process in self:
            process.close()


def nothing() -> None:
    """What a process does first that has nothing to compile."""


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
