"""Plays queues forward in a process of its own: no prediction waits for a forecast."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from service.errors import ForecastsBusyError, ForecastTooLongError
from simulator.scheduling.simulate import warm_up

Result = TypeVar("Result")

MOST_WAITING = 8
"""Forecasts that are being made or wait for that; more are refused."""


class ForecastProcess:
    """A child process, started with the first forecast, that makes one after the other.

    Args:
        limit: seconds that one may take; the process is killed then, and a new one started.

    Attributes:
        waiting: forecasts that are being made or wait for that.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self.waiting = 0
        self._pool: ProcessPoolExecutor | None = None
        self._turn = asyncio.Lock()

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """What the function answers, which must be importable and so must its arguments.

        Raises:
            ForecastsBusyError: too many wait already.
            ForecastTooLongError: it took longer than the limit.
        """
        if self.waiting >= MOST_WAITING:
            raise ForecastsBusyError(f"{MOST_WAITING} forecasts are being made already.")
        self.waiting += 1
        try:
            async with self._turn:
                return await self._run(function, arguments)
        finally:
            self.waiting -= 1

    async def _run(self, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        pool = self._pool = self._pool or self._start()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(pool, _bounded, self._limit, function, arguments)
        except BrokenProcessPool:
            self.close()
            raise ForecastTooLongError(
                f"The forecast took more than {self._limit:g} s: ask for fewer samples or jobs."
            ) from None

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    @staticmethod
    def _start() -> ProcessPoolExecutor:
        # A fork would take threads' locks with it in whatever state they are.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=context, initializer=_settle)


def _settle() -> None:
    """In the child: be killed by an alarm, leave ctrl-C to the parent, and compile the engine."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warm_up()


def _end_with_parent() -> None:
    """A service that is killed tells its child nothing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _bounded(limit: float, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    """In the child: machine code hears of no exception, but an alarm ends the process."""
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return function(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
