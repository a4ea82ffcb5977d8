"""Sessions of browsers: logging in and out, and the check that a form is of our own page.

The cookie names a session and nothing else; the browser never stores the token.
"""

import asyncio
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from service.auth import EVERYBODY, Caller, FindNewTokens, Guard
from service.errors import BodyTooLargeError, ForbiddenError
from service.http.trusted_proxy import TrustedProxy
from service.store import Store, Token
from service.web.frame import READERS, Visitor

COOKIE = "walltimed_session"

LONGEST_COOKIE = 128
"""Characters; a session's text has 43."""

LARGEST_FORM = 4096
"""Bytes of the form that logs in."""

MOST_FIELDS = 8


class Visitors:
    """Finds the sessions of browsers by their cookies.

    Args:
        guard: knows the tokens.
        store: keeps the sessions.
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
