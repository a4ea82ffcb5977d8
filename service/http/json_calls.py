"""Calls that the gate answers past FastAPI: from the bytes of a JSON body to those of an answer.

FastAPI describes these calls as any other. In the way of a request it would solve dependencies,
open exit stacks and parse the content type as e-mail does, for three quarters of a prediction's
time; and it would hand its models parsed objects, in which strict models take no RFC 3339 times.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from inspect import Parameter
from operator import itemgetter
from typing import Annotated, Any

import msgspec
import structlog
from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from service.auth import Caller
from service.contract.bodies import invalid_field, refusal
from service.contract.fields import LARGE, check_outline
from service.errors import (
    BodyTooLargeError,
    InternalError,
    InvalidFieldError,
    MethodNotAllowedError,
    NotFoundError,
    RequestError,
    ServiceError,
    UnsupportedMediaTypeError,
)

NDJSON = frozenset({b"application/x-ndjson", b"application/ndjson", b"application/jsonl"})

to_json = msgspec.json.Encoder().encode


WHOLE = "walltimed.response"
"""Type of a message with a whole answer; an extension of ASGI that ``connections`` has."""

CALLER = "walltimed.caller"
"""Key of the caller in the connection's scope; the gate sets it."""


async def caller_of(request: Request) -> Caller:
    """Return the caller; asynchronous, because FastAPI runs anything else in a thread."""
    caller: Caller = request.scope[CALLER]
    return caller


CurrentCaller = Annotated[Caller, Depends(caller_of)]
"""The type of an endpoint's argument that gets the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JSONCall:
    """ASGI application of one call with a JSON body.

    Attributes:
        endpoint: coroutine function that returns the answer; its last argument is the body.
        arguments: read the endpoint's other arguments from the connection's scope.
        validate: decodes the bytes of a body; raises ValidationError of pydantic.
    """

    endpoint: Callable[..., Awaitable[Any]]
    arguments: Sequence[Callable[[Scope], Any]] = ()
    validate: Callable[[bytes], Any]
    limit: int
    status: int = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            RequestError: the body is of another type, too large, or not as the model has it.
        """
        check_is_json(scope)
        body = await read_body(scope, receive, self.limit)
        if body is None:
            return
        if len(body) > LARGE:
            check_outline(body)
        try:
            content = self.validate(body)
        except ValidationError as error:
            raise refusal(error) from error
        answer = await self.endpoint(*[read(scope) for read in self.arguments], content)
        if WHOLE in scope.get("extensions", ()):
            encoded = to_json(answer)
            head = json_head(encoded)
            await send({"type": WHOLE, "status": self.status, "headers": head, "body": encoded})
        else:
            await send_json(send, self.status, to_json(answer))


def argument_of(parameter: Parameter) -> Callable[[Scope], Any]:
    """Return a function that reads an endpoint's argument: the caller, or one in the path."""
    if parameter.annotation is CurrentCaller:
        return itemgetter(CALLER)
    name, valid = parameter.name, TypeAdapter(parameter.annotation).validate_python

    def in_path(connection: Scope) -> Any:
        try:
            return valid(connection["path_params"][name])
        except ValidationError as error:
            raise InvalidFieldError(f"The {name} in the path has no valid name.", name) from error

    return in_path


def encoded(endpoint: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Response]]:
    """Wrap an endpoint behind FastAPI: its answer is encoded as those of the calls past it."""

    @wraps(endpoint)
    async def answered(*arguments: Any, **named: Any) -> Response:
        answer = await endpoint(*arguments, **named)
        return Response(to_json(answer), media_type="application/json")

    return answered


def content_type(scope: Scope) -> bytes:
    """Return the media type of the request's body in lower case, without parameters."""
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind: bytes = value
            return kind.partition(b";")[0].strip().lower()
    return b""


