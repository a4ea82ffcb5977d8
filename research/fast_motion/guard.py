"""Ends what a play has started when its player ends, even if the player is killed."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PAUSE = 0.05
"""Real seconds in which a killed process is gone, or has left another one behind."""


class Guard:
    """Starts a process that tidies up when the player ends.

    That process waits for the end of a pipe that only the player holds open.

    Args:
        clock: file of the clock, in the directory of the play.
    """

    def __init__(self, clock: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, clock], stdin=subprocess.PIPE, start_new_session=True
        )

    def close(self) -> None:
        """Wait until the programs of the play have ended and its directory is deleted."""
        self._process.communicate()


def end_programs(clock: Path, player: int) -> None:
    """Kill all processes but the player that map a clock's file, and those that they start.

    The environment does not tell: slurmstepd writes its title over its own.
    """
    mark = f"{clock.parent.name}/{clock.name}".encode()
    while found := [pid for pid in _processes() if pid != player and mark in _maps_of(pid)]:
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE)


def _processes() -> list[int]:
    return [int(process.name) for process in Path("/proc").glob("[0-9]*")]


def _maps_of(pid: int) -> bytes:
    """Return the list of mapped files of a process; that of one that has ended is empty."""
    try:
        return Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return b""


def main() -> None:
    """Wait for the end of the player, and tidy up after it."""
    clock, player = Path(sys.argv[1]), os.getppid()
    sys.stdin.read()
    end_programs(clock, player)
    shutil.rmtree(clock.parent, ignore_errors=True)


if __name__ == "__main__":
    main()
