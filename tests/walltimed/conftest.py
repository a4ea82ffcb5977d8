"""A log, and a running service."""

import pytest
from workloads import synthetic

import walltimed
from simulator.cli.players import private_service
from terminal.client import Client as Connection


@pytest.fixture(scope="session")
def log_file(tmp_path_factory):
    """A file of 300 jobs."""
    return synthetic(tmp_path_factory.mktemp("log") / "log.swf.gz", jobs=300, seed=2)


@pytest.fixture(scope="session")
def log(log_file):
    return walltimed.read_log(log_file)


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    """The address of a service with an empty history."""
    database = tmp_path_factory.mktemp("service") / "history.sqlite3"
    settings = {
        "WALLTIMED_DATABASE_URL": f"sqlite:///{database}",
        "WALLTIMED_SQLITE_SYNCHRONOUS": "normal",
    }
    with private_service(settings=settings) as running:
        with Connection(running.url) as client:
            client.wait_until_ready()
        yield running.url
