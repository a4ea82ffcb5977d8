"""The gate: admits requests by their tokens, and counts and times their answers.

While no token has been issued, it admits callers of this machine alone, by their host names.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from time import perf_counter
from urllib.parse import unquote_to_bytes, urlsplit

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from service.auth import FindNewTokens, Guard, MungeCallers, allowed, is_credential
from service.errors import (
    EncodedBodyError,
    ForbiddenError,
    MalformedRequestError,
    MissingTokenError,
    ServiceError,
)
from service.http.json_calls import CALLER, failure, send_error
from service.http.openapi import Call
from service.metrics import Metrics, RouteMetrics
from terminal.scopes import Scope

OWN_NAMES = frozenset({"localhost", "walltimed"})
"""Names besides the addresses of loopback; plug-ins of resource managers use the second."""


class HostNames:
    """Refuses requests under foreign host names, which only deceived browsers make.

    A page of a stranger can let its own name point to this machine (DNS rebinding). The browser
    then takes the service for part of the page, and lets the page read and write; but it sends
    the name in the header Host, and the site of the page in Origin.

    Args:
        also: names besides those of loopback.
    """

    def __init__(self, also: Iterable[str]) -> None:
        self._names = OWN_NAMES | {name.lower() for name in also}

    def check(self, host: bytes | None, origin: bytes | None) -> None:
        """Check the headers Host and Origin of a request.

        Raises:
            ForbiddenError: one of them names another machine.
        """
        if host is None or not is_ours(host, self._names):
            raise ForbiddenError(
                "While no token has been issued the service answers under the names of loopback "
                "only, and those of the setting host_names."
            )
        if origin is not None and not is_ours(origin.partition(b"://")[2], self._names):
            raise ForbiddenError("A page of another host may not call this service.")


@lru_cache(maxsize=1024)
def is_ours(host: bytes, names: frozenset[str]) -> bool:
    """Return whether ``host``, with or without a port, is in ``names`` or a loopback address."""
    try:
        name = urlsplit("//" + host.decode("ascii")).hostname or ""
    except ValueError:  # no ASCII, or brackets that do not match
        return False
    return name in names or is_loopback(name)


def is_loopback(address: str) -> bool:
    """Return whether ``address`` is an IP address of loopback."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


CALLER_LEFT = 499
"""Status for the metrics, never sent: the client disconnected before its answer."""

CLOSED = "the handler is closed"
"""Words of uvloop's error for an answer to a caller who has left."""

OF_INTEREST = frozenset({b"host", b"origin", b"authorization", b"content-encoding", b"user-agent"})

FILTERS_HOST = b"walltimed"
"""Host header of submit filters, at any address of the service."""

FILTERS_PATH = "/v1/predictions"

REFUSALS = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})

