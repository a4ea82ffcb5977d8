"""`kill -9` during concurrent ingestion loses nothing acknowledged and doubles nothing."""

import asyncio
import random
from collections import Counter
from itertools import count

import httpx
import pytest
from running_service import Service, completion
from sqlalchemy import NullPool, create_engine, text

pytestmark = [pytest.mark.lengthy(25), pytest.mark.acceptance, pytest.mark.timeout(1800)]

KILLS, KILLS_OF_A_LONG_ATTACK = 8, 150
"""On each of the two databases."""

CLIENTS = 8
ACKNOWLEDGEMENTS = range(1, 60)
"""How many posts are acknowledged before the kill, drawn anew for each round."""

LONGEST_MOMENT = 0.01
"""Seconds; the kill comes at a random moment after the last of them, not at its commit."""


class Ledger:
    """What was sent, what was acknowledged, and what has to be sent again."""

    def __init__(self) -> None:
        self.numbers = count()
        self.acknowledged: list[str] = []
        self.unsure: list[list[dict]] = []
        self.unanswered = 0
        self.posts_left = 0
        self.enough = asyncio.Event()

    def next_batch(self) -> list[dict]:
        """A batch that was cut off by a kill, else a new one of 1 to 30 runs."""
        if self.unsure:
            return self.unsure.pop()
        return [
            completion(f"job-{next(self.numbers)}") for _ in range(random.choice((1, 1, 1, 30)))
        ]

    async def post_until_cut(self, client: httpx.AsyncClient) -> None:
        """Post batch after batch until the service is no more."""
        while True:
            batch = self.next_batch()
            try:
                answer = await client.post("/v1/completions", json={"completions": batch})
            except httpx.TransportError:
                self.unsure.append(batch)
                self.unanswered += 1
                return
            assert answer.status_code == httpx.codes.OK, answer.text
            counts = answer.json()
            assert counts["accepted"] + counts["duplicates"] == len(batch)
            self.acknowledged += [run["job_id"] for run in batch]
            self.posts_left -= 1
            if self.posts_left <= 0:
                self.enough.set()


async def one_life(ledger: Ledger, service: Service) -> None:
    """Many clients post; at a random moment the service is killed."""
    transport = httpx.AsyncHTTPTransport(uds=str(service.socket))
    ledger.posts_left, ledger.enough = random.choice(ACKNOWLEDGEMENTS), asyncio.Event()
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://walltimed") as client,
        asyncio.TaskGroup() as clients,
    ):
        for _ in range(CLIENTS):
            clients.create_task(ledger.post_until_cut(client))
        await asyncio.wait_for(ledger.enough.wait(), timeout=60.0)
        await asyncio.sleep(random.uniform(0.0, LONGEST_MOMENT))
        service.process.kill()


def test_nothing_acknowledged_is_lost_and_nothing_counts_twice(
    store_url, is_long, tell, monkeypatch
):
    ledger, kills = Ledger(), KILLS_OF_A_LONG_ATTACK if is_long else KILLS
    # The process of a round outlives its service, and takes longer than a life.
    monkeypatch.setenv("WALLTIMED_TUNING", "automatic" if is_long else "off")
    for _ in range(kills):
        with Service(store_url) as service:
            asyncio.run(one_life(ledger, service))

    tell(f"{kills} kills, {len(ledger.acknowledged):,} completions acknowledged")
    times_stored = Counter(stored_job_ids(store_url))
    assert set(ledger.acknowledged) <= times_stored.keys()
    assert set(times_stored.values()) == {1}
    assert ledger.unanswered >= kills, "the kills came when nothing was under way"


def stored_job_ids(url: str) -> list[str]:
    """The job ids in the database, read past the code under test."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        return list(connection.scalars(text("SELECT job_id FROM completions")))
