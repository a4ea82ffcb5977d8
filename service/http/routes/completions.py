"""The call that stores completions: one, several, or a stream."""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs

import structlog
from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from service.auth import Scope
from service.contract.answers import IngestionAnswer, SkippingAnswer
from service.contract.bodies import CompletionBatch, CompletionBody, OnErrorQuery, refusal
from service.contract.decoding import msgspec_first
from service.errors import FieldErrorBody, LineErrorBody
from service.http.gate import needs
from service.http.hot_calls import HotCalls, JSONCall, content_type, send_json, to_json
from service.http.openapi import refusals
from service.operations.completing import Completing

log = structlog.get_logger()

NDJSON = "application/x-ndjson"

_is_batch = re.compile(rb'\s*\{\s*"completions"\s*:').match
"""A batch has one field only, of this name; a completion has none of this name."""

_RESPONSES = refusals(400, 413, 415, 503) | {
    422: {
        "model": FieldErrorBody | LineErrorBody,
        "description": "A field is missing, unknown, of the wrong type or out of range; "
        "nothing is stored.",
    }
}

_EXTRA = {
    "requestBody": {
        "content": {
            NDJSON: {
                "schema": {
                    "type": "string",
                    "description": "One completion a line, any size; it is not held in memory.",
                }
            }
        }
    },
    "parameters": [
        {
            "name": "on_error",
            "in": "query",
            "required": False,
            "description": OnErrorQuery.model_fields["on_error"].description,
            "schema": OnErrorQuery.model_json_schema()["properties"]["on_error"],
        }
    ],
}


def add(router: APIRouter, hot: HotCalls, completing: Completing, *, limit: int) -> None:
    """Add the call; ``limit`` is the largest body in bytes, but for NDJSON."""

    @router.post(
        "/v1/completions",
        tags=["completions"],
        responses=_RESPONSES,
        openapi_extra=needs(Scope.INGEST) | _EXTRA,
    )
    async def complete(body: CompletionBody | CompletionBatch) -> IngestionAnswer | SkippingAnswer:
        """Report runs that have ended: one, several, or NDJSON of any length.

        The answer comes when all runs are stored durably. A run, named by `(cluster, job_id,
        start_time)`, counts once, even if it is sent repeatedly.
        """
        return await completing.complete(body)

    json = JSONCall(endpoint=complete, validate=validator(), limit=limit)

    async def by_type(connection: Connection, receive: Receive, send: Send) -> None:
        if content_type(connection) == NDJSON.encode():
            await take_stream(completing, connection, receive, send)
            return
        if connection["query_string"]:
            query_of(connection)
        await json(connection, receive, send)

    hot["POST", "/v1/completions"] = by_type


def validator() -> Callable[[bytes], Any]:
    """Return a decoder that knows a batch by its first field, so that errors name their place."""
    one, several = msgspec_first(CompletionBody), msgspec_first(CompletionBatch)
    return lambda body: several(body) if _is_batch(body) else one(body)


async def take_stream(
    completing: Completing, connection: Connection, receive: Receive, send: Send
) -> None:
    """Serve one request with a body of NDJSON."""
    query = query_of(connection)
    skips = query.on_error == "skip"
    take = completing.complete_valid if skips else completing.complete_all_or_none
    try:
        answer = await take(chunks_of(receive))
    except ClientDisconnect:
        log.warning("a caller left before the end of its stream", on_error=query.on_error)
        return
    await send_json(send, 200, to_json(answer))


def query_of(connection: Connection) -> OnErrorQuery:
    """Return the validated query of the request.

    Raises:
        InvalidFieldError: a parameter or its value is unknown.
    """
    parameters = parse_qs(connection["query_string"].decode("latin-1"), keep_blank_values=True)
    try:
        return OnErrorQuery.model_validate(
            {name: values[-1] for name, values in parameters.items()}
        )
    except ValidationError as error:
        raise refusal(error) from error


async def chunks_of(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the chunks of the body as they arrive.

    Raises:
        ClientDisconnect: the caller went away before its end.
    """
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return
