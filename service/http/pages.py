"""The pages for people, at / and beside it, the page of the API, and the sessions of browsers.

The cookie names a session and nothing else; the browser never stores the token.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import Query, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from service.auth import EVERYBODY, Caller, FindNewTokens, Guard
from service.contract.bodies import refusal
from service.errors import (
    BodyTooLargeError,
    ForbiddenError,
    InvalidFieldError,
    NotFoundError,
    ServiceError,
)
from service.http import openapi
from service.http.gate import is_browser
from service.http.json_calls import answer
from service.http.openapi import HIDDEN, Calls
from service.http.trusted_proxy import TrustedProxy
from service.store import Store, Token
from service.web.frame import PLACE, READERS, PageQuery, Visitor
from service.web.site import PAGES, Website

COOKIE = "walltimed_session"

LONGEST_COOKIE = 128
"""Characters; a session's text has 43."""

LARGEST_FORM = 4096
"""Bytes of the form that logs in."""

MOST_FIELDS = 8


class Visitors:
    """Finds the sessions of browsers by their cookies.

    Args:
        find_new_tokens: lets the guard know those that were issued before the call.
        seconds: after which a browser has to log in again.
        proxy: whose headers name visitors; None: no proxy.
    """

    def __init__(  # noqa: PLR0913 - what a visitor may be known by
        self,
        guard: Guard,
        store: Store,
        find_new_tokens: FindNewTokens,
        *,
        clock: Callable[[], float],
        seconds: float,
        proxy: TrustedProxy | None = None,
    ) -> None:
        self._guard = guard
        self._store = store
        self._find_new_tokens = find_new_tokens
        self._clock = clock
        self._seconds = seconds
        self._proxy = proxy if proxy is not None and proxy.is_on else None

    async def visitor(self, request: Request) -> Visitor | None:
        """Return the visitor; None if a token is needed and the browser has not logged in.

        A session counts alone: what a proxy says adds nothing to the rights of its token. With a
        proxy, pages are open to nobody, also before the first token is issued.

        Raises:
            MalformedRequestError: a header of the proxy comes twice, or is no name.
        """
        if self._guard.is_open and self._proxy is None:
            return Visitor(EVERYBODY)
        bearer = await self._bearer(request)
        if bearer is not None:
            token, caller = bearer
            return Visitor(caller, token.name or token.token_id)
        named = self._proxy.caller(request) if self._proxy else None
        return None if named is None else Visitor(named)

    async def _bearer(self, request: Request) -> tuple[Token, Caller] | None:
        """Return the valid token of the browser's session, and its bearer."""
        text = session_in(request)
        if text is None:
            return None
        token_id = await asyncio.to_thread(self._store.sessions.token_of, text, self._clock())
        return None if token_id is None else self._guard.bearer_of(token_id)

    async def log_in(self, request: Request, text: str, response: Response) -> str | None:
        """Open a session by a token and put its cookie into the response.

        Returns why not, in a sentence; None if it was opened.
        """
        bearer = self._guard.find(text.strip())
        if bearer is None:
            await self._find_new_tokens()
            bearer = self._guard.find(text.strip())
        if bearer is None:
            return "This is no valid token."
        token, caller = bearer
        if not caller.has_scope(READERS):
            return "This token is for programs; to look at pages it needs scope read or self."
        session = await asyncio.to_thread(
            self._store.sessions.open, token.token_id, self._clock(), seconds=self._seconds
        )
        response.set_cookie(
            COOKIE,
            session,
            max_age=int(self._seconds),
            httponly=True,
            samesite="strict",
            secure=is_encrypted(request),
        )
        return None

    async def log_out(self, request: Request, response: Response) -> None:
        """End the session for good, and take the cookie back."""
        if text := session_in(request):
            await asyncio.to_thread(self._store.sessions.close, text)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def session_in(request: Request) -> str | None:
    """Return the text of the session's cookie; None without one of a plausible length."""
    text = request.cookies.get(COOKIE)
    return text if text and len(text) <= LONGEST_COOKIE else None


def is_encrypted(request: Request) -> bool:
    """Return whether the browser uses https, maybe to a proxy, by the header Origin."""
    return request.headers.get("origin", "").startswith("https://")


def check_own_page(request: Request) -> None:
    """Refuse a form that a page of another site has sent.

    Browsers name the site of the form in Sec-Fetch-Site, older ones in Origin.

    Raises:
        ForbiddenError: it is not of one of our pages.
    """
    site = request.headers.get("sec-fetch-site")
    origin = urlsplit(request.headers.get("origin", "")).netloc
    is_own = site == "same-origin" if site else origin == request.headers.get("host")
    if not is_own:
        raise ForbiddenError("A page of another host may not do this.")


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a small form, the first of each name.

    Raises:
        BodyTooLargeError: it is not small.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise BodyTooLargeError(f"The form must not be longer than {LARGEST_FORM} bytes.")
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def own_path(to: str) -> str:
    """Return ``to`` if it is a path of this service, else the first page."""
    stays_here = to.startswith("/") and not to.startswith("//")
    return to if stays_here and "\\" not in to and to.isprintable() else "/"


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

    async def nowhere(self, request: Request, error: Exception) -> Response:
        """Answer a path at which there is nothing: by a page to browsers, in JSON to programs."""
        if not is_browser(request.scope):
            return await answer(request, error)
        try:
            visitor = await self.visitors.visitor(request)
        except ServiceError as refused:
            return await self.problem(refused, request)
        return await self.problem(NotFoundError(), request, visitor)

    async def problem(
        self, error: ServiceError, request: Request, visitor: Visitor | None = None
    ) -> Response:
        """Return a page that explains an error and names its field; a visitor keeps the menu."""
        detail = f"{error.field}: {error}" if isinstance(error, InvalidFieldError) else str(error)
        url = own_address(request)
        content = await self.site.problem(error.status.phrase, detail, visitor, url)
        return HTMLResponse(content, error.status, {**HEADERS, **error.headers})


def add_pages(calls: Calls, site: Website, visitors: Visitors) -> Pages:
    """Add the pages, logging in and out, and what the pages link to; return the pages.

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

    @calls.add("GET /favicon.ico", scopes=None, **HIDDEN)
    async def icon() -> Response:
        return RedirectResponse(site.assets.address("icon.svg"))

    return pages


def add_api(
    calls: Calls, describe: Callable[[], dict[str, Any]], site: Website, visitors: Visitors
) -> None:
    """Add the page of the API, a table of the calls in the OpenAPI document."""

    @calls.add("GET /docs", scopes=None, **HIDDEN)
    async def api(request: Request) -> Response:
        visitor = await visitors.visitor(request)
        if visitor is None:
            return RedirectResponse(login_address(request), HTTPStatus.SEE_OTHER, HEADERS)
        return html(await site.api(openapi.by_tag(describe()), visitor, own_address(request)))


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
