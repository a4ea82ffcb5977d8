"""Services and commands inside the test process."""

import logging
import shutil
from contextlib import ExitStack

import pytest
import structlog
from asgi_client import InProcess
from command_line import refused, walltimed  # noqa: F401 - fixtures


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
def unchanged(tmp_path_factory, sqlite_template):
    """A service that is shared by tests that change nothing in it."""
    file = shutil.copy(sqlite_template, tmp_path_factory.mktemp("unchanged") / "walltimed.sqlite3")
    with InProcess(f"sqlite:///{file}") as service:
        yield service


@pytest.fixture(autouse=True)
def own_logging():
    """Whatever is configured of logging ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()
