"""Services and commands inside the test process."""

import asyncio
from contextlib import ExitStack

import pytest
from asgi_client import InProcess
from command_line import refused, walltimed  # noqa: F401 - fixtures

from service.worker.processes import ForecastProcess
from terminal.client import Client


@pytest.fixture
def serve():
    """Starts services; they stop at the end of the test, or by leaving a ``with`` block."""
    with ExitStack() as stack:

        def start(url, **options):
            return stack.enter_context(InProcess(url, **options))

        yield start


@pytest.fixture
def service(serve, sqlite_url):
    """A service on an empty SQLite store."""
    return serve(sqlite_url)


@pytest.fixture(scope="session")
def unchanged(lasting_url):
    """A service that is shared by tests that change nothing in it."""
    with InProcess(lasting_url()) as service:
        yield service


@pytest.fixture
def played_here(monkeypatch):
    """Queues are played in this process."""

    async def run(_self, function, *arguments):
        return await asyncio.to_thread(function, *arguments)

    monkeypatch.setattr(ForecastProcess, "run", run)


@pytest.fixture
def against(walltimed, monkeypatch, tmp_path, played_here):  # noqa: ARG001, F811 - fixtures
    """Run a command against a service in this process; None is a service that is away."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("WALLTIMED_MUNGE_SOCKET", str(tmp_path / "no-munged"))

    def run(service, *command):
        def exchange(client, verb, path, payload):
            if service is None:
                raise ConnectionRefusedError
            headers = {key: text for key, text in client._headers.items() if key != "User-Agent"}
            answer = service.request(verb, path, content=payload, headers=headers)
            return answer.content, answer.status_code

        with monkeypatch.context() as patch:
            patch.setattr(Client, "_exchange", exchange)
            return walltimed(*command)

    return run
