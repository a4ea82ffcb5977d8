"""Compiles everything before the first test, and fails a test that compiles much all the same.

Machine code is built in minutes: inside a test it would eat the test's time limit.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from numba.core import event as numba_event

from predictors.compiled import PACKAGES, _imported, config

ROOT = Path(__file__).parents[2]

LONGEST_SECONDS = 3600.0

MOST_SECONDS = 10.0
"""Processor time that a test may take for compiling; the loop of a policy takes more."""


def sources() -> Sequence[Path]:
    """The modules that have compiled functions, and all that these import."""
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    imports = {path: _imported(path.read_text("utf-8")) for path in files}
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }
    waiting = [path for path in files if "predictors.compiled" in imports[path]]
    found = set(waiting)
    while waiting:
        new = {modules[name] for name in imports[waiting.pop()] & modules.keys()} - found
        found |= new
        waiting += new
    return sorted(found)


def stamp() -> Path:
    """The file that says that all of the present source is compiled; beside the machine code."""
    digest = sha256(b"\0".join(path.read_bytes() for path in sources())).hexdigest()[:12]
    return ROOT / "predictors" / "__pycache__" / f"all-compiled-{digest}"


def compile_once() -> None:
    """Do as ``walltimed warm-up``, unless that was done for this source."""
    compiled = stamp()
    if config.DISABLE_JIT or compiled.exists():
        return
    sys.stderr.write("Compiled before the first test, once for each state of the source.\n")
    command = [sys.executable, "-m", "service.cli", "warm-up"]
    if subprocess.run(command, cwd=ROOT, check=False, timeout=LONGEST_SECONDS).returncode:
        pytest.exit("walltimed warm-up failed", returncode=1)
    compiled.touch()


class Compilations(numba_event.Listener):
    """What this process compiles of the product, and for how long.

    Small functions may be compiled in a test that calls them with types of its own.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._seconds = 0.0
        self._open = threading.local()
        numba_event.register("numba:compile", self)

    def on_start(self, event: numba_event.Event) -> None:
        function = event.data["dispatcher"].py_func
        depth = getattr(self._open, "depth", 0)
        if not depth:
            self._open.began = time.thread_time()
        self._open.depth = depth + 1
        self._names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, event: numba_event.Event) -> None:
        del event
        self._open.depth -= 1
        if not self._open.depth:
            self._seconds += time.thread_time() - self._open.began

    def take(self) -> tuple[float, Sequence[str]]:
        """Seconds of processor time and names of functions since the last call."""
        taken = self._seconds, self._names
        self._names, self._seconds = [], 0.0
        return taken
