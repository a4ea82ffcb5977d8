"""Worker processes for simulations, which end with the process that started them."""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Part = TypeVar("Part")
Result = TypeVar("Result")


class _DeafToInterrupts(ProcessPoolExecutor):
    """Starts processes that block SIGINT from their first instruction: ctrl-C is their parent's."""

    def submit(
        self, fn: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> "Future[Result]":
        """Submit a call; a process that it starts inherits the blocked signals."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def several_processes(
    number: int | None, prepare: Callable[..., object] | None = None, *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of processes, by default one per core; an error in the block ends them.

    Args:
        number: number of processes.
        prepare: called first in each process, with the arguments ``given``.
        given: arguments that can be pickled.
    """
    with _DeafToInterrupts(
        number,
        mp_context=get_context("spawn"),  # a fork of threads and compiled code may hang
        initializer=prepare,
        initargs=given,
    ) as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in active_children():  # a simulation may take minutes
                child.terminate()
            raise


def in_order(
    executor: Executor, play: Callable[[Part], Result], parts: Sequence[Part]
) -> Iterator[Result]:
    """Yield the results of ``play`` in the order of the parts.

    Unlike ``Executor.map``, it does not cancel the remaining calls after an error: the executor
    prints a traceback if a process ends whose call was cancelled.
    """
    futures = [executor.submit(play, part) for part in parts]
    for future in futures:
        yield future.result()
