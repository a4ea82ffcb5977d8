"""Open the players to which a log is played: predictors, a service, or a private service."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from os import environ
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from predictors.jobs import Completion, Prediction, Submission
from terminal.client import LARGEST_BATCH, Client
from terminal.console import CommandError, ExitCode
from terminal.progress import waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.trace_replay import Player


STOP_SECONDS = 30
"""Seconds that a service may take to write what is queued."""

ANNOUNCEMENT = "walltimed listens on "

STARTING = "starting a service (the first one compiles its methods: a minute)"


@contextmanager
def opened(
    specs: Sequence["MethodSpec"],
    *,
    url: str | None,
    token: str | None,
    in_process: bool,
    quiet: bool = False,
) -> "Iterator[Player]":
    """Open a player: predictors in this process, a running service, or a private service."""
    from simulator.replay.trace_replay import InProcess

    if in_process:
        if url:
            raise CommandError("--in-process and --url exclude each other.", ExitCode.USAGE)
        yield InProcess.with_intervals({spec.label: spec.predictor() for spec in specs})
        return
    names = {spec.label: spec.name for spec in specs}
    if url:
        if any(spec.parameters for spec in specs):
            raise CommandError(
                "A running service has its own parameters: name methods without any, or use "
                "--in-process.",
                ExitCode.USAGE,
            )
        with Client(url, token=token) as client:
            client.wait_until_ready()
            yield RemotePlayer(client, names)
        return
    with (
        TemporaryDirectory(prefix="walltimed-replay-") as directory,
        private_service(settings=private_settings(specs, directory), quiet=quiet) as service,
        Client(service.url) as client,
    ):
        client.wait_until_ready()
        yield RemotePlayer(client, names)


def private_settings(specs: Sequence["MethodSpec"], directory: str) -> dict[str, str]:
    """Return the settings of a service for one replay.

    The service's database need not survive a power cut. Tuning is off, because a round would end
    at a real time that does not depend on the time of the log.

    Raises:
        CommandError: one method is given with two sets of parameters.
    """
    import msgspec

    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise CommandError(
            "A service has one set of parameters for each method; --in-process compares several.",
            ExitCode.USAGE,
        )
    for spec in specs:
        spec.predictor()  # a wrong parameter is reported here, in one sentence
    parameters = {spec.name: spec.parameters for spec in specs if spec.parameters}
    return {
        "WALLTIMED_DATABASE_URL": f"sqlite:///{directory}/history.sqlite3",
        "WALLTIMED_SQLITE_SYNCHRONOUS": "normal",
        "WALLTIMED_TUNING": "off",
        "WALLTIMED_PREDICTORS": msgspec.json.encode(parameters).decode(),
    }


class PrivateService:
    """A running child process and the URL at which it takes requests."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def wait(self) -> None:
        """Wait until the process ends, for example by ctrl-C."""
        self.process.wait()


@contextmanager
def private_service(
    *options: str, settings: Mapping[str, str], quiet: bool = False
) -> "Iterator[PrivateService]":
    """Start `walltimed serve` on a free port; the service ends with the block.

    Args:
        options: further options of `walltimed serve`.
        settings: environment variables; the caller's own settings do not reach the service.
        quiet: whether nothing is shown while it starts.

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
            "WALLTIMED_TUNING": "off",
            **settings,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        with waiting(STARTING, quiet=quiet):
            url = announced(process)
        yield PrivateService(process, url)
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
    """Return the address that the service prints once it accepts connections."""
    line = process.stdout.readline() if process.stdout else ""
    if not line.startswith(ANNOUNCEMENT):
        raise CommandError(
            "The private service did not start; see its message above.", ExitCode.FAILED
        )
    return line.removeprefix(ANNOUNCEMENT).strip()


class RemotePlayer:
    """Several methods of one running service, for ``replay``.

    A single submission is a request of its own, as from a submit filter. Submissions between
    which no run ends are sent together.
    """

    largest_batch = LARGEST_BATCH

    def __init__(self, client: Client, methods: Mapping[str, str]) -> None:
        """Play to ``client``; ``methods`` are names by label."""
        self._client = client
        self._names = dict(methods)

    @property
    def methods(self) -> Sequence[str]:
        """The labels of the methods."""
        return tuple(self._names)

    def predict(self, method: str, submissions: Sequence[Submission]) -> Sequence[Prediction]:
        """Ask the service for predictions of ``method``."""
        name = self._names[method]
        if len(submissions) == 1:
            return [self._client.predict(submissions[0], name)]
        return self._client.predict_batch(submissions, name)

    def observe(self, ended: Sequence[Completion]) -> None:
        """Report the runs to the service."""
        self._client.observe(*ended)

    def note(self, started: Sequence[Completion]) -> None:
        """Ignore starts: a service learns of them from its resource manager."""
