"""All pages of the service: finds out what only the service knows, and has each page made."""

import asyncio
from collections.abc import Callable
from typing import Any

from predictors.jobs import DEFAULT_CLUSTER
from service.contract.queue_bodies import QueueQuery
from service.operations.queues.showing import ShowingQueues
from service.operations.queues.what_if import WhatIf
from service.operations.ranking import Ranking
from service.web.assets import Assets
from service.web.attention import ServiceFacts
from service.web.frame import Frame, Visitor
from service.web.now_page import ServiceNow
from service.web.page_process import PageProcess
from service.web.rendering import Renderer
from service.web.what_if_page import WhatIfForm, WhatIfPage
from service.worker.worker import Worker


class Site:
    """The pages.

    Each is made in a process of its own, from the store; what is in the memory of this process is
    told to it. Pages that have to be there without that process are made here.

    Args:
        worker: whose state is shown.
        process: makes the pages.
        queues: shows live queues.
        what_if: tells when a job would start.
        ranking: knows the accuracy of users' requests.
        document: writes the OpenAPI document.
    """

    def __init__(  # noqa: PLR0913 - each is a part of the service, named where it is handed over
        self,
        worker: Worker,
        *,
        process: PageProcess,
        queues: ShowingQueues,
        what_if: WhatIf,
        ranking: Ranking,
        document: Callable[[], bytes],
    ) -> None:
        self._worker = worker
        self._process = process
        self._queues = queues
        self._what_if = WhatIfPage(what_if)
        self._ranking = ranking
        self._document = document
        self.assets = Assets()
        self._renderer = Renderer(self.assets)

    async def api(self, visitor: Visitor, url: str, *, cluster: str | None) -> bytes:
        """Every call of the service, in words."""
        document = await asyncio.to_thread(self._document)
        frame = self._frame(visitor, "/docs", cluster)
        return await self._process.make("api", frame=frame, url=url, document=document)

    async def now(self, visitor: Visitor, url: str, *, cluster: str | None) -> bytes:
        """What there is to see at this moment."""
        frame = self._frame(visitor, "/", cluster)
        return await self._process.make("now", frame=frame, url=url, service=self._service())

    async def accuracy(
        self, visitor: Visitor, url: str, *, cluster: str | None, days: int | None, by: str | None
    ) -> bytes:
        """How far off the methods were."""
        frame = self._frame(visitor, "/accuracy", cluster)
        return await self._process.make("accuracy", frame=frame, url=url, days=days, by=by)

    async def queue(
        self, visitor: Visitor, url: str, *, cluster: str | None, query: QueueQuery
    ) -> bytes:
        """The jobs that run and wait."""
        frame = self._frame(visitor, "/queue", cluster)
        return await self._process.make("queue", frame=frame, url=url, query=query)

    async def job(self, visitor: Visitor, *, cluster: str | None, job_id: str) -> bytes:
        """One job of the queue.

        Raises:
            UnknownQueueError: there is no such job, or it is not the visitor's to see.
        """
        frame = self._frame(visitor, "/queue", cluster)
        detail = self._queues.job(frame.cluster, job_id, visitor.caller)
        return await self._process.make("job", frame=frame, job_id=job_id, detail=detail)

    async def what_if(self, visitor: Visitor, *, cluster: str | None, form: WhatIfForm) -> bytes:
        """When a job would start, by what is asked for it."""
        frame = self._frame(visitor, "/queue", cluster)
        asked = await self._what_if.show(frame.cluster, visitor, form)
        return await self._process.make("what_if", frame=frame, asked=asked)

    async def users(self, visitor: Visitor, url: str, *, cluster: str | None) -> bytes:
        """Whose requests are far off; a visitor who may see no other user sees their own."""
        if visitor.caller.only is not None:
            return await self.user(visitor, cluster=cluster, name=visitor.caller.only)
        frame = self._frame(visitor, "/users", cluster)
        groups = self._ranking.groups(frame.cluster).groups
        return await self._process.make("users", frame=frame, url=url, groups=groups)

    async def user(self, visitor: Visitor, *, cluster: str | None, name: str) -> bytes:
        """One user; for a visitor who may see no other, themselves, whoever is asked about."""
        name = visitor.caller.only or name
        frame = self._frame(visitor, "/users", cluster)
        accuracy = self._ranking.accuracy_of(name, frame.cluster)
        return await self._process.make("user", frame=frame, name=name, accuracy=accuracy)

    async def rounds(self, visitor: Visitor, url: str, *, cluster: str | None) -> bytes:
        """What rounds of tuning did."""
        frame = self._frame(visitor, "/rounds", cluster)
        return await self._process.make("rounds", frame=frame, url=url)

    async def login(self, *, to: str, refused: str | None) -> bytes:
        """The form that asks for a token.

        Args:
            to: the page to go to afterwards.
            refused: why the last attempt failed.
        """
        return await self._rendered("login", title="Log in", to=to, refused=refused)

    async def problem(self, title: str, detail: str) -> bytes:
        """A page in the place of one that cannot be shown."""
        return await self._rendered("problem", title=title, detail=detail)

    async def _rendered(self, template: str, **shown: Any) -> bytes:
        text = await asyncio.to_thread(self._renderer.render, template, **shown)
        return text.encode()

    def _frame(self, visitor: Visitor, path: str, cluster: str | None) -> Frame:
        # Those with a history and those with a queue, the usual one first.
        named = {*self._worker.live.names, *self._queues.clusters}
        clusters = sorted(named, key=lambda name: (name != DEFAULT_CLUSTER, name))
        chosen = cluster or (clusters[0] if clusters else DEFAULT_CLUSTER)
        return Frame(visitor, path, chosen, clusters)

    def _service(self) -> ServiceNow:
        worker = self._worker
        return ServiceNow(
            facts=ServiceFacts(
                health=worker.health(),
                asks_for_tokens=not worker.guard.is_open,
                is_loopback=worker.settings.is_loopback,
                dropped=worker.writer.dropped_predictions,
            ),
            queues=self._queues.queues().queues,
        )
