"""Services inside the test process."""

from contextlib import ExitStack

import pytest
from in_process import InProcess


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
