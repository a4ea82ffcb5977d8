"""How learning and answering share the event loop."""

import asyncio

import pytest

from service.settings import Settings
from service.worker.log_follower import COMPLETIONS_PER_TURN, LogFollower
from service.worker.tuning_rounds import TuningKeeper


class Log:
    """A log of so many completions, and of what was learned from it."""

    error = None
    late = 0

    def __init__(self, completions):
        self.unread = list(range(completions))
        self.learned = []

    def has_news(self):
        return bool(self.unread)

    def read(self, limit):
        read, self.unread = self.unread[:limit], self.unread[limit:]
        return read

    def apply(self, completions):
        self.learned += completions


@pytest.fixture
def following():
    def follow(log):
        follower = LogFollower(
            log, before_learning=lambda: None, has_to_store=lambda: False, clock=lambda: 0.0
        )
        follower.start(log)
        return follower

    return follow


def test_whoever_asks_is_answered_from_what_is_durable(following):
    async def ask():
        log = Log(3)
        following(log).look()
        return log.learned

    assert asyncio.run(ask()) == [0, 1, 2]


def test_all_who_ask_in_a_turn_wait_for_one_slice(following):
    async def ask():
        log = Log(3 * COMPLETIONS_PER_TURN)
        follower = following(log)
        follower.look()
        follower.look()
        in_one_turn = len(log.learned)
        await asyncio.sleep(0)
        follower.look()
        return in_one_turn, len(log.learned)

    assert asyncio.run(ask()) == (COMPLETIONS_PER_TURN, 2 * COMPLETIONS_PER_TURN)


def test_nobody_waits_for_a_slice_while_the_log_is_far_ahead(following):
    async def ask():
        log = Log(100 * COMPLETIONS_PER_TURN)
        follower = following(log)
        task = asyncio.create_task(follower.run())
        await asyncio.sleep(0)
        before = len(log.learned)
        for _ in range(10):
            follower.look()
        asked = len(log.learned)
        for _ in range(1000):
            await asyncio.sleep(0.0001)
            if not follower.is_catching_up:
                break
        task.cancel()
        return follower.is_catching_up, before, asked, log.learned

    catching_up, before, asked, learned = asyncio.run(ask())
    assert before == asked == COMPLETIONS_PER_TURN
    assert learned == list(range(100 * COMPLETIONS_PER_TURN))
    assert not catching_up


def test_others_have_half_of_the_time_while_somebody_asks(following):
    """Between two slices the loop comes round for other work many times, not once."""

    async def turns(*, asking):
        log = Log(5 * COMPLETIONS_PER_TURN)
        follower = following(log)
        task = asyncio.create_task(follower.run())
        turns = 0
        while log.unread:
            if asking:
                follower.look()
            await asyncio.sleep(0)
            turns += 1
        task.cancel()
        return turns

    assert asyncio.run(turns(asking=False)) <= 10
    assert asyncio.run(turns(asking=True)) > 20


@pytest.mark.parametrize("catching_up", [True, False])
def test_no_round_of_tuning_becomes_due_while_completions_pour_in(monkeypatch, catching_up):
    monkeypatch.setattr("service.worker.tuning_rounds.ROUND_SECONDS", 0.0)
    looked = []

    class Tunings:
        def is_due(self, cluster, _plan):
            looked.append(cluster)
            return False

    class Store:
        tunings = Tunings()

    class Live:
        clusters = ("here",)

    async def look():
        keeper = TuningKeeper(
            Store(),
            Live(),
            Settings(tuning="automatic"),
            is_catching_up=lambda: turns.append(1) or catching_up,
            clock=lambda: 0.0,
        )
        task = asyncio.create_task(keeper.run_rounds())
        while len(turns) < 3:  # noqa: ASYNC110 - the keeper has no event to wait for
            await asyncio.sleep(0)
        task.cancel()

    turns = []
    asyncio.run(look())
    assert bool(looked) is not catching_up
