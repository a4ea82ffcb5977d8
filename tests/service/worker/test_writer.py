"""The writer: one commit for all who wait, durable before acknowledged, nobody harmed by others."""

import asyncio
import threading

import pytest
from patience import BUSY_SECONDS
from runs import a_run, predicted, reported
from sqlalchemy.exc import StatementError

from service.store import (
    Ingested,
    RefusedRecordError,
    StoreFullError,
    StoreUnavailableError,
)
from service.worker import writer as module
from service.worker.writer import Writer

NEW = Ingested(accepted=1, duplicates=0)
BAD = {"requested_processors": 1 << 63}


class Stubborn:
    """A store whose writes can be held back, or fail, before they reach the real one."""

    def __init__(self, store) -> None:
        self._store = store
        self.may_write = threading.Event()
        self.may_write.set()
        self.is_asked = threading.Event()
        self.failure = None
        self.written = []

    def write(self, groups, predictions=()):
        self.is_asked.set()
        self.may_write.wait()
        if self.failure:
            raise self.failure
        counts = self._store.write(groups, predictions)
        self.written.append((len(groups), len(predictions)))
        return counts

    def __getattr__(self, name):
        return getattr(self._store, name)


@pytest.fixture
def stubborn(store):
    return Stubborn(store)


@pytest.fixture
def writer(stubborn):
    opened = Writer(stubborn, clock=lambda: 0.0)
    opened.start()
    yield opened
    stubborn.may_write.set()
    opened.close()  # which tests may have done


def post(writer, *groups):
    """What each group's poster is told, all posting at once."""

    async def all_at_once():
        waiting = [writer.acknowledged(group) for group in groups]
        return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(all_at_once())


def ones(*jobs, **known):
    return [reported(a_run(str(job), **known)) for job in jobs]


async def held(stubborn, writer):
    """Post once and wait until the writer has it, so that what follows has to gather."""
    stubborn.is_asked.clear()
    first = asyncio.create_task(writer.acknowledged(*ones("first")))
    await asyncio.to_thread(stubborn.is_asked.wait)
    return first


def test_whoever_posts_during_a_commit_shares_the_next_one(stubborn, writer):
    async def scenario():
        stubborn.may_write.clear()
        first = await held(stubborn, writer)
        others = [asyncio.create_task(writer.acknowledged(group)) for group in ones(*range(64))]
        await asyncio.sleep(0)
        assert writer.queued == 64
        stubborn.may_write.set()
        assert await asyncio.gather(first, *others) == [NEW] * 65

    asyncio.run(scenario())
    assert stubborn.written == [(1, 0), (64, 0)]
    assert (writer.commits, writer.queued) == (2, 0)


def test_a_commit_wakes_the_event_loop_once(stubborn, writer):
    async def scenario():
        loop = asyncio.get_running_loop()
        stubborn.may_write.clear()
        first = await held(stubborn, writer)
        others = [asyncio.create_task(writer.acknowledged(group)) for group in ones(*range(20))]
        await asyncio.sleep(0)
        wake, wakes = loop.call_soon_threadsafe, []
        loop.call_soon_threadsafe = lambda *call: (wakes.append(call), wake(*call))
        stubborn.may_write.set()
        await asyncio.gather(first, *others)
        return len(wakes)

    assert asyncio.run(scenario()) == 2


def test_groups_are_counted_each_for_itself(writer):
    group = reported(a_run("1"), a_run("2"))
    assert post(writer, group) == [Ingested(accepted=2, duplicates=0)]
    counts = post(writer, group, reported(a_run("2"), a_run("3")))
    assert counts == [Ingested(accepted=0, duplicates=2), Ingested(accepted=1, duplicates=1)]


def test_what_comes_before_the_acknowledgement_comes_before_it(store):
    seen = []
    writer = Writer(store)
    writer.before_acknowledging = lambda: seen.append(store.past_runs.count())
    writer.start()
    assert post(writer, *ones("1")) == [NEW]
    assert seen == [1]
    writer.close()


def test_a_prediction_is_written_before_the_completion_that_follows_it(writer, store):
    for job in range(20):
        run = a_run(str(job))
        writer.record(predicted(f"p{job}", run, job_id=str(job)))
        post(writer, reported(run))
    assert store.scores.of_methods("default")[0].jobs == 20


def test_predictions_are_written_although_no_completion_comes(stubborn, writer):
    writer.record(predicted("p", a_run("1"), job_id="1"))
    stubborn.is_asked.clear()
    assert stubborn.is_asked.wait(timeout=60)
    writer.close()
    assert stubborn.written == [(0, 1)]


def test_a_refused_completion_harms_nobody_else(writer, store):
    groups = [*ones(1, 2, 3), reported(a_run("bad", **BAD)), *ones(4, 5)]
    *good, bad, four, five = post(writer, *groups)
    assert [*good, four, five] == [NEW] * 5
    assert isinstance(bad, RefusedRecordError)
    assert store.past_runs.count() == 5


def test_a_refused_prediction_is_dropped_alone(writer, store):
    runs = [a_run(str(job)) for job in range(7)]
    for job, run in enumerate(runs):
        known = BAD if job == 3 else {}
        writer.record(predicted(f"p{job}", run, job_id=str(job), **known))
    assert post(writer, *(reported(run) for run in runs)) == [NEW] * 7
    assert store.scores.of_methods("default")[0].jobs == 6
    assert writer.dropped_predictions == 1


