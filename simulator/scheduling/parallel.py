"""Parallel calls by joblib: over processes of this machine, or over a Dask cluster."""

import asyncio
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, TypeVar

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError, _ExecutorManagerThread

from terminal.console import CommandError, ExitCode, need, sentence

if TYPE_CHECKING:
    from distributed import Client

Task = TypeVar("Task")
Value = TypeVar("Value")

DASK = "dask:"

CONNECT_SECONDS = 10
"""Time limit for a connection to a Dask scheduler, and for its first worker."""

MAPPED = "64K"
"""Size from which arrays are mapped into the processes and not copied."""


JOBS_WORTH_A_PROCESS = 400_000
"""A process of its own takes seconds to begin; fewer jobs to play in all are played in this one."""


def number_of_processes(processes: int | None, jobs: int) -> int:
    """Return ``processes``, or by default one per core if so many jobs in all are worth it."""
    if processes is not None:
        return processes
    return 1 if jobs < JOBS_WORTH_A_PROCESS else cpu_count()


def in_parallel(
    function: Callable[[Task], Value],
    tasks: Sequence[Task],
    *,
    processes: int | None = None,
    distributed: str | None = None,
) -> Iterator[Value]:
    """Yield the results of ``function`` in the order of the tasks, as they come.

    An interrupt, an error and an abandoned iterator end the processes. Idle processes stay for the
    next call, until this process ends.

    Args:
        function: importable function, or a ``partial`` of one with positional arguments: long
            arrays in these are mapped into the processes, or sent once to a cluster.
        processes: 1: this process; None: one per core.
        distributed: ``dask:ADDRESS`` of a Dask scheduler, whose workers are used instead. For a
            cluster with a single core, joblib calls the function in this process.

    Raises:
        CommandError: the cluster cannot be used, or a process was killed.
    """
    call, given = _parts(function)
    if distributed:
        with _cluster(distributed) as client:
            _check_imports(client, call)
            yield from _results(_on_cluster(client, given), call, given, tasks)
        return
    number = min(processes or cpu_count(), len(tasks))
    if number <= 1:
        yield from map(function, tasks)
        return
    local = Parallel(number, return_as="generator", max_nbytes=MAPPED, mmap_mode="r")
    try:
        yield from _results(local, call, given, tasks)
    except TerminatedWorkerError as error:
        raise CommandError(
            "A process was killed before it had a result; was memory short? Try fewer --processes."
        ) from error


def _parts(function: Callable[..., Value]) -> tuple[Callable[..., Value], tuple[Any, ...]]:
    """Return a function and its leading arguments, where joblib looks for arrays."""
    return (function.func, function.args) if isinstance(function, partial) else (function, ())


def _results(
    parallel: Parallel,
    call: Callable[..., Value],
    given: Sequence[Any],
    tasks: Sequence[Any],
) -> Iterator[Value]:
    """Yield results in order, without joblib's warning about results that were not taken."""
    with _interrupts_blocked():
        results = parallel([delayed(call)(*given, task) for task in tasks])
    try:
        for result in results:  # noqa: UP028 - "yield from" would close them before the last block
            yield result
    finally:
        with warnings.catch_warnings(action="ignore"), _without_late_calls():
            results.close()


@contextmanager
def _without_late_calls() -> Iterator[None]:
    """Keep quiet about a call that joblib dispatches while it ends the processes.

    The thread that feeds the processes has then forgotten the call and ends with a ``KeyError``,
    after it has killed them.
    """
    before = threading.excepthook

    def report(failed: threading.ExceptHookArgs) -> None:
        if not (failed.exc_type is KeyError and isinstance(failed.thread, _ExecutorManagerThread)):
            before(failed)

    threading.excepthook = report
    try:
        yield
    finally:
        threading.excepthook = before


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT; processes started in the block inherit that, as ctrl-C is their parent's."""
    resource_tracker.ensure_running()  # else started in the block, which it would end
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _cluster(distributed: str) -> "Iterator[Client]":
    """Connect to a Dask scheduler whose workers have this version of walltimed.

    Raises:
        CommandError: the extra is missing, or the cluster cannot be used.
    """
    address = address_of(distributed)
    need("distributed")
    from distributed import Client  # noqa: PLC0415 - an extra

    try:
        asyncio.run(_try_connection(address))
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CommandError(
            f"No Dask scheduler answers at {address}: {sentence(error)}", ExitCode.UNAVAILABLE
        ) from error
    with client:
        _check_workers(client, address)
        yield client


async def _try_connection(address: str) -> None:
    """Connect once: a ``Client`` that fails to connect blocks the exit of this process."""
    from distributed.comm import connect  # noqa: PLC0415 - an extra
    from distributed.security import Security  # noqa: PLC0415 - an extra

    arguments = Security().get_connection_args("client")
    connection = await connect(address, timeout=CONNECT_SECONDS, **arguments)
    await connection.close()


def address_of(distributed: str) -> str:
    """Return the address in ``dask:ADDRESS``.

    Raises:
        CommandError: another engine, or no address.
    """
    address = distributed.removeprefix(DASK)
    if address in {"", distributed}:
        raise CommandError(
            f"--distributed takes {DASK}ADDRESS, such as dask:tcp://login1:8786; "
            f"{distributed!r} is none.",
            ExitCode.USAGE,
        )
    return address


def _check_workers(client: "Client", address: str) -> None:
    """Refuse a cluster without workers, and workers with another walltimed or none.

    Raises:
        CommandError: the message names a worker.
    """
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError as error:
        raise CommandError(
            f"The Dask scheduler at {address} has no worker.", ExitCode.UNAVAILABLE
        ) from error
    here = version("walltimed")
    for process, found in _everywhere(client, version, "walltimed").items():
        if found != here:
            lacks = isinstance(found, PackageNotFoundError)
            fault = "cannot import walltimed" if lacks else f"has walltimed {found}"
            raise CommandError(
                f"The {process} {fault}: start scheduler and workers with the Python of this "
                f"command, which has walltimed {here}."
            )


def _check_imports(client: "Client", function: Callable[..., Any]) -> None:
    """Refuse a cluster that cannot import the function's module, which joblib waits for in vain.

    Raises:
        CommandError: the message names a process of the cluster and the module.
    """
    module = function.__module__
    if module == "__main__" or "<locals>" in function.__qualname__:
        return  # is sent as code
    for process, found in _everywhere(client, find_spec, module).items():
        if not isinstance(found, ModuleSpec):
            raise CommandError(
                f"The {process} cannot import {module}: start scheduler and workers in this "
                "directory."
            )


def _everywhere(client: "Client", function: Callable[..., Any], argument: str) -> dict[str, Any]:
    """Return results or errors of a call by the name of the process, scheduler first."""
    try:
        of_scheduler = client.run_on_scheduler(function, argument)
    except Exception as error:  # noqa: BLE001 - of another process, whatever it is
        of_scheduler = error
    of_workers = client.run(function, argument, on_error="return")
    return {
        "Dask scheduler": of_scheduler,
        **{f"Dask worker {address}": found for address, found in of_workers.items()},
    }


def _on_cluster(client: "Client", given: Sequence[Any]) -> Parallel:
    """Return joblib's calls on a cluster, which sends the leading arguments once."""
    with parallel_config("dask", client=client, scatter=list(given)):
        return Parallel(n_jobs=-1, return_as="generator")
