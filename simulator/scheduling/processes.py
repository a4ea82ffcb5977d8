"""Processes that simulations run in, which end with whoever started them."""

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
    """Starts processes that ctrl-C does not reach, also while they begin: it is their parent's."""

    def submit(
        self, fn: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> "Future[Result]":
        """Submit a call; a process that is started for it inherits which signals are blocked."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def several_processes(
    number: int | None, prepare: Callable[..., object] | None = None, *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes, by default one per core; an error in the block ends what they are doing.

    Args:
        number: of processes.
        prepare: called in each of them first, with what is ``given``.
        given: can be sent to another process.
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
    """The results of ``play`` in the order of the parts.

    ``Executor.map`` does so too, but cancels what is left after an error, and of a process that is
    ended then an executor says in a traceback that its work was cancelled.
    """
    futures = [executor.submit(play, part) for part in parts]
    for future in futures:
        yield future.result()
