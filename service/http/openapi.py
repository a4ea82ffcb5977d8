"""Parts of the OpenAPI document that FastAPI cannot derive, descriptions above all."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.contract.vocabulary import meaning
from service.errors import DESCRIPTIONS, documented_body
from service.http.gate import SCHEME

Responses = dict[int | str, dict[str, Any]]

DESCRIPTION = """Predicts how long batch jobs will run, from how long earlier jobs ran.

Times are accepted as Unix seconds or RFC 3339 and answered as Unix seconds; durations are
seconds. Errors are answered as `{"error", "detail"}`, with `field` if one field is wrong.
"""

TAGS = (
    ("predictions", "Predict how long jobs will run. Submit filters call these."),
    ("completions", "Report runs that have ended: the service learns from them."),
    ("adapters", "Report runs in the records of resource managers."),
    ("methods", "Compare the errors of methods and of forecasts."),
    ("accuracy", "Rank users by the accuracy of their requests, and their waiting jobs."),
    ("queues", "Hand over the queue of a cluster, and read when jobs will start."),
    ("forecasts", "Forecast a queue that comes with the question, on shared nodes too."),
    ("reports", "Compare requests with runtimes, and find who has most to gain."),
    ("tunings", "Read or start rounds of tuning on the cluster's own runs."),
    ("health", "Check the service itself."),
)
"""Groups of calls with their descriptions, in the order in which they are shown."""

_RETRY_AFTER = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}


def refusals(*statuses: int) -> Responses:
    """Return the documentation of a route's errors: ``statuses`` and 401, 403, 500."""
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
    """Return the OpenAPI document, built once."""
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


def explain(document: dict[str, Any]) -> None:
    """Describe the groups of calls, and every call and field without a description of its own."""
    document["tags"] = [{"name": name, "description": about} for name, about in TAGS]
    for _, _, operation in operations(document):
        summary, _, _ = operation["description"].partition("\n\n")
        operation["summary"] = " ".join(summary.split()).removesuffix(".")
        for parameter in operation.get("parameters", ()):
            parameter.setdefault("description", meaning(parameter["name"]))
    for owner, schema in document["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            field.setdefault("description", meaning(name, owner))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield verb, path and description of every call."""
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield verb, path, operation
