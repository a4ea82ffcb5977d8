"""Live queues are played in the test's own process: starting another takes seconds each time."""

import pytest
from handed_queues import SNAPSHOT


@pytest.fixture(autouse=True)
def _played_here(request):
    """No process is started, unless the test is marked to need one."""
    if "real_process" not in request.fixturenames:
        request.getfixturevalue("played_here")


@pytest.fixture
def real_process():
    """Asked for by a test that is about the process itself."""


@pytest.fixture
def live(serve, sqlite_url):
    """A service that thinks that the queues below are of now."""
    return serve(sqlite_url, snapshot_max_age_seconds=1e12)


@pytest.fixture
def another(serve, sqlite_url):
    """Starts another worker of the same site, which knows of the queue soon."""

    def start():
        other = serve(sqlite_url, snapshot_max_age_seconds=1e12)
        other.wait_until(lambda: other.get(SNAPSHOT).status_code == 200)
        return other

    return start
