"""Child processes for long computations, and the priority of work beside requests."""

import asyncio
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, TypeVar

from service.errors import ForecastsBusyError, ForecastsStartingError, ForecastTooLongError
from simulator.scheduling.simulate import warm_up

Result = TypeVar("Result")

LATE_SECONDS = 0.2
"""Seconds after its limit at which a call is answered, while its process ends."""

SWITCH_SECONDS = 0.001
"""Seconds for which a thread may delay the event loop; Python's default is 5 ms."""

COLLECTION_THRESHOLD = 20_000
"""Objects between garbage collections; Python's default of 700 is a few requests here."""

MOST_THREADS = 8
"""Most threads of a serving process that wait for the database at a time."""

LOWEST_PRIORITY = 19
"""As ``nice`` counts."""


def settle_process() -> None:
    """Exclude the present objects from garbage collection, so that no request has a long pause.

    Some thousand of 290,000 objects are garbage and are kept too: to find them takes a tenth of a
    second or more of each start.
    """
    gc.freeze()
    gc.set_threshold(COLLECTION_THRESHOLD)
    sys.setswitchinterval(SWITCH_SECONDS)


def bound_threads(loop: asyncio.AbstractEventLoop) -> None:
    """Bound the threads that wait for the database; usually they grow with the processors."""
    loop.set_default_executor(ThreadPoolExecutor(MOST_THREADS))


def come_second() -> None:
    """Give this process the lowest priority; it still runs while others are busy."""
    os.nice(LOWEST_PRIORITY)


def give_way(process_id: int) -> None:
    """Let a process run only on an idle processor.

    The lowest priority is not enough: such a process runs rarely, but then keeps the processor for
    milliseconds, in which no prediction is answered.
    """
    if hasattr(os, "SCHED_IDLE"):  # Linux
        os.sched_setscheduler(process_id, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.setpriority(os.PRIO_PROCESS, process_id, LOWEST_PRIORITY)


def nothing() -> None:
    """Return at once, for a process that prepares nothing."""


class ChildProcess:
    """A child process that answers one call after the other.

    Args:
        limit: seconds from the call to the answer, waiting for others included. A call that takes
            longer is killed with its process; a new one is started. While the process starts, a
            call waits for that as long, and its own seconds count from then on.
        most_waiting: largest number of calls in progress or waiting; more are refused.

    Attributes:
        waiting: number of calls in progress or waiting.
    """

    def __init__(
        self, limit: float, *, prepare: Callable[[], None] = nothing, most_waiting: int = 8
    ) -> None:
        self.limit = limit
        self.most_waiting = most_waiting
        self._prepare = prepare
        self.waiting = 0
        self._pool: ProcessPoolExecutor | None = None
        self._ready: Future[int] = Future()
        self._children: set[multiprocessing.process.BaseProcess] = set()
        self._turn = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        """Whether the process was started."""
        return self._pool is not None

    def start(self) -> ProcessPoolExecutor:
        """Return the pool of the process; start it if there is none."""
        if self._pool is None:
            others = set(multiprocessing.active_children())
            # A fork would copy the locks of threads in any state.
            self._pool = ProcessPoolExecutor(
                1,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_settle,
                initargs=(self._prepare,),
            )
            self._ready = self._pool.submit(os.getpid)
            self._children = set(multiprocessing.active_children()) - others
        return self._pool

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call an importable function with picklable arguments in the process; return its answer.

        Raises:
            Exception: ``busy()`` if too many wait already, ``starting()`` if the process is not
                ready within the limit, ``too_long()`` if the call took longer than the limit, and
                what the function raises.
        """
        if self.waiting >= self.most_waiting:
            raise self.busy()
        self.waiting += 1
        try:
            await self._until_ready()
            deadline = time.monotonic() + self.limit
            # The process keeps the limit by itself, unless it is being started again.
            async with asyncio.timeout(self.limit + LATE_SECONDS), self._turn:
                return await self._run(deadline, function, arguments)
        except TimeoutError:
            raise (self.too_long() if self._ready.done() else self.starting()) from None
        finally:
            self.waiting -= 1

    async def _until_ready(self) -> None:
        """Start the process if there is none, and wait until it is prepared.

        Raises:
            TimeoutError: that takes longer than the limit of a call.
        """
        self.start()
        ready = asyncio.wrap_future(self._ready)
        ready.add_done_callback(lambda each: each.cancelled() or each.exception())
        if not ready.done():
            await asyncio.wait({ready}, timeout=self.limit)  # a timeout does not cancel it
        if not self._ready.done():
            raise TimeoutError

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
                self.start()  # it is prepared when the next call comes
            # The process may have died of an earlier call that had timed out: try again.
            if time.monotonic() >= deadline:
                raise self.too_long()

    async def forget(self) -> None:
        """Remove what earlier calls left in the process after an erasure; by default nothing."""

    def busy(self) -> Exception:
        """Return the error for a call while too many wait."""
        raise NotImplementedError

    def too_long(self) -> Exception:
        """Return the error for a call that exceeded the time limit."""
        raise NotImplementedError

    def starting(self) -> Exception:
        """Return the error for a call while the process is not ready."""
        return self.too_long()

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        for child in self._children:
            child.kill()  # else the end of the service would wait for a running call
        self._children = set()


def _settle(prepare: Callable[[], None]) -> None:
    """In the child: be killed by an alarm, leave ctrl-C to the parent, and prepare."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare()


def _end_with_parent() -> None:
    """End with the parent, also if it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _bounded(
    deadline: float, function: Callable[..., Result], arguments: tuple[Any, ...]
) -> Result:
    """In the child: call the function; an alarm ends the process, also in machine code."""
    # All processes of a machine share this clock.
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    signal.setitimer(signal.ITIMER_REAL, left)
    try:
        return function(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class ForecastProcess(ChildProcess):
    """Plays queues forward; by default its process compiles the engine first."""

    def __init__(self, limit: float, *, prepare: Callable[[], None] = warm_up) -> None:
        super().__init__(limit, prepare=prepare)

    def busy(self) -> ForecastsBusyError:
        """Return the error for a forecast while too many wait."""
        return ForecastsBusyError(f"{self.most_waiting} forecasts are being made already.")

    def too_long(self) -> ForecastTooLongError:
        """Return the error for a forecast that exceeded the time limit."""
        return ForecastTooLongError(
            f"The forecast took more than {self.limit:g} s: ask for fewer samples or jobs."
        )

    def starting(self) -> ForecastsStartingError:
        """Return the error for a forecast while the process is not ready."""
        return ForecastsStartingError()


class ForecastProcesses(NamedTuple):
    """One for forecasts that callers wait for, and one for live queues, which may take longer."""

    awaited: ForecastProcess
    queues: ForecastProcess

    def start(self) -> None:
        """Start the first one, which may have something to compile; the other begins when asked."""
        self.awaited.start()

    def close(self) -> None:
        """End all processes."""
        for process in self:
            process.close()
