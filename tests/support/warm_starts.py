"""Starts walltimed's processes by forking a process that has loaded it already.

Tests start hundreds of them, and loading Python, libraries and machine code takes each two seconds
of a processor. Here one process has done that (warm_template.py), and the others are forked from
it: processes of their own, and children of whoever starts them, as they would be otherwise. What is
about starting itself is marked `cold`: there, and everywhere with `pytest --long`, each process is
a new interpreter.
"""

import ctypes
import inspect
import json
import multiprocessing.util
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

WALLTIMED = str(Path(sys.executable).with_name("walltimed"))
MODULES = ("service.cli", "service.worker.tuning_rounds")
SAFE_PATH = "-P"
SPAWNED = "from multiprocessing.spawn import"
"""How the code begins that multiprocessing starts its processes with."""

TEMPLATE = str(Path(__file__).with_name("warm_template.py"))
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A template may have no other threads: a fork would not have them, but what they have locked."""

LONGEST, MOST_FILES = 200_000, 32
"""Bytes of an order, and open files that it may hand over."""

SUBREAPER = 36
"""Of prctl: processes whose parent has ended become children of this one."""

READ_WHEN_LOADED = ("PYTHON", "NUMBA", "LD_", "COVERAGE")
TAKEN_OVER = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
"""Variables that begin so are of no use to a process that has been loaded without; but for two."""

EXECUTE = subprocess.Popen._execute_child
PARAMETERS = inspect.signature(EXECUTE)
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
UNUSUAL = ("executable", "preexec_fn", "pass_fds", "shell", "gid", "gids", "uid")

SPAWN = multiprocessing.util.spawnv_passfds


@dataclass(frozen=True)
class Order:
    """What a process shall be: its command line and what it would inherit.

    Attributes:
        words: the command line.
        numbers: of the open files that come with the order.
        environment: all of it.
        folder: where it works.
        session: whether it leads a session.
        group: the process group that it goes to; -1: that of its template.
        ignored: signals that it ignores.
    """

    words: Sequence[str]
    numbers: Sequence[int]
    environment: Mapping[str, str]
    folder: str
    session: bool = False
    group: int = -1
    ignored: Sequence[int] = ()


class Forks(Protocol):
    """What starts a process by an order."""

    def start(self, order: Order, files: Sequence[int]) -> int:
        """The number of a process that is a child of this one.

        Raises:
            OSError: it cannot be started so.
        """


class Template:
    """A process that forks for orders."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door
        self._turn = threading.Lock()

    def start(self, order: Order, files: Sequence[int]) -> int:
        """See Forks."""
        with self._turn, adopting():
            socket.send_fds(self._door, [json.dumps(asdict(order)).encode()], files)
            if not (answer := self._door.recv(LONGEST)):
                raise ConnectionResetError
            return int(answer)

    def close(self) -> None:
        """Let it end."""
        self._door.close()


@contextmanager
def adopting() -> Iterator[None]:
    """The process that stands between a template and what it forks leaves its child to us."""
    libc = ctypes.CDLL(None)
    libc.prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(SUBREAPER, 0, 0, 0, 0)


class OwnTemplate:
    """A template of this process's own, which is loaded once something is to be started."""

    def __init__(self) -> None:
        self._template: Template | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, order: Order, files: Sequence[int]) -> int:
        """See Forks."""
        if self._template is None:
            door, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with inner:
                self._process = subprocess.Popen(
                    [sys.executable, TEMPLATE, str(inner.fileno())], env=os.environ | ONE_THREAD,
                    pass_fds=[inner.fileno()], stdin=subprocess.DEVNULL,
                )  # fmt: skip
            self._template = Template(door)
        return self._template.start(order, files)

    def close(self) -> None:
        """Kill it, if there is one: it has nothing to store, and may still be loading."""
        if self._template is not None and self._process is not None:
            self._template.close()
            self._process.kill()
            self._process.wait()


class Warm:
    """How this process starts others: by forks while that is on, and where they can be told apart
    from new interpreters by nothing that matters.
    """

    def __init__(self, forks: Forks) -> None:
        self._forks = forks
        self._is_on = True
        self._loaded_with = loaded_with(os.environ)

    @contextmanager
    def off(self) -> Iterator[None]:
        """Everything that is started meanwhile is a new interpreter."""
        self._is_on = False
        try:
            yield
        finally:
            self._is_on = True

    def install(self) -> None:
        """Let subprocess and multiprocessing start processes so from now on."""

        def execute(process: Any, *given: object) -> None:
            told = PARAMETERS.bind(process, *given).arguments
            process.pid = self.popen(told)
            process._child_created = process.pid is not None
            if process.pid is None:
                EXECUTE(process, *given)
            else:
                process._close_pipe_fds(*(told[name] for name in PIPES))

        def spawn(path: Any, words: Sequence[str | bytes], files: Sequence[int]) -> int:
            number = self.spawn([os.fsdecode(word) for word in words], [*map(int, files)])
            return SPAWN(path, words, files) if number is None else number

        subprocess.Popen._execute_child = execute
        multiprocessing.util.spawnv_passfds = spawn

    def popen(self, told: Mapping[str, Any]) -> int | None:
        """The number of a process that was forked for what Popen is told; None if none was."""
        if isinstance(told["args"], str | bytes | Path) or any(told[name] for name in UNUSUAL):
            return None
        words = [os.fspath(word) for word in told["args"]]
        if not is_ours(words):
            return None
        files = {0: told["p2cread"], 1: told["c2pwrite"], 2: told["errwrite"]}
        return self._started(
            words,
            {number: number if file == -1 else file for number, file in files.items()},
            environment=os.environ if told["env"] is None else told["env"],
            folder=told["cwd"] or Path.cwd(),
            session=told["start_new_session"],
            group=told["process_group"],
        )

    def spawn(self, words: Sequence[str], files: Sequence[int]) -> int | None:
        """The same for a process of multiprocessing, which inherits these files."""
        if not any(word.startswith(SPAWNED) for word in words):
            return None
        inherited = {number: number for number in (0, 1, 2, *files)}
        return self._started(words, inherited, environment=os.environ, folder=Path.cwd())

    def _started(
        self,
        words: Sequence[str],
        files: Mapping[int, int],
        *,
        environment: Mapping[Any, Any],
        folder: Any,
        **different: Any,
    ) -> int | None:
        told = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
        if not self._is_on or loaded_with(told) != self._loaded_with:
            return None
        order = Order(words, list(files), told, os.fspath(folder), ignored=ignored(), **different)
        try:
            return self._forks.start(order, list(files.values()))
        except OSError:
            return None


def loaded_with(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are read when Python, libraries and machine code are loaded."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_WHEN_LOADED) and name not in TAKEN_OVER
    }


def ignored() -> list[int]:
    """The signals that this process ignores, and so do those that it starts."""
    return [
        int(number)
        for number in signal.valid_signals()
        if signal.getsignal(number) is signal.SIG_IGN
    ]


def is_ours(words: Sequence[str]) -> bool:
    """Whether a command line is one of walltimed's."""
    return words[0] == WALLTIMED or (words[0] == sys.executable and module_of(words) in MODULES)


def module_of(words: Sequence[str]) -> str | None:
    """The module that a command line runs, if it has no other options than we know of."""
    rest = [word for word in words[1:4] if word != SAFE_PATH]
    return rest[1] if rest[:1] == ["-m"] else None