def check_is_json(scope: Scope) -> None:
    """Refuse a body of another type than JSON: a web page can send other types unasked.

    Raises:
        UnsupportedMediaTypeError: its type is not JSON.
    """
    kind = content_type(scope)
    if kind in NDJSON:
        raise UnsupportedMediaTypeError(
            "NDJSON is not taken: send a batch as application/json, or store a file of runs by "
            "`walltimed import`."
        )
    if kind != b"application/json" and not (
        kind.startswith(b"application/") and kind.endswith(b"+json")
    ):
        raise UnsupportedMediaTypeError("The body must be sent as application/json.")


async def read_body(scope: Scope, receive: Receive, limit: int | None) -> bytes | None:
    """Return the whole body; None if the client disconnected.

    Raises:
        BodyTooLargeError: it is longer than ``limit``, or says that it will be.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        announced = Headers(scope=scope).get("content-length", "0")
        check_size(int(announced) if announced.isdecimal() else 0, limit)
        chunks = [body]
        length = len(body)
        while message.get("more_body", False):
            message = await receive()
            chunks.append(message.get("body", b""))
            length += len(chunks[-1])
            check_size(length, limit)
        body = b"".join(chunks)
    check_size(len(body), limit)
    return None if message["type"] == "http.disconnect" else body


def check_size(length: int, limit: int | None) -> None:
    """Refuse a body of ``length`` bytes if that is more than ``limit``.

    Raises:
        BodyTooLargeError: it is more.
    """
    if limit is not None and length > limit:
        raise BodyTooLargeError(f"The body must not be longer than {limit} bytes.")


async def send_json(
    send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> None:
    """Send ``body`` as an answer of JSON."""
    head = json_head(body, headers)
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def json_head(body: bytes, headers: Mapping[str, str] | None = None) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer of JSON, before others of its own."""
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if headers:
        fields += [(k.lower().encode(), v.encode("latin-1")) for k, v in headers.items()]
    return fields


async def send_error(send: Send, error: ServiceError) -> None:
    """Send the answer to an error."""
    await send_json(send, error.status, error_body(error), error.headers)


def error_body(error: ServiceError) -> bytes:
    """Return the body of the answer to an error, with its field if it has one."""
    field = {"field": error.field} if isinstance(error, InvalidFieldError) else {}
    return to_json({"error": type(error).__name__, "detail": str(error)} | field)


log = structlog.get_logger()


def from_framework(request: Request, error: HTTPException) -> RequestError:
    """Convert an error of Starlette, which is about paths and methods only."""
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return MethodNotAllowedError(", ".join(sorted(methods_of(request))))
    return NotFoundError()


def methods_of(request: Request) -> set[str]:
    """Return the methods that the path takes; Starlette names those of its first route only."""
    methods = {
        method
        for route in request.app.routes
        if isinstance(route, Route) and route.path_regex.match(request.url.path)
        for method in route.methods or ()
    }
    return methods | {"HEAD"} if "GET" in methods else methods


def from_parameters(error: RequestValidationError) -> InvalidFieldError:
    """Convert FastAPI's error of a query or path parameter."""
    first = error.errors()[0]
    return invalid_field(first["type"], first["msg"], first["loc"][1:])


def failure(path: str, bug: Exception) -> InternalError:
    """Log a bug and return its answer, one sentence; the server logs the traceback."""
    log.error("a request failed", path=path, kind=type(bug).__name__)
    return InternalError()


async def answer(request: Request, error: Exception) -> Response:
    """Return the answer to any exception."""
    if isinstance(error, HTTPException):
        error = from_framework(request, error)
    elif isinstance(error, RequestValidationError):
        error = from_parameters(error)
    elif not isinstance(error, ServiceError):
        error = failure(request.url.path, error)
    return Response(error_body(error), error.status, error.headers, media_type="application/json")


def answer_errors(app: FastAPI) -> None:
    """Answer every exception in one shape."""
    for kind in (ServiceError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, answer)
