"""Runs a private service for one command, in a child process on loopback."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import environ

from service.cli.console import CommandError, ExitCode

STOP_SECONDS = 30
"""Seconds that a service may take to write what is queued."""

ANNOUNCEMENT = "walltimed listens on "


class PrivateService:
    """A running child process and the URL at which it takes requests."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def wait(self) -> None:
        """Wait until the process ends, for example by ctrl-C."""
        self.process.wait()


@contextmanager
def private_service(*options: str, settings: Mapping[str, str]) -> Iterator[PrivateService]:
    """Start `walltimed serve` on a free port; the service ends with the block.

    Args:
        options: further options of `walltimed serve`.
        settings: environment variables; the caller's own settings do not reach the service.

    Raises:
        CommandError: the service does not start.
    """
    ours = {name: value for name, value in environ.items() if not name.startswith("WALLTIMED_")}
    process = subprocess.Popen(  # noqa: S603 - our own program, with arguments from above
        [sys.executable, "-P", "-m", "service.cli", "serve", "--host", "127.0.0.1", *options],
        # Parameters that change meanwhile would make a replay differ from its repetition.
        env={
            **ours,
            "WALLTIMED_CONFIG": "",
            "WALLTIMED_PORT": "0",
            "WALLTIMED_LOG_LEVEL": "warning",
            "WALLTIMED_TUNING": "on-request",
            **settings,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield PrivateService(process, announced(process))
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def announced(process: subprocess.Popen[str]) -> str:
    """The address that the service prints once it accepts connections."""
    line = process.stdout.readline() if process.stdout else ""
    if not line.startswith(ANNOUNCEMENT):
        raise CommandError(
            "The private service did not start; see its message above.", ExitCode.FAILED
        )
    return line.removeprefix(ANNOUNCEMENT).strip()
