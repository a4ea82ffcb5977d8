"""Parts of the OpenAPI document that FastAPI cannot derive, descriptions above all."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

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

SHARED: Mapping[str, str] = {
    "application": "Job name or executable.",
    "basis": "What the prediction rests on.",
    "cluster": "Name of the cluster; its history is used and no other's.",
    "detail": "What is wrong, in a sentence.",
    "end_interval": "Range of the end; null where there is none.",
    "end_time": "End of the run, in Unix seconds.",
    "forecast_age": "Seconds since `forecast_at`; null as that.",
    "forecast_at": "`taken_at` of the queue that was forecast last; null before the first.",
    "interval": "Range of the runtime, with `likely` and planned in it; null as `likely`.",
    "is_old": "Whether no newer queue has come for longer than it should take.",
    "job_id": "Id of the job in its resource manager, as text or as a whole number.",
    "likely": "Median runtime of jobs like it; null where the method gives none.",
    "lower": "Lower end, which belongs to the range.",
    "method": "Name of the method.",
    "no_interval": "Why starts and ends have no intervals: too-few-runs (the errors of fewer than "
    "20 predictions are known), no-samples (no futures were to be played), no-time (the queue "
    "is too long for them) or no-prediction (no prediction decides when a job ends). Null if they "
    "have.",
    "usual_wait": "Median wait, from submission to start, of jobs that were not planned at their "
    "arrival and waited longer than this one has. Null if it is planned or fewer than 10 are "
    "known.",
    "now": "The time that the answer is about, in Unix seconds.",
    "policy": "Scheduling policy.",
    "predicted_walltime": "Planned runtime, in seconds: so that few jobs outlive it.",
    "queue": "Slurm partition, PBS queue.",
    "requested_processors": "Number of processors that the job asks for.",
    "requested_walltime": "How long the job may run, in seconds; the hard limit.",
    "since": "Begin of the period, in Unix seconds.",
    "start_interval": "Range of the start; null where there is none.",
    "start_time": "Start of the run, in Unix seconds.",
    "state": "What the job or the round is doing.",
    "status": "How the run ended, or how the service is.",
    "submit_time": "When the job was submitted, in Unix seconds.",
    "taken_at": "When the resource manager showed the queue, in Unix seconds.",
    "tuning_id": "Id of the round of tuning.",
    "underestimation_rate": "Share of jobs that ran longer than predicted.",
    "until": "End of the period, in Unix seconds.",
    "upper": "Upper end.",
    "user": "Name of the user.",
    "wait": "From submission to start, in seconds.",
}
"""Meanings of fields that several bodies and answers have; all others are described in place."""

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
            "loopback once one has been issued. A MUNGE credential of a user (scheme `Munge`) "
            "is as good as a token of scope self.",
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
            parameter.setdefault("description", SHARED.get(parameter["name"]))
    for schema in document["components"]["schemas"].values():
        for name, field in schema.get("properties", {}).items():
            field.setdefault("description", SHARED.get(name))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield verb, path and description of every call."""
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield verb, path, operation
