"""The pages for people, at / and beside it, and the page of the API."""

import asyncio
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from service.contract.bodies import refusal
from service.errors import STATUSES, NotFoundError, status_of
from service.http.gate import needs, open_to_all
from service.http.visitors import Visitors, check_own_page, own_path, read_form
from service.web.frame import PLACE, Assets, PageQuery, Renderer, Visitor
from service.web.site import PAGES, Website

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content of this service only, and nothing inline, so that a name with a script is not run."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer`, browsers would not send the site of a form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

VIEWER_HEADERS = HEADERS | {
    # RapiDoc sets styles inline. The page shows the OpenAPI document, and no names of users.
    "Content-Security-Policy": POLICY.replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    )
}

FOR_EVER = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
}

HIDDEN: dict[str, Any] = {"include_in_schema": False, "openapi_extra": open_to_all()}
"""Options of routes outside the API; pages identify browsers by cookies, not by tokens."""


class Pages:
    """Answers pages to browsers: each to whom may see it, and errors as pages too."""

    def __init__(self, site: Website, visitors: Visitors) -> None:
        self.site = site
        self.visitors = visitors

    def endpoint(self, name: str, query: type[PageQuery]) -> Callable[[Request], Any]:
        """Return the endpoint of a page: the page, if the visitor may see any; else the login."""

        async def page(request: Request) -> Response:
            visitor = None
            try:
                visitor = await self.visitors.visitor(request)
                if visitor is None:
                    return RedirectResponse(login_address(request), HTTPStatus.SEE_OTHER, HEADERS)
                parameters = query.model_validate(dict(request.query_params))
                content = await self.site.page(name, visitor, own_address(request), parameters)
                return html(content)
            except ValidationError as error:
                return await self.problem(refusal(error), request, visitor)
            except tuple(STATUSES) as error:
                return await self.problem(error, request, visitor)

        return page

    async def log_in(self, request: Request) -> Response:
        """Return a redirect to the wanted page, or the form with the reason of refusal."""
        try:
            check_own_page(request)
            form = await read_form(request)
            to = own_path(form.get("to", "/"))
            response = RedirectResponse(to, HTTPStatus.SEE_OTHER, HEADERS)
            refused = await self.visitors.log_in(request, form.get("token", ""), response)
        except tuple(STATUSES) as error:
            return await self.problem(error, request)
        if refused is None:
            return response
        return html(await self.site.login(to=to, refused=refused), HTTPStatus.UNAUTHORIZED)

    async def log_out(self, request: Request) -> Response:
        """End the session, and return a redirect to the form that asks for a token."""
        response = RedirectResponse("/login", HTTPStatus.SEE_OTHER, HEADERS)
        try:
            check_own_page(request)
            await self.visitors.log_out(request, response)
        except tuple(STATUSES) as error:
            return await self.problem(error, request)
        return response

    async def problem(
        self, error: Exception, request: Request, visitor: Visitor | None = None
    ) -> Response:
        """Return a page that explains an error; a visitor keeps the menu."""
        status = status_of(error)
        url = own_address(request)
        content = await self.site.problem(status.phrase, str(error), visitor, url)
        return html(content, status)


def add(router: APIRouter, site: Website, visitors: Visitors) -> None:
    """Add the pages, logging in and out, and what the pages link to."""
    pages = Pages(site, visitors)
    for name, page in PAGES.items():
        router.get(page.path, **HIDDEN)(pages.endpoint(name, page.query))
    add_assets(router, site.assets)
    router.post("/login", **HIDDEN)(pages.log_in)
    router.post("/logout", **HIDDEN)(pages.log_out)

    @router.get("/login", **HIDDEN)
    async def login(to: Annotated[str, Query(max_length=2048)] = "/") -> Response:
        return html(await site.login(to=own_path(to), refused=None))


def add_assets(router: APIRouter, assets: Assets) -> None:
    """Add the files that pages link to."""

    @router.get(PLACE + "/{tag}/{name}", **HIDDEN)
    async def asset(tag: str, name: str) -> Response:
        content = assets.find(tag, name)
        if content is None:
            raise NotFoundError("There is nothing at this path.")
        return Response(content.content, media_type=content.kind, headers=FOR_EVER)


def add_api(
    router: APIRouter, document: Callable[[], bytes], assets: Assets, visitors: Visitors | None
) -> None:
    """Add the page.

    Args:
        router: of the application.
        document: the OpenAPI document as JSON.
        assets: files that the page links to.
        visitors: browsers that have logged in; None where the service has no other pages: the page
            then needs any valid token, and the service's own address leads there.
    """

    @cache
    def page() -> str:
        text = document().decode().replace("<", "\\u003c")
        return Renderer(assets).render("api", title="API", document=text)

    extra = needs() if visitors is None else open_to_all()

    @router.get("/docs", include_in_schema=False, openapi_extra=extra)
    async def api(request: Request) -> Response:
        if visitors is not None and await visitors.visitor(request) is None:
            return RedirectResponse(login_address(request), HTTPStatus.SEE_OTHER, HEADERS)
        return HTMLResponse(await asyncio.to_thread(page), headers=VIEWER_HEADERS)

    if visitors is None:
        add_assets(router, assets)

        @router.get("/", include_in_schema=False, openapi_extra=extra)
        async def first_page() -> Response:
            return RedirectResponse("/docs", HTTPStatus.SEE_OTHER, HEADERS)


def html(page: bytes, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return the response of a page, with the headers of all pages."""
    return HTMLResponse(page, status, HEADERS)


def own_address(request: Request) -> str:
    """Return the address by which the visitor reaches the service, for examples."""
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"


def login_address(request: Request) -> str:
    """Return the address of the form that leads back to this page."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"/login?to={quote(request.url.path + query, safe='')}"
