"""Trying, before anybody is served, whether FastAPI does what our routes suppose."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, BackgroundTasks, Cookie, Depends, Header, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.types import Message, Scope

from service.http.bytes_route import BytesRoute
from service.http.rehearsal import NotAsSupposedError

log = structlog.get_logger()

SCOPE: Scope = {
    "type": "http",
    "method": "POST",
    "path": "/",
    "headers": [(b"content-type", b"application/json")],
}


class Line(BaseModel):
    """What is said in the rehearsal."""

    words: str


@dataclass(frozen=True)
class Echo:
    """What is answered."""

    words: str


async def echo(body: Line) -> Echo:
    """Say it twice."""
    return Echo(words=body.words * 2)


async def with_path(body: Line, place: str) -> None:
    """Take a part of the path, too."""


async def with_query(body: Line, place: Annotated[str, Query()]) -> None:
    """Take a query parameter, too."""


async def with_header(body: Line, place: Annotated[str, Header()]) -> None:
    """Take a header, too."""


async def with_cookie(body: Line, place: Annotated[str, Cookie()]) -> None:
    """Take a cookie, too."""


async def with_dependency(body: Line, place: Annotated[None, Depends(lambda: None)]) -> None:
    """Depend on something."""


async def with_request(body: Line, request: Request) -> None:
    """Look at the request."""


async def with_response(body: Line, response: Response) -> None:
    """Change the response."""


async def with_tasks(body: Line, tasks: BackgroundTasks) -> None:
    """Leave something for later."""


async def without_body() -> None:
    """Take nothing."""


ORDINARY: dict[Callable[..., Any], str] = {
    with_path: "/{place}",
    with_query: "/",
    with_header: "/",
    with_cookie: "/",
    with_dependency: "/",
    with_request: "/",
    with_response: "/",
    with_tasks: "/",
    without_body: "/",
}
"""Endpoints whose arguments only FastAPI can find, with their paths."""


@cache
def fitting(kind: type[BytesRoute]) -> type[APIRoute]:
    """The route class, or FastAPI's own where ours does not do what it should.

    Ours reads insides of FastAPI's routes, which another release may change. FastAPI's own is
    slower, and takes keys that are given twice.
    """
    try:
        rehearse_route(kind)
    except Exception:  # the insides may fail in any way, and the service shall start
        log.exception("plain FastAPI serves, more slowly: it does not fit to our routes")
        return APIRoute
    return kind


def rehearse_route(kind: type[BytesRoute]) -> None:
    """Let one endpoint be called with a body, and look at what FastAPI must serve.

    Raises:
        NotAsSupposedError: an endpoint went another way.
    """
    said = answer_of(_route(kind, "/", echo), b'{"words": "la"}')
    if said != b'{"words":"lala"}':
        raise NotAsSupposedError(f"the endpoint answered {said!r}")
    for endpoint, path in ORDINARY.items():
        if _route(kind, path, endpoint).bytes_app is not None:
            raise NotAsSupposedError(f"an endpoint {endpoint.__name__} is taken for one of a body")


def _route(kind: type[BytesRoute], path: str, endpoint: Callable[..., Any]) -> BytesRoute:
    router = APIRouter(route_class=kind)
    router.post(path)(endpoint)
    (route,) = router.routes
    if not isinstance(route, kind):
        raise NotAsSupposedError(f"FastAPI made a {type(route).__name__}")
    return route


def answer_of(route: BytesRoute, body: bytes) -> bytes:
    """What the route answers to a body.

    Raises:
        NotAsSupposedError: FastAPI would serve it.
    """
    if route.bytes_app is None:
        raise NotAsSupposedError("an endpoint of one body is not taken for one")
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    _run_at_once(route.bytes_app(SCOPE, receive, send))
    return b"".join(message.get("body", b"") for message in sent)


def _run_at_once(answering: Awaitable[None]) -> None:
    """Run what waits for nothing, with or without an event loop."""
    for _ in answering.__await__():
        raise NotAsSupposedError("an answer waits for something")
