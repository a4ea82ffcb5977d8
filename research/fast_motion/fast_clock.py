"""Keeps the clock that all programs of a play share, and compiles what makes them live by it."""

import mmap
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent

CRAWL = 10.0
"""Speed beyond ``until``, as in fast_clock.h."""

AHEAD = 0.03
"""Real seconds for which the clock goes on without being renewed."""

_CHANGES, _SETTING = struct.Struct("@L"), struct.Struct("@dddd")


class NoCompilerError(RuntimeError):
    """There is no gcc, which compiles the clock on the spot."""


def compile_into(directory: Path) -> None:
    """Compile ``fast_clock.so`` and ``fast_job``.

    Raises:
        NoCompilerError: gcc is missing.
    """
    if shutil.which("gcc") is None:
        raise NoCompilerError("The clock of a play is compiled by gcc, which is not installed.")
    library = ["-shared", "-fPIC", "fast_clock.c", "-ldl", "-lpthread"]
    program = ["-static", "fast_job.c"]
    for name, sources in (("fast_clock.so", library), ("fast_job", program)):
        command = ["gcc", "-O2", "-Wall", "-o", str(directory / name), *sources]
        subprocess.run(command, cwd=HERE, check=True)


class FastClock:
    """A clock in a file; programs find it by ``FAST_CLOCK``.

    Args:
        file: the file, which must not exist.
        start: Unix seconds that the clock shows first.

    Attributes:
        file: the file.
        speed: seconds of the clock in a real one.
        crawled: real seconds for which the clock was not renewed in time, and crawled.
    """

    def __init__(self, file: Path, start: float) -> None:
        size = _CHANGES.size + 2 * _SETTING.size
        file.write_bytes(bytes(size))
        self.file = file
        self.speed = CRAWL
        self.crawled = 0.0
        self._changes = 0
        self._real, self._time, self._until = time.monotonic(), start, start
        with file.open("r+b") as opened:
            self._page = mmap.mmap(opened.fileno(), size)
        self.go_on(CRAWL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._page.close()

    def now(self) -> float:
        """Return Unix seconds of the clock."""
        return self._at(time.monotonic())

    def _at(self, real: float) -> float:
        shown = self._time + (real - self._real) * self.speed
        if shown > self._until and self.speed > CRAWL:
            return self._until + (shown - self._until) / self.speed * CRAWL
        return shown

    def go_on(self, speed: float) -> None:
        """Go on from the present time at a speed, for ``AHEAD`` real seconds."""
        real = time.monotonic()
        if self.speed > CRAWL:
            self.crawled += max(0.0, real - self._real - AHEAD)
        self._time, self._real, self.speed = self._at(real), real, speed
        self._until = self._time + AHEAD * speed
        self._changes += 1
        place = _CHANGES.size + (self._changes & 1) * _SETTING.size
        _SETTING.pack_into(self._page, place, self._real, self._time, self.speed, self._until)
        _CHANGES.pack_into(self._page, 0, self._changes)


def open_reports(clock: FastClock) -> int:
    """Make the pipe into which jobs write their ends; return its descriptor."""
    pipe = Path(f"{clock.file}.pipe")
    os.mkfifo(pipe)
    pipe.chmod(0o666)  # jobs of PBS are not root's
    return os.open(pipe, os.O_RDWR | os.O_NONBLOCK)


def read_reports(pipe: int) -> list[tuple[str, str]]:
    """Return the lines that jobs have written since the last call: an id, an end or ``?``."""
    try:
        text = os.read(pipe, 1 << 16).decode()
    except BlockingIOError:
        return []
    words = (line.partition(" ") for line in text.splitlines())
    return [(job, end) for job, _, end in words]
