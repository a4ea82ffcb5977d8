"""A process that has loaded walltimed already, and forks for everything that a test starts.

What is forked is a process as any other, with arguments, environment, folder and files of its own.
It runs the real command from its first line, and has a template of its own for its children.
"""

import gc
import json
import os
import random
import runpy
import signal
import socket
import sys
import tempfile
import threading
import time
from fcntl import F_DUPFD_CLOEXEC, fcntl
from pathlib import Path

import warm_starts
from prometheus_client import values
from warm_starts import Order, Template, Warm

FOR_MULTIPROCESSING = "-c"


def load() -> None:
    """Import what services and commands import, and load the machine code that they ask for."""
    from service.cli import warming
    from service.http import server  # noqa: F401 - what serves
    from service.http.app import create_app
    from service.settings import Settings
    from service.web import site  # noqa: F401 - what the process of pages imports
    from service.worker import tuning_rounds  # noqa: F401 - and that of rounds

    create_app(Settings(config=None, database_url="sqlite:///never-opened"))
    for compile_part in (warming.METHODS | warming.OTHERS).values():
        compile_part()
    for name in [name for name in sys.modules if name.startswith(("service.cli", "simulator.cli"))]:
        del sys.modules[name]  # consoles look at the environment where they are made
    assert threading.active_count() == 1, "a fork would take locks of other threads with it"
    gc.collect()
    gc.freeze()


def become(door: socket.socket) -> Order:
    """Serve orders; returns in each process that is forked for one, which is then as ordered."""
    while True:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        order, files = serve(door)
        settle(order, files)
        door, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork():
            inner.close()
            Warm(Template(door)).install()
            return order
        door.close()
        door = inner
        place(dict.fromkeys(range(3), os.open(os.devnull, os.O_RDWR)))


def serve(door: socket.socket) -> tuple[Order, list[int]]:
    """Fork for each order that comes in; returns in the forked process, with the order's files."""
    while True:
        message, files, _, _ = socket.recv_fds(door, warm_starts.LONGEST, warm_starts.MOST_FILES)
        if not message:
            os._exit(0)
        told, tell = os.pipe()
        between = os.fork()
        if between == 0:
            process = os.fork()
            if process == 0:
                os.close(told)
                os.close(tell)
                door.close()
                return Order(**json.loads(message)), files
            os.write(tell, str(process).encode())
            os._exit(0)
        for file in (tell, *files):
            os.close(file)
        os.waitpid(between, 0)  # now the process is a child of who has ordered it
        door.sendall(os.read(told, warm_starts.LONGEST))
        os.close(told)


def settle(order: Order, files: list[int]) -> None:
    """Let this process be as if it had been started for the order."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in order.ignored:
        signal.signal(number, signal.SIG_IGN)
    if order.session:
        os.setsid()
    elif order.group != -1:
        os.setpgid(0, order.group)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ |= order.environment
    place(dict(zip(order.numbers, files, strict=True)))
    time.tzset()
    random.seed()
    tempfile.tempdir = None
    values.ValueClass = values.get_value_class()  # whether several processes count together
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    is_script = order.words[0] == warm_starts.WALLTIMED
    sys.path[:1] = [str(Path(order.words[0]).parent) if is_script else order.folder]
    if warm_starts.SAFE_PATH in order.words:
        del sys.path[0]


def place(files: dict[int, int]) -> None:
    """Give open files their numbers, which may be those of others, and begin to use 0, 1 and 2."""
    above = max(files) + 1
    moved = {number: fcntl(file, F_DUPFD_CLOEXEC, above) for number, file in files.items()}
    for file in {*files.values()}:
        os.close(file)
    for number, file in moved.items():
        os.dup2(file, number)
        os.close(file)
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - till the end
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout.reconfigure(write_through=at_once, line_buffering=os.isatty(1))
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )


def run(order: Order) -> None:
    """Do what the interpreter would do with the order's command line."""
    words = [*order.words]
    if FOR_MULTIPROCESSING in words:
        code = words[words.index(FOR_MULTIPROCESSING) + 1 :]
        sys.argv = [FOR_MULTIPROCESSING, *code[1:]]
        exec(code[0], {"__name__": "__main__"})
    elif words[0] == warm_starts.WALLTIMED:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
    else:
        sys.argv = words[words.index("-m") + 1 :]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    load()
    run(become(socket.socket(fileno=int(sys.argv[1]))))
