"""All pages of the service, rendered for one visitor."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from predictors.jobs import DEFAULT_CLUSTER
from service.contract.queue_bodies import QueueQuery
from service.operations.queues.showing import ShowingQueues
from service.operations.queues.what_if import WhatIf
from service.operations.ranking import Ranking
from service.operations.requests import ReportingRequests
from service.operations.tuning import TuningRounds
from service.page.accuracy_page import AccuracyPage
from service.page.api_page import ApiPage
from service.page.assets import Assets
from service.page.frame import Frame, Visitor
from service.page.now_page import NowPage
from service.page.queue_page import QueuePage
from service.page.remembered import Remembered
from service.page.rendering import Renderer
from service.page.rounds_page import RoundsPage
from service.page.users_page import UsersPage
from service.page.what_if_page import WhatIfForm, WhatIfPage
from service.worker.worker import Worker

NOW_SECONDS, QUEUE_SECONDS, SLOW_SECONDS = 5, 5, 30
"""How often pages are asked for again by their script."""

SAME_SECONDS, MOST_RENDERED = 1.0, 50
"""How long a page of the queue is good for all who would see the same, and how many are kept."""


class Site:
    """The pages.

    Args:
        worker: whose state is shown.
        queues: shows live queues.
        what_if: tells when a job would start.
        ranking: knows the accuracy of users' requests.
        reporting: compares requests with runtimes.
        rounds: tells of rounds of tuning.
        document: makes the OpenAPI document.
    """

    def __init__(  # noqa: PLR0913 - each is an operation, named where it is handed over
        self,
        worker: Worker,
        *,
        queues: ShowingQueues,
        what_if: WhatIf,
        ranking: Ranking,
        reporting: ReportingRequests,
        rounds: TuningRounds,
        document: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._worker = worker
        self._document = document
        self.assets = Assets()
        self._renderer = Renderer(self.assets)
        remembered = Remembered()
        self._rendered = Remembered(most=MOST_RENDERED)
        self._queues = queues
        self._now = NowPage(worker, queues=queues, rounds=rounds, remembered=remembered)
        self._accuracy = AccuracyPage(
            worker.settings, store=worker.store, rounds=rounds, remembered=remembered
        )
        self._queue = QueuePage(queues, worker.clock)
        self._what_if = WhatIfPage(what_if)
        self._users = UsersPage(
            ranking=ranking,
            reporting=reporting,
            follower=worker.follower,
            pseudonym=worker.pseudonyms.user,
            remembered=remembered,
        )
        self._rounds = RoundsPage(rounds)

    @cached_property
    def _api(self) -> ApiPage:
        return ApiPage(self._renderer, self._document())

    async def api(self, visitor: Visitor, url: str) -> str:
        """Every call of the service, in words."""
        frame = self._frame(visitor, "/docs", None)
        api = await asyncio.to_thread(lambda: self._api)
        return await api.show(visitor, url, frame)

    async def now(self, visitor: Visitor, url: str) -> str:
        """What there is to see at this moment."""
        return await self._renderer.render(
            "now",
            title="Now",
            frame=self._frame(visitor, "/", None),
            refresh=NOW_SECONDS,
            url=url,
            now=await self._now.show(),
        )

    async def accuracy(
        self, visitor: Visitor, url: str, *, cluster: str | None, days: int | None, by: str | None
    ) -> str:
        """How far off the methods were."""
        frame = self._frame(visitor, "/accuracy", cluster)
        return await self._renderer.render(
            "accuracy",
            title="Accuracy",
            frame=frame,
            refresh=SLOW_SECONDS,
            url=url,
            accuracy=await self._accuracy.show(frame.cluster, visitor, days=days, by=by),
        )

    async def queue(
        self, visitor: Visitor, url: str, *, cluster: str | None, query: QueueQuery
    ) -> str:
        """The jobs that run and wait."""
        frame = self._frame(visitor, "/queue", cluster)

        async def rendered() -> str:
            return await self._renderer.render(
                "queue",
                title="Queue",
                frame=frame,
                refresh=QUEUE_SECONDS,
                url=url,
                queue=self._queue.show(frame.cluster, visitor, query),
            )

        state = self._queue.state(frame.cluster)
        key = (visitor, url, frame.cluster, tuple(frame.clusters), query.model_dump_json(), state)
        return await self._rendered.get(key, SAME_SECONDS, rendered)

    async def job(self, visitor: Visitor, *, cluster: str | None, job_id: str) -> str:
        """One job of the queue."""
        frame = self._frame(visitor, "/queue", cluster)
        return await self._renderer.render(
            "job",
            title=f"Job {job_id}",
            frame=frame,
            refresh=QUEUE_SECONDS,
            shown=self._queue.job(frame.cluster, job_id, visitor),
        )

    async def what_if(self, visitor: Visitor, *, cluster: str | None, form: WhatIfForm) -> str:
        """When a job would start, by what is asked for it."""
        frame = self._frame(visitor, "/queue", cluster)
        return await self._renderer.render(
            "what_if",
            title="What if",
            frame=frame,
            asked=await self._what_if.show(frame.cluster, visitor, form),
        )

    async def users(self, visitor: Visitor, url: str, *, cluster: str | None) -> str:
        """Whose requests are far off; a visitor who may see no other user sees their own."""
        own = visitor.caller.only
        if own is not None:
            return await self.user(visitor, cluster=cluster, name=own)
        frame = self._frame(visitor, "/users", cluster)
        return await self._renderer.render(
            "users",
            title="Users",
            frame=frame,
            url=url,
            users=await self._users.show(frame.cluster, visitor),
        )

    async def user(self, visitor: Visitor, *, cluster: str | None, name: str) -> str:
        """One user."""
        frame = self._frame(visitor, "/users", cluster)
        return await self._renderer.render(
            "user",
            title=name,
            frame=frame,
            user=await self._users.one(frame.cluster, name, visitor),
        )

    async def rounds(self, visitor: Visitor, url: str, *, cluster: str | None) -> str:
        """What rounds of tuning did."""
        frame = self._frame(visitor, "/rounds", cluster)
        return await self._renderer.render(
            "rounds",
            title="Rounds",
            frame=frame,
            url=url,
            rounds=await self._rounds.show(frame.cluster),
        )

    async def login(self, *, to: str, refused: str | None) -> str:
        """The form that asks for a token.

        Args:
            to: the page to go to afterwards.
            refused: why the last attempt failed.
        """
        return await self._renderer.render("login", title="Log in", to=to, refused=refused)

    async def problem(self, title: str, detail: str) -> str:
        """A page in the place of one that cannot be shown."""
        return await self._renderer.render("problem", title=title, detail=detail)

    def _frame(self, visitor: Visitor, path: str, cluster: str | None) -> Frame:
        clusters = self._clusters()
        chosen = cluster or (clusters[0] if clusters else DEFAULT_CLUSTER)
        return Frame(visitor, path, chosen, clusters)

    def _clusters(self) -> Sequence[str]:
        """Those with a history and those with a queue, the usual one first."""
        named = {*self._worker.live.names, *(q.cluster for q in self._queues.queues().queues)}
        return sorted(named, key=lambda name: (name != DEFAULT_CLUSTER, name))
