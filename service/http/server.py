"""HTTP server: sockets, worker processes, shutdown."""

import errno
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

import structlog
import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from service import auth
from service.http.app import create_app
from service.http.connections import BoundedProtocol
from service.metrics import MULTIPROCESS_DIRECTORY
from service.settings import Settings
from service.store import open_store
from terminal import logs

GRACE_SECONDS = 4
"""Seconds that requests have to finish once the service is to stop."""

STOP_SECONDS = 6.0
"""Seconds that a worker has to end, its grace included; then it is killed. Acknowledged completions
are on disk in any case."""

LAST_SECONDS = 8.0
"""Seconds from the signal after which the process that got it ends, whatever it waits for: a killed
worker in the kernel, a thread, a database, its own memory. On a busy machine each may take long."""

SILENT_WORKER_SECONDS = 60
"""Seconds without an answer to its parent after which a worker is replaced. A worker does not
answer while it imports its modules: with 5 s, uvicorn kills every worker of a host under load."""

KEEP_ALIVE_SECONDS = 75
"""Seconds that an idle connection stays open, so that submit filters can use it again."""

BACKLOG = 2048

OTHER_FILES = 128
"""File descriptors that a process needs besides connections."""

log = structlog.get_logger()


def run(settings: Settings, *, announce: Callable[[str], None] = print) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was begun and write what is queued.

    Args:
        announce: called with a sentence that names the address, once it accepts connections.

    Raises:
        NotProtectedError: it would listen beyond loopback without a token, and the setting
            `allow_unauthenticated` does not allow that.
        OSError: the address cannot be listened on.
    """
    check_protected(settings)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # closing the terminal does not end the service
    logs.configure(settings)
    with listening(settings) as (listener, address):
        announce(f"walltimed listens on {address}")
        sys.stdout.flush()
        if settings.workers == 1:
            serve_alone(settings, listener)
        else:
            serve_together(settings, listener)


def check_protected(settings: Settings) -> None:
    """Refuse to listen beyond loopback while calls need no token."""
    store = open_store(settings.database_url.get_secret_value())
    try:
        auth.check_protected(settings.guarded_host, store.tokens.read_all)
    finally:
        store.close()


def serve_alone(settings: Settings, listener: socket.socket) -> None:
    """Serve in this process."""

    def application() -> FastAPI:
        return create_app(settings, owns_process=True)

    LoneServer(configuration(application, settings)).run(sockets=[listener])


def serve_together(settings: Settings, listener: socket.socket) -> None:
    """Serve in several processes that share the socket, the store, and what they count."""
    with TemporaryDirectory(prefix="walltimed-metrics-") as shared:
        os.environ |= settings.environment() | {MULTIPROCESS_DIRECTORY: shared}
        together = configuration("service.http.server:worker", settings)
        supervisor = Workers(together, sockets=[listener])
        # With uvicorn, SIGHUP restarts every worker; new workers inherit what this process ignores.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        supervisor.run()


def end_within(seconds: float) -> None:
    """End this process after some seconds, unless it has ended by then."""
    last = threading.Timer(seconds, end_now)
    last.daemon = True
    last.start()


def end_now() -> None:
    """End this process without waiting for anything."""
    log.error("the service did not end in time, and is cut off")
    os._exit(0)  # acknowledged completions are on disk


def leave() -> NoReturn:
    """End this process after it has served, without taking Python's modules down.

    On a busy machine that takes seconds, of which ``end_within`` bounds none: its thread is stopped
    by then.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class LoneServer(uvicorn.Server):
    """A server that ends within a bound."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; uvicorn calls this with each signal."""
        if not self.should_exit:
            end_within(LAST_SECONDS)
        super().handle_exit(sig, frame)


class Workers(Multiprocess):
    """Worker processes that are watched without waiting for one, and that end within a bound.

    uvicorn's own supervisor waits for each worker's answer in turn, and takes no signal meanwhile:
    on a host under load it ended a minute after SIGTERM.
    """

    def init_processes(self) -> None:
        """Start the workers."""
        self._answered: dict[int | None, float] = {}
        super().init_processes()

    def keep_subprocess_alive(self) -> None:
        """Replace each worker that has ended, or not answered for ``SILENT_WORKER_SECONDS``."""
        now = time.monotonic()
        for place, process in enumerate(self.processes):
            answered = self._answered.setdefault(process.pid, now)
            if process.is_alive(timeout=0):  # it has answered an earlier probe
                self._answered[process.pid] = now
            elif not process.process.is_alive() or now - answered > SILENT_WORKER_SECONDS:
                process.kill()
                process.join()
                if process.exitcode == STARTUP_FAILURE:
                    log.error("a worker cannot start, so the service ends", worker=process.pid)
                    self.should_exit.set()
                    return
                log.error("a worker died, another takes its place", worker=process.pid)
                self.processes[place] = Process(self.config, self.sockets)
                self.processes[place].start()

    def terminate_all(self) -> None:
        """Ask the workers to end; from now on this process ends within a bound."""
        end_within(LAST_SECONDS)
        super().terminate_all()

    def join_all(self) -> None:
        """Wait for the workers, and kill those that have not ended after ``STOP_SECONDS``."""
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.processes:
            process.process.join(max(0.0, deadline - time.monotonic()))
        for process in self.processes:
            if process.exitcode is None:
                log.error("a worker did not end in time, and is killed", worker=process.pid)
                process.process.kill()
        for process in self.processes:
            process.join()


def worker() -> FastAPI:
    """Build the application of one of several processes, with settings of the environment."""
    settings = Settings()
    logs.configure(settings)
    return create_app(settings, owns_process=True)


def most_connections(settings: Settings) -> int:
    """Return the limit on connections of a process: the setting, or what open files allow."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return settings.max_connections
    room = max(1, files - OTHER_FILES)
    if room < settings.max_connections:
        log.warning("fewer connections than set: open files are limited", files=files, room=room)
    return min(room, settings.max_connections)


def configuration(application: str | Callable[[], FastAPI], settings: Settings) -> uvicorn.Config:
    """Return the configuration of uvicorn for an application.

    Args:
        application: a factory, or its import string.
    """
    return uvicorn.Config(
        application,
        factory=True,
        workers=settings.workers,
        loop="uvloop",
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=most_connections(settings) + 1,  # uvicorn refuses from this number on
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=SILENT_WORKER_SECONDS,
    )


@contextmanager
def listening(settings: Settings) -> Iterator[tuple[socket.socket, str]]:
    """Open a socket that accepts connections; yield it and its address as a URL."""
    if settings.unix_socket is not None:
        with unix_listener(settings.unix_socket) as listener:
            yield listener, f"unix:{settings.unix_socket}"
        return
    with tcp_listener(settings.host, settings.port) as listener:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        yield listener, f"http://{host}:{listener.getsockname()[1]}"


def tcp_listener(host: str, port: int) -> socket.socket:
    """Open a TCP socket that accepts connections.

    Raises:
        OSError: it cannot be made; of a port that is taken the error says what to do.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise OSError(
            f"Port {port} of {host} is in use, perhaps by a walltimed that still runs: end that "
            "one, or choose another port by --port or the setting port."
        ) from error


@contextmanager
def unix_listener(path: Path) -> Iterator[socket.socket]:
    """Open a Unix socket, in place of one that a killed service may have left behind.

    Raises:
        OSError: it cannot be made; the error names its place.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        if path.is_socket() and not _answers(path):
            path.unlink()
        try:
            listener.bind(str(path))
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        listener.listen(BACKLOG)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0
