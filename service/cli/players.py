"""The players to which ``walltimed replay`` plays a log."""

from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from service.cli.console import CommandError, ExitCode
from service.cli.private_service import private_service

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.trace_replay import Player


@contextmanager
def opened(
    specs: "Sequence[MethodSpec]", *, url: str | None, token: str | None, in_process: bool
) -> "Iterator[Player]":
    """The player: predictors in this process, a running service, or a private service."""
    from simulator.replay.remote import Client, RemotePlayer
    from simulator.replay.trace_replay import InProcess

    if in_process:
        if url:
            raise CommandError("--in-process and --url exclude each other.", ExitCode.USAGE)
        yield InProcess({spec.label: spec.predictor() for spec in specs})
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
        private_service(settings=private_settings(specs, directory)) as service,
        Client(service.url) as client,
    ):
        client.wait_until_ready()
        yield RemotePlayer(client, names)


def private_settings(specs: "Sequence[MethodSpec]", directory: str) -> dict[str, str]:
    """Settings of a service for one replay.

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
        "WALLTIMED_TUNING": "on-request",
        "WALLTIMED_PREDICTORS": msgspec.json.encode(parameters).decode(),
    }
