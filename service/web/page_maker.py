"""Makes pages, from the store and from what is told with each question."""

import asyncio
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from predictors.accuracy_groups import UserAccuracy
from service.contract.answers import GroupAnswer
from service.contract.queue_answers import LiveJobDetailAnswer
from service.contract.queue_bodies import QueueQuery
from service.operations.queues.showing import ShowingQueue
from service.operations.requests import ReportingRequests
from service.operations.tuning import TellingRounds
from service.pseudonyms import read_pseudonyms
from service.settings import Settings
from service.store import Store
from service.web.accuracy_page import AccuracyPage
from service.web.api_page import ApiPage
from service.web.assets import Assets
from service.web.frame import Frame
from service.web.now_page import NowPage, ServiceNow
from service.web.queue_page import QueuePage, job_shown
from service.web.remembered import Remembered
from service.web.rendering import Renderer
from service.web.rounds_page import RoundsPage
from service.web.users_page import UsersPage, user_shown
from service.web.what_if_page import WhatIfShown
from service.worker.queues.stored_queues import StoredQueues

NOW_SECONDS, QUEUE_SECONDS, SLOW_SECONDS = 5, 5, 30
"""How often pages are asked for again by their script."""

SAME_SECONDS, MOST_RENDERED = 1.0, 50
"""How long a page of the queue is good for all who would see the same, and how many are kept."""


class PageMaker:
    """Makes every page; each takes the frame around it and what only the service itself knows.

    Args:
        settings: of the service.
        store: that nobody else in this process uses.
    """

    def __init__(self, settings: Settings, store: Store) -> None:
        pseudonyms = read_pseudonyms(settings.pseudonym_key_file)
        rounds, remembered = TellingRounds(store.tunings), Remembered()
        self._renderer = Renderer(Assets())
        self._rendered = Remembered(most=MOST_RENDERED)
        self._now = NowPage(
            settings, store=store, rounds=rounds, remembered=remembered, clock=time.time
        )
        self._accuracy = AccuracyPage(settings, store=store, rounds=rounds, remembered=remembered)
        showing = ShowingQueue(
            settings,
            queue_of=StoredQueues(store.queues).of,
            pseudonyms=pseudonyms,
            clock=time.time,
        )
        self._queue = QueuePage(showing, time.time)
        reporting = ReportingRequests(store, pseudonyms=pseudonyms, clock=time.time)
        self._users = UsersPage(reporting, remembered)
        self._rounds = RoundsPage(rounds)

    def make(self, page: str, told: dict[str, Any]) -> bytes:
        """The page of this name, which is one of the methods below, in UTF-8."""
        text: str = asyncio.run(getattr(self, page)(**told))
        return text.encode()

    async def api(self, frame: Frame, url: str, document: bytes) -> str:
        """Every call of the service, in words; ``document`` is what OpenAPI says of them."""
        return api_page(self._renderer, document).show(frame.visitor, url, frame)

    async def now(self, frame: Frame, url: str, service: ServiceNow) -> str:
        """What there is to see at this moment."""
        return self._renderer.render(
            "now",
            title="Now",
            frame=frame,
            refresh=NOW_SECONDS,
            url=url,
            now=await self._now.show(service),
        )

    async def accuracy(self, frame: Frame, url: str, days: int | None, by: str | None) -> str:
        """How far off the methods were."""
        return self._renderer.render(
            "accuracy",
            title="Accuracy",
            frame=frame,
            refresh=SLOW_SECONDS,
            url=url,
            accuracy=await self._accuracy.show(frame.cluster, frame.visitor, days=days, by=by),
        )

    async def queue(self, frame: Frame, url: str, query: QueueQuery) -> str:
        """The jobs that run and wait."""

        async def rendered() -> str:
            return self._renderer.render(
                "queue",
                title="Queue",
                frame=frame,
                refresh=QUEUE_SECONDS,
                url=url,
                queue=self._queue.show(frame.cluster, frame.visitor, query),
            )

        state = self._queue.state(frame.cluster)
        seen = (frame.visitor, url, frame.cluster, tuple(frame.clusters), query.model_dump_json())
        return await self._rendered.get((seen, state), SAME_SECONDS, rendered)

    async def job(self, frame: Frame, job_id: str, detail: LiveJobDetailAnswer) -> str:
        """One job of the queue."""
        return self._renderer.render(
            "job",
            title=f"Job {job_id}",
            frame=frame,
            refresh=QUEUE_SECONDS,
            shown=job_shown(detail),
        )

    async def what_if(self, frame: Frame, asked: WhatIfShown) -> str:
        """When a job would start, by what is asked for it."""
        return self._renderer.render("what_if", title="What if", frame=frame, asked=asked)

    async def users(self, frame: Frame, url: str, groups: Sequence[GroupAnswer]) -> str:
        """Whose requests are far off."""
        return self._renderer.render(
            "users",
            title="Users",
            frame=frame,
            url=url,
            users=await self._users.show(frame.cluster, frame.visitor, groups),
        )

    async def user(self, frame: Frame, name: str, accuracy: UserAccuracy | None) -> str:
        """One user."""
        report = await self._users.report_of(frame.cluster, name, frame.visitor)
        return self._renderer.render(
            "user",
            title=name,
            frame=frame,
            user=user_shown(name, frame.visitor, accuracy, report),
        )

    async def rounds(self, frame: Frame, url: str) -> str:
        """What rounds of tuning did."""
        return self._renderer.render(
            "rounds",
            title="Rounds",
            frame=frame,
            url=url,
            rounds=await self._rounds.show(frame.cluster),
        )


@lru_cache(maxsize=1)
def api_page(renderer: Renderer, document: bytes) -> ApiPage:
    """The page of the API; its document changes with a release only."""
    return ApiPage(renderer, msgspec.json.decode(document))