NO_ENCODING = frozenset({b"", b"identity"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One route: the application behind it, and who may call it.

    Attributes:
        is_open: whether the route needs no token.
        is_for_programs: whether filters and reporters call it, and no user beside them.
        scopes: of which a token must have one; none if any valid token will do.
    """

    app: ASGIApp
    is_open: bool
    is_for_filters: bool
    is_for_programs: bool
    scopes: tuple[str, ...]
    metrics: RouteMetrics


def is_for_programs(scopes: Collection[str]) -> bool:
    """Return whether programs call a route of these scopes, and readers do not."""
    return not {Scope.PREDICT, Scope.INGEST}.isdisjoint(scopes) and Scope.READ not in scopes


Template = tuple[str, re.Pattern[str], Endpoint]
"""A path with parameters: its method, its pattern, and what answers."""


class Gate:
    """Finds a request's route, admits it by its token, and counts and times its answer.

    Calls with a JSON body are behind the gate itself: the layers of FastAPI and Starlette cost as
    much as a prediction. All others are found by FastAPI as usual.

    Args:
        find_new_tokens: lets the guard know those that were issued before the call.
        munge: knows the users of MUNGE credentials.
        names: under which the service answers while it asks for no tokens; None: any.
    """

    def __init__(  # noqa: PLR0913 - each is named where it is handed over
        self,
        app: ASGIApp,
        *,
        calls: Iterable[Call],
        guard: Guard,
        find_new_tokens: FindNewTokens,
        munge: MungeCallers,
        names: HostNames | None,
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._guard = guard
        self._find_new_tokens = find_new_tokens
        self._munge = munge
        self._names = names
        self._metrics = metrics
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._templates: list[Template] = []
        self._elsewhere = Endpoint(
            app=app,
            is_open=False,
            is_for_filters=False,
            is_for_programs=False,
            scopes=(),
            metrics=metrics.requests.route("none"),
        )
        self._nowhere = replace(self._elsewhere, is_open=True)
        for call in calls:
            self._add(call)

    def _add(self, call: Call) -> None:
        path = call.route.path_format
        endpoint = Endpoint(
            app=call.past_fastapi or self._app,
            is_open=call.scopes is None,
            is_for_filters=path == FILTERS_PATH,
            is_for_programs=is_for_programs(call.scopes or ()),
            scopes=call.scopes or (),
            metrics=self._metrics.requests.route(path),
        )
        if call.route.param_convertors:
            self._templates.append((call.method, call.route.path_regex, endpoint))
        else:
            self._endpoints[call.method, path] = endpoint

    def _endpoint_of(self, connection: Connection) -> Endpoint:
        """Return the endpoint of a request; put path parameters into ``scope["path_params"]``."""
        method, path = connection["method"], connection["path"]
        endpoint = self._endpoints.get((method, path))
        if endpoint is not None:
            return endpoint
        for served, pattern, endpoint in self._templates:
            if method == served and (found := pattern.match(path)):
                connection["path_params"] = found.groupdict()
                return endpoint
        return self._nowhere if is_browser(connection) else self._elsewhere

    def _check_head(self, connection: Connection, endpoint: Endpoint) -> bytes | None:
        """Check the head of a request, before any of its body is read.

        Returns its MUNGE credential if that has still to be decoded.

        Raises:
            MalformedRequestError: it does not name its host, as HTTP/1.1 has it, or has an address
                that is no text.
            ForbiddenError: it uses a name that is none of the service's, or too weak a token.
            MissingTokenError: it needs a token.
            UnsupportedMediaTypeError: its body is encoded.
        """
        headers = headers_of_interest(connection)
        host = headers.get(b"host")
        if host is None and connection["http_version"] == "1.1":
            raise MalformedRequestError("A request of HTTP/1.1 needs a Host header.")
        if self._names is not None and self._guard.is_open:
            self._names.check(host, headers.get(b"origin"))
        authorization = headers.get(b"authorization")
        has_credential = is_credential(authorization) and not self._guard.is_open
        if not endpoint.is_open and not has_credential:
            connection[CALLER] = self._guard.admit(authorization, endpoint.scopes)
        check_is_text(connection.get("raw_path") or b"")
        check_is_text(connection.get("query_string") or b"")
        if endpoint.is_for_filters and host == FILTERS_HOST:
            self._metrics.requests.asked_by(headers.get(b"user-agent", b""))
        if headers.get(b"content-encoding", b"identity").strip().lower() not in NO_ENCODING:
            raise EncodedBodyError
        return authorization if has_credential and not endpoint.is_open else None

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Serve one request."""
        started = perf_counter()
        if connection["method"] == "HEAD":
            connection, send = {**connection, "method": "GET"}, without_body(send)
        endpoint = self._endpoint_of(connection)
        status, credential = CALLER_LEFT, None

        async def watched(message: Message) -> None:
            nonlocal status
            status = await sent(send, message, message.get("status", status))

        try:
            try:
                credential = self._check_head(connection, endpoint)
            except MissingTokenError:
                await self._find_new_tokens()
                credential = self._check_head(connection, endpoint)
            if credential is not None:
                caller = await self._munge.caller(credential)
                connection[CALLER] = allowed(caller, endpoint.scopes)
            await endpoint.app(connection, receive, watched)
        except ServiceError as error:
            is_refusal = error.status in REFUSALS and CALLER not in connection
            if is_refusal and endpoint.is_for_programs and credential is None:
                endpoint.metrics.refused_program(error.status)
            await send_error(watched, error)
        except Exception as bug:
            if status == CALLER_LEFT:  # else FastAPI has answered, or the answer had begun
                await send_error(watched, failure(connection["path"], bug))
            raise  # uvicorn logs it, and ends the connection if the answer is not whole
        finally:
            endpoint.metrics.answered((status, perf_counter() - started))


async def sent(send: Send, message: Message, status: int) -> int:
    """Send a part of an answer; return its status, or CALLER_LEFT if the caller has left."""
    try:
        await send(message)
    except RuntimeError as error:
        if CLOSED not in str(error):
            raise
        return CALLER_LEFT
    return status


def is_browser(connection: Connection) -> bool:
    """Return whether the answer to a request may be a page."""
    return any(name == b"accept" and b"text/html" in value for name, value in connection["headers"])


def headers_of_interest(connection: Connection) -> dict[bytes, bytes]:
    """Return the headers that the gate reads, by name.

    Raises:
        MalformedRequestError: there are two hosts.
    """
    found: dict[bytes, bytes] = {}
    for name, value in connection["headers"]:
        if name in OF_INTEREST:
            if name == b"host" and name in found:
                raise MalformedRequestError("The request has two Host headers.")
            found[name] = value
    return found


def check_is_text(address: bytes) -> None:
    """Refuse a path or query such as ``%ff``: Starlette would read another character into it.

    Raises:
        MalformedRequestError: what the percent signs stand for is not UTF-8.
    """
    if b"%" not in address:
        return
    try:
        unquote_to_bytes(address).decode()
    except UnicodeDecodeError:
        raise MalformedRequestError("The path or the query is not UTF-8.") from None


def without_body(send: Send) -> Send:
    """Wrap ``send`` to drop bodies: the answer to HEAD is the head of the answer to GET."""

    async def sent(message: Message) -> None:
        await send({**message, "body": b""} if "body" in message else message)

    return sent


class GatedFastAPI(FastAPI):
    """FastAPI behind the gate, which receives every request first."""

    gate: Gate

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] == "http":
            await self.gate(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
