"""What the OpenAPI document says beyond what FastAPI finds out by itself."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.contract.answers import ErrorBody, FieldErrorBody
from service.http.gate import SCHEME

Responses = dict[int | str, dict[str, Any]]

DESCRIPTION = """Predicts how long batch jobs will run, from how long earlier jobs ran.

Times are accepted as Unix seconds or RFC 3339 and answered as Unix seconds; durations are
seconds. Errors are answered as `{"error", "detail"}`, with `field` where one is to blame.
"""

_REFUSALS: Mapping[int, tuple[type, str]] = {
    400: (ErrorBody, "The body is not JSON."),
    401: (ErrorBody, "The call needs a valid token."),
    403: (ErrorBody, "The token does not have the scope."),
    404: (ErrorBody, "Unknown."),
    409: (ErrorBody, "The history is too short."),
    413: (ErrorBody, "The body is too large."),
    415: (ErrorBody, "The body is of another type."),
    422: (FieldErrorBody, "A field is missing, unknown, of the wrong type or out of range."),
    500: (ErrorBody, "The service failed."),
    503: (ErrorBody, "The history store cannot be reached, or has no room."),
}

_RETRY_AFTER = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}


def refusals(*statuses: int) -> Responses:
    """Documentation of the errors that a route can answer; 401, 403 and 500 are any route's."""
    documented: Responses = {}
    for status in sorted({401, 403, 500, *statuses}):
        model, description = _REFUSALS[status]
        documented[status] = {"model": model, "description": description}
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            documented[status]["headers"] = _RETRY_AFTER
    return documented


BODY_REFUSALS = refusals(400, 413, 415, 422)
"""Of every route that takes JSON."""


def describe(app: FastAPI) -> dict[str, Any]:
    """The document, written once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes[SCHEME] = {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of `walltimed token issue`. Needed beyond loopback, and on "
            "loopback once one has been issued.",
        }
        app.openapi_schema = document
    return app.openapi_schema
