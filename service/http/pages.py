"""The pages for people, at / and beside it, and the page of the API."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from service.contract.bodies import refusal
from service.errors import InvalidFieldError, NotFoundError, ServiceError
from service.http import openapi
from service.http.calls import HIDDEN, Calls
from service.http.visitors import Visitors, check_own_page, own_path, read_form
from service.web.frame import PLACE, PageQuery, Visitor
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

FOR_EVER = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
}


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
            except ServiceError as error:
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
        except ServiceError as error:
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
        except ServiceError as error:
            return await self.problem(error, request)
        return response

    async def problem(
        self, error: ServiceError, request: Request, visitor: Visitor | None = None
    ) -> Response:
        """Return a page that explains an error and names its field; a visitor keeps the menu."""
        detail = f"{error.field}: {error}" if isinstance(error, InvalidFieldError) else str(error)
        url = own_address(request)
        content = await self.site.problem(error.status.phrase, detail, visitor, url)
        return HTMLResponse(content, error.status, {**HEADERS, **error.headers})


def add_pages(calls: Calls, site: Website, visitors: Visitors) -> None:
    """Add the pages, logging in and out, and what the pages link to.

    No call needs a token: pages identify browsers by cookies.
    """
    pages = Pages(site, visitors)
    for name, page in PAGES.items():
        calls.add(f"GET {page.path}", scopes=None, **HIDDEN)(pages.endpoint(name, page.query))
    calls.add("POST /login", scopes=None, **HIDDEN)(pages.log_in)
    calls.add("POST /logout", scopes=None, **HIDDEN)(pages.log_out)

    @calls.add("GET /login", scopes=None, **HIDDEN)
    async def login(to: Annotated[str, Query(max_length=2048)] = "/") -> Response:
        return html(await site.login(to=own_path(to), refused=None))

    @calls.add(f"GET {PLACE}/{{tag}}/{{name}}", scopes=None, **HIDDEN)
    async def asset(tag: str, name: str) -> Response:
        content = site.assets.find(tag, name)
        if content is None:
            raise NotFoundError
        return Response(content.content, media_type=content.kind, headers=FOR_EVER)


def add_api(
    calls: Calls, describe: Callable[[], dict[str, Any]], site: Website, visitors: Visitors
) -> None:
    """Add the page of the API, a table of the calls in the OpenAPI document."""

    @calls.add("GET /docs", scopes=None, **HIDDEN)
    async def api(request: Request) -> Response:
        if await visitors.visitor(request) is None:
            return RedirectResponse(login_address(request), HTTPStatus.SEE_OTHER, HEADERS)
        return html(await site.api(openapi.by_tag(describe()), own_address(request)))


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
