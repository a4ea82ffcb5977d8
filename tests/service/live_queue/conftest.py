"""Live queues are played in the test's own process: starting another takes seconds each time."""

import asyncio

import pytest

from service.worker.processes import ForecastProcess


@pytest.fixture(autouse=True)
def played_here(request, monkeypatch):
    """No process is started, unless the test is marked to need one."""
    if "real_process" in request.fixturenames:
        return

    async def run(_self, function, *arguments):
        return await asyncio.to_thread(function, *arguments)

    monkeypatch.setattr(ForecastProcess, "run", run)


@pytest.fixture
def real_process():
    """Asked for by a test that is about the process itself."""
