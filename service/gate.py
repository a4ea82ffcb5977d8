"""The one middleware: lets a request in by its token, and counts and times its answer."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from service.answering import send_error
from service.auth import Guard, Scope
from service.errors import ForbiddenError, MissingTokenError
from service.metrics import Metrics, RouteMetrics

SCHEME = "token"
"""The security scheme's name in the OpenAPI document."""

CALLER_LEFT = 499
"""Counted, never sent: the caller went away before there was an answer."""


class Door:
    """What it takes to reach one route.

    Attributes:
        is_open: nobody is asked for a token.
        scope: that a token must have; None if any valid one will do.
    """

    __slots__ = ("is_open", "metrics", "scope")

    def __init__(self, *, is_open: bool, scope: str | None, metrics: RouteMetrics) -> None:
        self.is_open = is_open
        self.scope = scope
        self.metrics = metrics


def open_to_all() -> dict[str, Any]:
    """Declares, for ``openapi_extra``, a route that needs no token."""
    return {"security": []}


def needs(scope: Scope | None = None) -> dict[str, Any]:
    """Declares, for ``openapi_extra``, the scope that a route needs; None: any valid token.

    That is both what the OpenAPI document says and what the gate holds to.
    """
    return {"security": [{SCHEME: [scope.value] if scope else []}]}


class Gate:
    """Pure ASGI: a middleware class that wraps the response would cost more than the rest."""

    def __init__(
        self, app: ASGIApp, *, guard: Guard, metrics: Metrics, routes: Sequence[BaseRoute]
    ) -> None:
        self._app = app
        self._guard = guard
        self._metrics = metrics
        self._doors: dict[str, Door] = {}
        self._templates: list[tuple[APIRoute, Door]] = []
        self._elsewhere = Door(is_open=False, scope=None, metrics=metrics.route("none"))
        for route in routes:
            if isinstance(route, APIRoute):
                self._add(route)

    def _add(self, route: APIRoute) -> None:
        security = (route.openapi_extra or needs())["security"]
        scopes = security[0][SCHEME] if security else []
        door = Door(
            is_open=not security,
            scope=scopes[0] if scopes else None,
            metrics=self._metrics.route(route.path_format),
        )
        if route.param_convertors:
            self._templates.append((route, door))
        else:
            self._doors[route.path_format] = door

    def _door(self, path: str) -> Door:
        door = self._doors.get(path)
        if door is not None:
            return door
        for route, door in self._templates:
            if route.path_regex.match(path):
                return door
        return self._elsewhere

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if connection["type"] != "http":
            await self._app(connection, receive, send)
            return
        started = perf_counter()
        door = self._door(connection["path"])
        status = CALLER_LEFT

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if not door.is_open:
                self._guard.admit(authorization(connection), door.scope)
            await self._app(connection, receive, watched)
        except (MissingTokenError, ForbiddenError) as refusal:
            await send_error(watched, refusal)
        except BaseException:
            status = 500
            raise
        finally:
            door.metrics.observe(status, perf_counter() - started)


def authorization(connection: Connection) -> bytes | None:
    """The header of that name."""
    for name, value in connection["headers"]:
        if name == b"authorization":
            header: bytes = value
            return header
    return None
