"""The table of all pages, the process that makes them, and the facts that it needs.

A process of its own makes one page after the other, so that no prediction waits for a page. Views
read the store in that process, and get the facts that only the serving process knows.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from predictors.jobs import DEFAULT_CLUSTER
from service.auth import Caller
from service.contract.queue_answers import AtRiskAnswer
from service.contract.queue_bodies import AtRiskQuery
from service.errors import (
    PagesBusyError,
    PageTooLongError,
    UnknownClusterError,
    UnknownSnapshotError,
)
from service.operations.history_showing import usual_cluster
from service.operations.predicting import Ranking
from service.operations.queue_showing import ShowingQueues
from service.operations.risk_showing import ShowingRisks
from service.operations.what_if import WhatIf
from service.settings import Settings
from service.store import open_store
from service.web import (
    accuracy_page,
    now_page,
    queue_page,
    tuning_page,
    users_page,
    what_if_page,
)
from service.web.frame import AnswerCache, Assets, Frame, PageQuery, PageSources, Renderer, Visitor
from service.worker.processes import ChildProcess, come_second
from service.worker.worker import Worker
from terminal import logs

View = Callable[[PageSources, Frame, Any, Any], Mapping[str, Any]]
"""Returns the variables of a template, from the sources, the query and facts of the service."""

LIMIT_SECONDS = 30.0
"""Seconds that a page may take; the first one waits for the process to start."""

MOST_WAITING = 100
"""Most pages that are being made or wait for it; further ones are refused."""

SAME_SECONDS, MOST_RENDERED = 1.0, 50
"""Seconds for which visitors who see the same queue get the same page, and most such pages."""


class Page(Struct, frozen=True, kw_only=True):
    """A page.

    Attributes:
        menu: path of its entry in the menu.
        title: of the page and its entry; None for a page without an entry, whose view has a title.
        view: returns the variables of its template.
        refresh: seconds after which its script asks for it again; None for never.
        state: returns a value that changes with the content, where several visitors may share it.
    """

    path: str
    menu: str
    view: View
    title: str | None = None
    query: type[PageQuery] = PageQuery
    refresh: int | None = None
    state: Callable[[PageSources, str], Hashable] | None = None


PAGES = {
    "now": Page(path="/", title="Now", menu="/", view=now_page.view, refresh=5),
    "accuracy": Page(
        path="/accuracy",
        title="Accuracy",
        menu="/accuracy",
        view=accuracy_page.view,
        query=accuracy_page.AccuracyQuery,
        refresh=30,
    ),
    "queue": Page(
        path="/queue",
        title="Queue",
        menu="/queue",
        view=queue_page.view,
        query=queue_page.QueuePageQuery,
        refresh=5,
        state=queue_page.state_of,
    ),
    "job": Page(
        path="/job",
        menu="/queue",
        view=queue_page.job_view,
        query=queue_page.JobPageQuery,
        refresh=5,
    ),
    "at_risk": Page(path="/at-risk", menu="/queue", view=queue_page.risk_view, refresh=30),
    "what_if": Page(
        path="/what-if", menu="/queue", view=what_if_page.view, query=what_if_page.WhatIfForm
    ),
    "users": Page(
        path="/users",
        title="Users",
        menu="/users",
        view=users_page.view,
        query=users_page.UserQuery,
    ),
    "user": Page(
        path="/user", menu="/users", view=users_page.user_view, query=users_page.UserQuery
    ),
    "tuning": Page(path="/tuning", title="Tuning", menu="/tuning", view=tuning_page.view),
}
"""The pages, by the names of their templates."""

OWN_TITLES = {"/users": "My jobs"}
"""Titles in the menu of visitors who may see no other user."""


def menu_of(visitor: Visitor) -> list[tuple[str, str | None]]:
    """Return path and title of each entry in the menu of a visitor."""
    own = {} if visitor.sees_everybody else OWN_TITLES
    return [(page.path, own.get(page.path, page.title)) for page in PAGES.values() if page.title]


class PageMaker:
    """Makes every page, from its sources and from facts of the serving process."""

    def __init__(self, sources: PageSources) -> None:
        self._sources = sources
        self._renderer = Renderer(Assets())
        self._rendered = AnswerCache(most=MOST_RENDERED)
        self._known_erasure = sources.store.erasures.last()

    def make(self, name: str, frame: Frame, query: PageQuery, facts: Any = None) -> bytes:
        """Return a page in UTF-8; ``facts`` are those that only the service knows."""
        self.follow_erasures()
        page = PAGES[name]
        if page.state is None:
            return self._render(name, frame, query, facts)
        state = page.state(self._sources, frame.cluster)
        key = (frame, query.model_dump_json(), state)
        return self._rendered.get(
            key, SAME_SECONDS, lambda: self._render(name, frame, query, facts)
        )

    def follow_erasures(self) -> None:
        """Empty the caches if a part of the history was deleted since the last call."""
        last = self._sources.store.erasures.last()
        if last != self._known_erasure:
            self._known_erasure = last
            self._sources.forget()
            self._rendered.clear()

    def _render(self, name: str, frame: Frame, query: PageQuery, facts: Any) -> bytes:
        page = PAGES[name]
        view = page.view(self._sources, frame, query, facts)
        return self._renderer.render(
            name,
            title=page.title or view["title"],
            menu=menu_of(frame.visitor),
            frame=frame,
            refresh=page.refresh,
            url=frame.url,
            view=view,
        ).encode()


class PageProcess(ChildProcess):
    """Makes pages. It starts with the first page.

    Args:
        limit: seconds from asking for a page to its bytes.
    """

    def __init__(self, settings: Settings, *, limit: float = LIMIT_SECONDS) -> None:
        super().__init__(limit, prepare=partial(prepare, settings), most_waiting=MOST_WAITING)

    async def make(self, name: str, frame: Frame, query: PageQuery, facts: Any = None) -> bytes:
        """Return the bytes of a page.

        Raises:
            PagesBusyError: too many pages wait already.
            PageTooLongError: it took too long.
        """
        return await self.run(render_in_child, name, frame, query, facts)

    async def forget(self) -> None:
        """Empty the caches of the process, if it runs; a page that waits does so by itself."""
        if self.is_running:
            with suppress(PagesBusyError, PageTooLongError):
                await self.run(forget_in_child)

    def busy(self) -> PagesBusyError:
        """Return the error for a call while too many wait."""
        return PagesBusyError(f"{self.most_waiting} pages are being made already.")

    def too_long(self) -> PageTooLongError:
        """Return the error for a call that exceeded the time limit."""
        return PageTooLongError(f"The page could not be made within {self.limit:g} s.")


makers: list[PageMaker] = []
"""The maker of this process, once ``prepare`` has run; only the page process has one."""


def prepare(settings: Settings) -> None:
    """Lower the priority of the page process, and open the store for its maker."""
    come_second()
    logs.configure(settings)
    store = open_store(
        settings.database_url.get_secret_value(), sqlite_synchronous=settings.sqlite_synchronous
    )
    makers.append(PageMaker(PageSources(settings, store)))


def render_in_child(name: str, frame: Frame, query: PageQuery, facts: Any) -> bytes:
    """Render a page to bytes. Called in the page process, after ``prepare``."""
    return makers[-1].make(name, frame, query, facts)


def forget_in_child() -> None:
    """Empty the caches of pages. Called in the page process, after ``prepare``."""
    makers[-1].follow_erasures()


class Website:
    """Requests pages from the page process, with the facts that only the serving process knows.

    Args:
        what_if: forecasts jobs that are not submitted.
        ranking: knows the accuracy of users' requests.
    """

    def __init__(
        self,
        worker: Worker,
        *,
        process: PageProcess,
        queues: ShowingQueues,
        what_if: WhatIf,
        ranking: Ranking,
    ) -> None:
        self._worker = worker
        self._process = process
        self._queues = queues
        self._risks = ShowingRisks(worker, queues)
        self._what_if = what_if
        self._ranking = ranking
        self.assets = Assets()
        self._renderer = Renderer(self.assets)

    async def page(self, name: str, visitor: Visitor, url: str, query: PageQuery) -> bytes:
        """Return a page; visitors who may see no other user see their own instead of all.

        Args:
            url: address of the service as the visitor reaches it.
            query: of the type that the table says.

        Raises:
            UnknownClusterError: nothing is known of the cluster.
            UnknownJobError: there is no such job, or it is not the visitor's to see.
        """
        if name == "users" and not visitor.sees_everybody:
            name = "user"
        frame = await self._frame(visitor, PAGES[name].menu, query.cluster, url)
        return await self._process.make(name, frame, query, await self._facts(name, frame, query))

    async def _facts(self, name: str, frame: Frame, query: Any) -> Any:
        """Return what only this process knows; None for a page from the store alone."""
        caller = frame.visitor.caller
        match name:
            case "now":
                return self._service(frame.clusters, await self._risk_counts(caller))
            case "job":
                return await self._queues.job(frame.cluster, query.id, caller)
            case "at_risk":
                return await self._at_risk(frame.cluster, caller)
            case "what_if":
                return await what_if_page.ask(self._what_if, frame, query)
            case "users" | "user":
                return self._accuracy(name, frame, query)
        return None

    def _accuracy(self, name: str, frame: Frame, query: Any) -> Any:
        """Return the accuracy groups of a cluster, or the accuracy of the user who is shown."""
        if name == "users":
            return self._ranking.groups(frame.cluster).groups
        user = query.shown_to(frame.visitor.caller)
        return self._ranking.accuracy_of(user, frame.cluster)

    async def _at_risk(self, cluster: str, caller: Caller) -> AtRiskAnswer | None:
        """Return the jobs at risk that a visitor may see; None without a queue."""
        try:
            return await self._risks.at_risk(cluster, AtRiskQuery(), caller)
        except UnknownSnapshotError:
            return None

    async def login(self, *, to: str, refused: str | None) -> bytes:
        """Return the form that asks for a token.

        Args:
            to: the page to go to afterwards.
        """
        return await self._rendered("login", title="Log in", to=to, refused=refused)

    async def api(self, groups: Sequence[Mapping[str, Any]], visitor: Visitor, url: str) -> bytes:
        """Return the page of the API, which lists all calls by group."""
        return await self._framed("api", visitor, url, title="API", groups=groups, url=url)

    async def problem(self, title: str, detail: str, visitor: Visitor | None, url: str) -> bytes:
        """Return an error page, with the menu for a visitor."""
        if visitor is None:
            return await self._rendered("problem", title=title, detail=detail)
        return await self._framed("problem", visitor, url, title=title, detail=detail)

    async def _framed(
        self, template: str, visitor: Visitor, address: str, **variables: Any
    ) -> bytes:
        """Return a page that is none of the menu, with the menu."""
        frame = await self._frame(visitor, "", None, address)
        return await self._rendered(template, frame=frame, menu=menu_of(visitor), **variables)

    async def _rendered(self, template: str, **variables: Any) -> bytes:
        text = await asyncio.to_thread(self._renderer.render, template, **variables)
        return text.encode()

    async def _frame(self, visitor: Visitor, path: str, cluster: str | None, url: str) -> Frame:
        known = self._queues.known
        clusters = sorted(await known.names(), key=lambda name: (name != DEFAULT_CLUSTER, name))
        usual = usual_cluster(clusters, known.queued) or next(iter(clusters), DEFAULT_CLUSTER)
        if cluster and clusters and cluster not in clusters:
            raise UnknownClusterError(
                f"No cluster {cluster!r} is known; known are {', '.join(clusters)}."
            )
        return Frame(visitor, path, cluster or usual, tuple(clusters), url)

    async def _risk_counts(self, caller: Caller) -> dict[str, int]:
        """Return how many running jobs will probably be cut, by cluster with a queue."""
        names = [queue.cluster for queue in self._queues.heads() if not queue.is_old]
        found = {name: await self._at_risk(name, caller) for name in names}
        return {name: len(each.jobs) for name, each in found.items() if each}

    def _service(
        self, clusters: Iterable[str], at_risk: Mapping[str, int]
    ) -> now_page.ServiceFacts:
        worker = self._worker
        return now_page.ServiceFacts(
            health=worker.health(),
            asks_for_tokens=not worker.guard.is_open,
            is_loopback=worker.settings.is_loopback,
            dropped=worker.writer.dropped_predictions,
            queues=self._queues.heads(),
            at_risk=at_risk,
            planning=frozenset(filter(worker.plans_by_predictions, clusters)),
        )
