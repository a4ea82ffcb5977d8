"""The parts of the OpenAPI document that FastAPI cannot find out by itself."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.errors import DESCRIPTIONS, documented_body
from service.http.gate import SCHEME
from service.http.openapi_prose import explain

Responses = dict[int | str, dict[str, Any]]

DESCRIPTION = """Predicts how long batch jobs will run, from how long earlier jobs ran.

Times are accepted as Unix seconds or RFC 3339 and answered as Unix seconds; durations are
seconds. Errors are answered as `{"error", "detail"}`, with `field` if one field is wrong.
"""

_RETRY_AFTER = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}


def refusals(*statuses: int) -> Responses:
    """Documentation of the errors that a route can answer; every route can answer 401, 403, 500."""
    documented: Responses = {}
    for status in map(HTTPStatus, sorted({401, 403, 500, *statuses})):
        documented[int(status)] = {
            "model": documented_body(status),
            "description": DESCRIPTIONS[status],
        }
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            documented[int(status)]["headers"] = _RETRY_AFTER
    return documented


BODY_REFUSALS = refusals(400, 413, 415, 422)
"""The errors of every route that takes JSON."""


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
        explain(document)
        app.openapi_schema = document
    return app.openapi_schema
