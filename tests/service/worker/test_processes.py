"""Forecasts are made in a process of their own, within a time that counts once it is ready."""

import asyncio
import os
import threading
import time
from functools import partial

import pytest
from patience import BUSY_SECONDS, eventually

from service.errors import ForecastsStartingError, ForecastTooLongError
from service.worker.processes import (
    LATE_SECONDS,
    MOST_THREADS,
    ForecastProcess,
    bound_threads,
)


@pytest.fixture
def process():
    """A process with time enough, which compiles nothing and so needs about a second."""
    process = ForecastProcess(60.0, prepare=partial(time.sleep, 1))
    process.start()  # the first spawn of a test run starts the template of all others, too
    process.close()
    yield process
    process.close()


def test_a_process_that_was_started_before_answers_by_itself(process):
    started = process.start()
    assert process.start() is started
    assert asyncio.run(process.run(os.getpid)) != os.getpid()


def test_a_forecast_while_the_process_starts_is_told_so_and_not_to_ask_for_less(process):
    process.limit = 0.01

    async def first() -> float:
        began = time.monotonic()
        with pytest.raises(ForecastsStartingError, match="is starting: ask again in a second"):
            await process.run(time.sleep, 0)
        return time.monotonic() - began

    assert asyncio.run(first()) < process.limit + LATE_SECONDS + 1
    pool = process.start()
    process.limit = 60.0
    asyncio.run(process.run(os.getpid))
    assert process.start() is pool, "the process was killed although it only started"


def test_the_time_of_a_forecast_counts_from_when_the_process_is_ready():
    process = ForecastProcess(3.0, prepare=partial(time.sleep, 2))

    async def first() -> float:
        began = time.monotonic()
        while True:  # spawning alone may take longer than the limit on a busy machine
            try:
                await process.run(time.sleep, 2)
            except ForecastsStartingError:
                continue
            return time.monotonic() - began

    try:
        assert asyncio.run(first()) > 4.0, "loading and forecast together exceed the limit"
    finally:
        process.close()


def test_a_forecast_that_takes_too_long_is_killed_and_the_next_process_starts_at_once(process):
    async def both() -> tuple[int, float, int]:
        before = await process.run(os.getpid)
        began = time.monotonic()
        process.limit = 0.3
        with pytest.raises(ForecastTooLongError):
            await process.run(time.sleep, 60)
        took = time.monotonic() - began
        process.limit = 60.0
        assert process._pool is not None, "nothing has been started anew"
        return before, took, await process.run(os.getpid)

    before, took, after = asyncio.run(both())
    assert took < 0.3 + BUSY_SECONDS
    assert before != after


def test_a_forecast_is_made_again_if_the_process_died_of_another(process):
    async def after_a_death() -> int:
        victim = await process.run(os.getpid)
        os.kill(victim, 9)
        return await process.run(os.getpid)

    assert asyncio.run(after_a_death())


def test_the_end_of_the_service_does_not_wait_for_a_process_that_prepares():
    process = ForecastProcess(60.0, prepare=partial(time.sleep, 300))
    assert not process._children, "it starts with the first call"
    process.start()
    (child,) = process._children
    process.close()
    # The executor's own thread waits for the child, too: who comes second learns it a moment later.
    eventually(lambda: child.exitcode == -9, seconds=30)


def test_threads_that_wait_for_the_database_do_not_grow_with_the_processors(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 256)
    waiting, all_wait = set[int](), threading.Event()

    def wait() -> None:
        waiting.add(threading.get_ident())
        if len(waiting) == MOST_THREADS:
            all_wait.set()
        all_wait.wait(30.0)

    async def calls() -> None:
        bound_threads(asyncio.get_running_loop())
        await asyncio.gather(*(asyncio.to_thread(wait) for _ in range(100)))

    asyncio.run(calls())
    assert len(waiting) == MOST_THREADS