@pytest.mark.parametrize("error", [StoreUnavailableError("away"), StoreFullError("full")])
def test_a_database_that_fails_is_no_acknowledgement(stubborn, writer, store, error):
    stubborn.failure = error
    answers = post(writer, *ones(1, 2))
    assert [(type(answer), str(answer)) for answer in answers] == [(type(error), str(error))] * 2
    assert answers[0] is not answers[1]
    assert writer.failure is error
    stubborn.failure = None
    assert post(writer, *ones(1, 2)) == [NEW] * 2
    assert writer.failure is None
    assert store.past_runs.count() == 2


def test_predictions_outlast_a_database_that_was_away(stubborn, writer, store):
    run = a_run("1")
    stubborn.failure = StoreUnavailableError("away")
    writer.record(predicted("p", run, job_id="1"))
    post(writer, *ones("other"))
    stubborn.failure = None
    assert post(writer, reported(run)) == [NEW]
    assert store.scores.of_methods("default")[0].jobs == 1
    assert writer.dropped_predictions == 0


def test_an_error_that_nobody_foresaw_reaches_the_waiting_and_stops_nothing(stubborn, writer):
    stubborn.failure = ZeroDivisionError("a mistake")
    (answer,) = post(writer, *ones(1))
    assert isinstance(answer, ZeroDivisionError)
    stubborn.failure = None
    assert post(writer, *ones(1)) == [NEW]


def test_an_error_that_cannot_be_made_again_reaches_all_who_wait(stubborn, writer):
    stubborn.failure = StatementError("a mistake", "SELECT 1", (), ValueError())

    async def both():
        waiting = [writer.acknowledged(group) for group in ones(1, 2)]
        async with asyncio.timeout(BUSY_SECONDS):
            return await asyncio.gather(*waiting, return_exceptions=True)

    told = [str(answer).partition("\n")[0] for answer in asyncio.run(both())]
    assert told == ["StatementError: a mistake"] * 2


def test_too_long_a_queue_turns_completions_away(stubborn, writer, monkeypatch):
    monkeypatch.setattr(module, "COMPLETIONS_QUEUED", 3)

    async def scenario():
        stubborn.may_write.clear()
        first = await held(stubborn, writer)
        others = [asyncio.create_task(writer.acknowledged(group)) for group in ones(*range(3))]
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailableError, match="3 completions"):
            await writer.acknowledged(*ones("one too many"))
        stubborn.may_write.set()
        return await asyncio.gather(first, *others)

    assert asyncio.run(scenario()) == [NEW] * 4


def test_a_group_larger_than_the_queue_is_taken_by_an_idle_writer(writer, monkeypatch):
    monkeypatch.setattr(module, "COMPLETIONS_QUEUED", 3)
    group = reported(*(a_run(str(job)) for job in range(5)))
    assert post(writer, group) == [Ingested(accepted=5, duplicates=0)]


def test_predictions_beyond_the_buffer_are_dropped_and_counted(stubborn, writer, monkeypatch):
    monkeypatch.setattr(module, "PREDICTIONS_BUFFERED", 5)
    stubborn.may_write.clear()
    for job in range(100):
        writer.record(predicted(f"p{job}", a_run(str(job))))
    stubborn.may_write.set()
    writer.close()
    assert (
        sum(predictions for _, predictions in stubborn.written) + writer.dropped_predictions == 100
    )
    assert writer.dropped_predictions >= 90


def test_somebody_who_went_away_delays_nobody(stubborn, writer, store):
    async def scenario():
        stubborn.may_write.clear()
        first = await held(stubborn, writer)
        gone, stays = (asyncio.create_task(writer.acknowledged(group)) for group in ones(1, 2))
        await asyncio.sleep(0)
        gone.cancel()
        stubborn.may_write.set()
        return await asyncio.gather(first, stays)

    assert asyncio.run(scenario()) == [NEW] * 2
    assert store.past_runs.count() == 3


def test_closing_commits_what_is_queued(writer, store):
    run = a_run("1")
    writer.record(predicted("p", run, job_id="1"))
    writer.close()
    store.write([reported(run)])
    assert store.scores.of_methods("default")[0].jobs == 1


def test_closing_does_not_wait_for_a_database_that_is_away(stubborn, writer):
    stubborn.failure = StoreUnavailableError("away")
    writer.record(predicted("p", a_run("1")))
    writer.close()
    assert writer.dropped_predictions == 1


def test_what_cannot_be_dropped_does_not_end_the_writer(stubborn, monkeypatch):
    asked = threading.Event()

    def fails(_before):
        asked.set()
        raise ZeroDivisionError

    monkeypatch.setattr(stubborn, "drop_stale_predictions", fails, raising=False)
    writer = Writer(stubborn, clock=lambda: 0.0)
    writer.start()
    assert post(writer, *ones("1")) == [NEW]
    assert asked.wait(30)
    assert post(writer, *ones("2")) == [NEW]
    writer.close()


def test_a_closed_writer_takes_nothing(writer):
    writer.close()
    (answer,) = post(writer, *ones(1))
    assert isinstance(answer, StoreUnavailableError)
    writer.record(predicted("p", a_run("1")))
    assert writer.dropped_predictions == 1


def test_predictions_whose_job_never_ended_are_forgotten_in_time(store):
    run = a_run("1")
    store.write(
        [], [predicted("old", run, recorded_at=100.0), predicted("new", run, recorded_at=900.0)]
    )
    writer = Writer(store, retention_seconds=500.0, clock=lambda: 1000.0)
    writer.start()
    post(writer, *ones("other"))
    writer.close()
    assert store.drop_stale_predictions(1e12) == 1
