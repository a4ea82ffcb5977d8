"""A munged of a test's own, with a key and a socket in a directory of its own."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from patience import eventually

MUNGED = Path("/usr/sbin/munged")

REASON_TO_SKIP = None if MUNGED.exists() else "needs munged (make slurm)"


class PrivateMunge:
    """A running munged; use it in a ``with`` block."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="munge-"))
        self.directory.chmod(0o755)  # munged refuses a socket below a closed directory
        self.socket = self.directory / "socket"
        self.command = self.directory / "munge"

    def __enter__(self) -> Self:
        key = self.directory / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.command.write_text(f'#!/bin/sh\nexec munge --socket={self.socket} "$@"\n')
        self.command.chmod(0o755)
        files = {name: self.directory / name for name in ("pid-file", "log-file", "seed-file")}
        self.process = subprocess.Popen(
            [MUNGED, "--foreground", f"--key-file={key}", f"--socket={self.socket}",
             *(f"--{option}={file}" for option, file in files.items())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        eventually(lambda: self.socket.exists() and self.credential(), seconds=60)
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.directory)

    def credential(self, *options: str, payload: str = "walltimed", user: int | None = None) -> str:
        """A credential that the command `munge` makes, as another user if root asks for one."""
        done = subprocess.run(
            ["munge", f"--socket={self.socket}", f"--string={payload}", *options],
            capture_output=True, text=True, check=False, timeout=30, user=user,
        )  # fmt: skip
        return done.stdout.strip()
