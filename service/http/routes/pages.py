"""The pages for people, at / and beside it."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from service.contract.bodies import refusal
from service.contract.queue_bodies import QueueQuery
from service.errors import STATUSES, NotFoundError, status_of
from service.http.gate import open_to_all
from service.http.page_forms import own_path, read_form
from service.http.visitors import Visitors, check_own_page
from service.web.assets import PLACE, Assets
from service.web.frame import Visitor
from service.web.queue_page import ROWS
from service.web.site import Site
from service.web.what_if_page import WhatIfForm

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, and nothing inline: so that a name that holds a script stays a name."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` browsers would not say whose page a form is of.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

FOR_EVER = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
}

HIDDEN: dict[str, Any] = {"include_in_schema": False, "openapi_extra": open_to_all()}
"""The pages find out for themselves who looks: browsers send a cookie, and callers a token."""

Cluster = Annotated[str | None, Query(max_length=256)]
Name = Annotated[str, Query(max_length=256)]
Shown = Callable[[Visitor, str], Awaitable[bytes]]


class Pages:
    """Answers pages to browsers: each to whom may see it, and errors as pages too."""

    def __init__(self, site: Site, visitors: Visitors) -> None:
        self.site = site
        self.visitors = visitors

    async def shown(self, request: Request, page: Shown) -> Response:
        """The page, if the visitor may see any; else the way to log in."""
        try:
            visitor = await self.visitors.visitor(request)
            if visitor is None:
                return RedirectResponse(login_address(request), HTTPStatus.SEE_OTHER, HEADERS)
            return html(await page(visitor, own_address(request)))
        except ValidationError as error:
            return await self.problem(refusal(error))
        except tuple(STATUSES) as error:
            return await self.problem(error)

    async def log_in(self, request: Request) -> Response:
        """The page that was wanted, or the form again."""
        try:
            check_own_page(request)
            form = await read_form(request)
            to = own_path(form.get("to", "/"))
            response = RedirectResponse(to, HTTPStatus.SEE_OTHER, HEADERS)
            refused = await self.visitors.log_in(request, form.get("token", ""), response)
        except tuple(STATUSES) as error:
            return await self.problem(error)
        if refused is None:
            return response
        return html(await self.site.login(to=to, refused=refused), HTTPStatus.UNAUTHORIZED)

    async def log_out(self, request: Request) -> Response:
        """The form that asks for a token."""
        response = RedirectResponse("/login", HTTPStatus.SEE_OTHER, HEADERS)
        try:
            check_own_page(request)
            await self.visitors.log_out(request, response)
        except tuple(STATUSES) as error:
            return await self.problem(error)
        return response

    async def problem(self, error: Exception) -> Response:
        """A page that says what is wrong."""
        status = status_of(error)
        return html(await self.site.problem(status.phrase, str(error)), status)


def add(router: APIRouter, site: Site, visitors: Visitors) -> None:
    """Add the pages."""
    pages = Pages(site, visitors)
    add_doors(router, pages)
    add_overviews(router, pages)
    add_queue(router, pages)
    add_users(router, pages)


def add_doors(router: APIRouter, pages: Pages) -> None:
    """Add logging in and out, and what the pages link to."""
    add_assets(router, pages.site.assets)
    router.post("/login", **HIDDEN)(pages.log_in)
    router.post("/logout", **HIDDEN)(pages.log_out)

    @router.get("/login", **HIDDEN)
    async def login(to: Annotated[str, Query(max_length=2048)] = "/") -> Response:
        return html(await pages.site.login(to=own_path(to), refused=None))


def add_assets(router: APIRouter, assets: Assets) -> None:
    """Add the files that pages link to."""

    @router.get(PLACE + "/{tag}/{name}", **HIDDEN)
    async def asset(tag: str, name: str) -> Response:
        found = assets.find(tag, name)
        if found is None:
            raise NotFoundError("There is nothing at this path.")
        return Response(found.content, media_type=found.kind, headers=FOR_EVER)


def add_overviews(router: APIRouter, pages: Pages) -> None:
    """Add the pages about the service and its methods."""

    @router.get("/", **HIDDEN)
    async def now(request: Request, cluster: Cluster = None) -> Response:
        return await pages.shown(
            request, lambda visitor, url: pages.site.now(visitor, url, cluster=cluster)
        )

    @router.get("/docs", **HIDDEN)
    async def api(request: Request, cluster: Cluster = None) -> Response:
        return await pages.shown(
            request, lambda visitor, url: pages.site.api(visitor, url, cluster=cluster)
        )

    @router.get("/accuracy", **HIDDEN)
    async def accuracy(
        request: Request,
        cluster: Cluster = None,
        days: Annotated[int | None, Query(ge=1, le=3660)] = None,
        by: Annotated[str | None, Query(max_length=16)] = None,
    ) -> Response:
        return await pages.shown(
            request,
            lambda visitor, url: pages.site.accuracy(
                visitor, url, cluster=cluster, days=days, by=by
            ),
        )

    @router.get("/rounds", **HIDDEN)
    async def rounds(request: Request, cluster: Cluster = None) -> Response:
        return await pages.shown(
            request, lambda visitor, url: pages.site.rounds(visitor, url, cluster=cluster)
        )


def add_queue(router: APIRouter, pages: Pages) -> None:
    """Add the pages about the queue."""

    @router.get("/queue", **HIDDEN)
    async def queue(  # noqa: PLR0913, PLR0917 - the fields of a form
        request: Request,
        cluster: Cluster = None,
        user: Name = "",
        queue: Name = "",
        state: Literal["", "running", "waiting", "held"] = "",
        offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    ) -> Response:
        async def asked(visitor: Visitor, url: str) -> bytes:
            query = QueueQuery(
                user=user or None,
                queue=queue or None,
                state=state or None,
                limit=ROWS,
                offset=offset,
            )
            return await pages.site.queue(visitor, url, cluster=cluster, query=query)

        return await pages.shown(request, asked)

    @router.get("/job", **HIDDEN)
    async def job(request: Request, id_: Annotated[str, Query(alias="id", max_length=256)],
                  cluster: Cluster = None) -> Response:  # fmt: skip
        return await pages.shown(
            request, lambda visitor, _url: pages.site.job(visitor, cluster=cluster, job_id=id_)
        )

    @router.get("/what-if", **HIDDEN)
    async def what_if(  # noqa: PLR0913, PLR0917 - the fields of a form
        request: Request,
        cluster: Cluster = None,
        walltime: Name = "",
        processors: Name = "1",
        queue: Name = "",
        application: Name = "",
        user: Name = "",
        others: Name = "",
    ) -> Response:
        form = WhatIfForm(
            walltime=walltime,
            processors=processors,
            queue=queue,
            application=application,
            user=user,
            others=others,
        )
        return await pages.shown(
            request, lambda visitor, _url: pages.site.what_if(visitor, cluster=cluster, form=form)
        )


def add_users(router: APIRouter, pages: Pages) -> None:
    """Add the pages about users."""

    @router.get("/users", **HIDDEN)
    async def users(request: Request, cluster: Cluster = None) -> Response:
        return await pages.shown(
            request, lambda visitor, url: pages.site.users(visitor, url, cluster=cluster)
        )

    @router.get("/user", **HIDDEN)
    async def user(request: Request, name: Name = "", cluster: Cluster = None) -> Response:
        return await pages.shown(
            request, lambda visitor, _url: pages.site.user(visitor, cluster=cluster, name=name)
        )


def html(page: bytes, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """A page with the headers of all pages."""
    return HTMLResponse(page, status, HEADERS)


def own_address(request: Request) -> str:
    """The service as the visitor reaches it, for examples."""
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"


def login_address(request: Request) -> str:
    """The form that leads back to this page."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"/login?to={quote(request.url.path + query, safe='')}"
