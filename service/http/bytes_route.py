"""A FastAPI route that validates bytes and answers bytes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.contract.bodies import refusal
from service.contract.decoding import msgspec_first
from service.contract.outline import plausible
from service.errors import BodyTooLargeError, UnsupportedMediaTypeError

to_json = msgspec.json.Encoder().encode


class BytesRoute(APIRoute):
    """Serves ``async def endpoint(body: Model) -> Answer`` without FastAPI's machinery.

    FastAPI describes such a route like any other, OpenAPI included; but a request is validated
    from its bytes in one step and its answer encoded in one step. What FastAPI does in between
    (solving dependencies, exit stacks, parsing the content type as e-mail does) costs three
    quarters of an ordinary route's time.

    An endpoint with any other signature stays an ordinary route.

    Attributes:
        bytes_app: what serves the route; None if it is an ordinary one.
    """

    bytes_app: ASGIApp | None = None

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        # FastAPI's own limit answers plain text, and is in the way of routes that take no body.
        limit = options.pop("max_body_size", None)
        super().__init__(path, endpoint, **options)
        self.max_body_size = limit
        if self._takes_one_body():
            self.app = self.bytes_app = self.make_bytes_app()

    def make_bytes_app(self) -> ASGIApp:
        """The ASGI application of the route."""
        return partial(
            answer_bytes,
            validate=self.checked_validator(),
            call=self.endpoint,
            status=self.status_code or 200,
            limit=self.max_body_size,
        )

    def checked_validator(self) -> Callable[[bytes], Any]:
        """Return the decoder, behind what refuses large nonsense."""
        return plausible(self.validator())

    def validator(self) -> Callable[[bytes], Any]:
        """The decoder from a body's bytes to the endpoint's argument."""
        adapter: TypeAdapter[Any] = TypeAdapter(self.body_type)
        return adapter.validate_json

    @property
    def body_type(self) -> Any:
        """The type of the endpoint's argument."""
        (wanted,) = self.dependant.body_params
        return wanted.field_info.annotation

    def _takes_one_body(self) -> bool:
        wanted = self.dependant
        others = (
            wanted.path_params,
            wanted.query_params,
            wanted.header_params,
            wanted.cookie_params,
            wanted.dependencies,
            wanted.request_param_name,
            wanted.response_param_name,
            wanted.background_tasks_param_name,
        )
        return len(wanted.body_params) == 1 and not any(others)


class MsgspecRoute(BytesRoute):
    """A bytes route whose body is one model of plain fields; see ``msgspec_first``."""

    def validator(self) -> Callable[[bytes], Any]:
        """A fast decoder for most bodies; it leaves the others to the model."""
        return msgspec_first(self.body_type)


async def answer_bytes(  # noqa: PLR0913 - three of them are ASGI's, the rest the route's own
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    validate: Callable[[bytes], Any],
    call: Callable[[Any], Any],
    status: int,
    limit: int | None,
) -> None:
    """Serve one request of a bytes route."""
    check_is_json(scope)
    body = await read_body(scope, receive, limit)
    if body is None:
        return
    try:
        argument = validate(body)
    except ValidationError as error:
        raise refusal(error) from error
    await send_json(send, status, to_json(await call(argument)))


def content_type(scope: Scope) -> bytes:
    """The media type of the request's body in lower case, without parameters."""
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind: bytes = value
            return kind.partition(b";")[0].strip().lower()
    return b""


def check_is_json(scope: Scope) -> None:
    """Refuse what does not say that it is JSON: a web page can send anything else unasked."""
    kind = content_type(scope)
    if kind != b"application/json" and not (
        kind.startswith(b"application/") and kind.endswith(b"+json")
    ):
        raise UnsupportedMediaTypeError("The body must be sent as application/json.")


async def read_body(scope: Scope, receive: Receive, limit: int | None) -> bytes | None:
    """The whole body; None if the caller went away.

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
    """Refuse a body of `length` bytes if that is more than ``limit``."""
    if limit is not None and length > limit:
        raise BodyTooLargeError(f"The body must not be longer than {limit} bytes.")


async def send_json(
    send: Send, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    """Answer JSON."""
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if headers:
        fields += [(k.lower().encode(), v.encode("latin-1")) for k, v in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
