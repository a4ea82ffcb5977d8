"""Live queues are played in the test's own process: starting another takes seconds each time."""

import pytest


@pytest.fixture(autouse=True)
def _played_here(request):
    """No process is started, unless the test is marked to need one."""
    if "real_process" not in request.fixturenames:
        request.getfixturevalue("played_here")


@pytest.fixture
def real_process():
    """Asked for by a test that is about the process itself."""
