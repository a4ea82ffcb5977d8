"""Declares the calls of the API, for FastAPI, which describes them, and for the gate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from inspect import signature
from operator import or_
from typing import Any, Literal, TypeVar, cast

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, TypeAdapter, create_model
from starlette.types import ASGIApp

from service.errors import (
    BodyTooLargeError,
    EncodedBodyError,
    ForbiddenError,
    InternalError,
    InvalidFieldError,
    MalformedJSONError,
    MalformedRequestError,
    MissingTokenError,
    MungeTooLongError,
    ServiceError,
    StartingError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from service.http.json_calls import JSONCall, argument_of, encoded
from service.store import SchemaOutdatedError, StoreDamagedError, StoreUnavailableError
from terminal.scopes import Scope

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
    "forecast_at": "Time of the queue that was forecast last: `taken_at`, or that of a later "
    "start or end; null before the first.",
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
    "arrival and waited longer than this one has. Null if it has a forecast or fewer than 10 "
    "are known.",
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

SCHEME = "token"
"""The security scheme's name in the OpenAPI document."""


def security(scopes: tuple[Scope, ...] | None) -> list[dict[str, list[str]]]:
    """Return the security of a call that needs one of these scopes, any token or, None, none."""
    if scopes is None:
        return []
    return [{SCHEME: [scope.value]} for scope in scopes] or [{SCHEME: []}]


OF_EVERY_CALL: tuple[type[ServiceError], ...] = (
    MalformedRequestError,
    MissingTokenError,
    ForbiddenError,
    InternalError,
    MungeTooLongError,
    StartingError,
)
"""The errors that any call that needs a token may give."""

BODY_ERRORS = (
    MalformedJSONError,
    BodyTooLargeError,
    UnsupportedMediaTypeError,
    EncodedBodyError,
    InvalidFieldError,
)
"""The errors of every call that takes JSON."""

STORE_ERRORS = (StoreUnavailableError, StoreDamagedError, SchemaOutdatedError)
"""The errors of every call that reads the store."""

_RETRY_AFTER = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}


def refusals(*kinds: type[ServiceError]) -> Responses:
    """Return the documentation of a call's errors: these, and those of every call."""
    every = [*OF_EVERY_CALL, *kinds]
    statuses = sorted({kind.status for kind in every})
    return {
        int(status): _response([kind for kind in every if kind.status is status])
        for status in statuses
    }


def _response(kinds: Sequence[type[ServiceError]]) -> dict[str, Any]:
    """Return the documentation of the errors of one status."""
    documented: dict[str, Any] = {
        "model": reduce(or_, [error_model(kind) for kind in kinds]),  # type: ignore[arg-type] # a class can be hashed
        "description": " ".join(map(meaning, kinds)),
    }
    if issubclass(kinds[0], UnavailableError):
        documented["headers"] = _RETRY_AFTER
    return documented


@cache
def error_model(kind: type[ServiceError]) -> type[BaseModel]:
    """Return the model of the answers to one class of errors, which names the class."""
    # Literal takes the name at run time, which a type checker cannot follow.
    name: Any = Literal.__getitem__(kind.__name__)
    fields: dict[str, Any] = {"error": (name, Field(description="Name of the error."))}
    if issubclass(kind, InvalidFieldError):
        path = Field(description="A path such as completions.3.user.")
        fields["field"] = (str, path)
    return create_model(kind.__name__, __doc__=meaning(kind), **fields, detail=str)


def meaning(kind: type[ServiceError]) -> str:
    """Return the sentence that says when an error of this class is answered."""
    return (kind.__doc__ or "").partition("\n\n")[0]


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


def by_tag(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the groups of calls with their descriptions and calls, for a page."""
    calls = [
        {
            "name": f"{verb.upper()} {path}",
            "summary": operation["summary"],
            "scopes": [scope for way in operation["security"] for scope in way[SCHEME]],
            "tag": operation["tags"][0],
        }
        for verb, path, operation in operations(document)
    ]
    return [
        tag | {"calls": [call for call in calls if call["tag"] == tag["name"]]}
        for tag in document["tags"]
    ]


ANY_TOKEN: tuple[Scope, ...] = ()
"""Scopes of a call for which every valid token is good."""

HIDDEN: Mapping[str, Any] = {"include_in_schema": False}
"""Options of calls outside the API."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Decoder = Callable[[Any], Callable[[bytes], Any]]


def by_model(model: Any) -> Callable[[bytes], Any]:
    """Return the validator of a model for the bytes of a body."""
    return TypeAdapter(model).validate_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, for the gate.

    Attributes:
        route: its path, and its endpoint behind FastAPI.
        scopes: scopes of which a token must have one; empty: any valid token; None: no token.
        past_fastapi: serves the call in FastAPI's place; None: FastAPI does.
    """

    method: str
    route: APIRoute
    scopes: tuple[Scope, ...] | None
    past_fastapi: ASGIApp | None


class Calls:
    """The calls of a service, in the order of their declaration."""

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self.declared: list[Call] = []

    def add(
        self,
        call: str,
        *,
        scopes: tuple[Scope, ...] | None,
        past_fastapi: Callable[[Callable[..., Any]], ASGIApp] | None = None,
        **options: Any,
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares a call, such as ``GET /docs``, with FastAPI's options.

        ``past_fastapi`` returns what serves the endpoint in FastAPI's place.
        """
        method, path = call.split()

        def declared(endpoint: Endpoint) -> Endpoint:
            extra = {"security": security(scopes)} | options.pop("openapi_extra", {})
            self._router.add_api_route(
                path, endpoint, methods=[method], openapi_extra=extra, **options
            )
            self.declared.append(
                Call(
                    method=method,
                    route=cast("APIRoute", self._router.routes[-1]),
                    scopes=scopes,
                    past_fastapi=past_fastapi(endpoint) if past_fastapi else None,
                )
            )
            return endpoint

        return declared

    def get(
        self,
        path: str,
        *,
        tag: str,
        scopes: tuple[Scope, ...],
        errors: Sequence[type[ServiceError]] = (),
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares a call without a body."""
        declared = self.add(f"GET {path}", tags=[tag], scopes=scopes, responses=refusals(*errors))

        def get_call(endpoint: Endpoint) -> Endpoint:
            declared(encoded(endpoint))
            return endpoint

        return get_call

    def takes_json(  # noqa: PLR0913 - each is named where a call is declared
        self,
        call: str,
        *,
        tag: str,
        scopes: tuple[Scope, ...],
        limit: int,
        decoder: Decoder = by_model,
        status: int = 200,
        errors: Sequence[type[ServiceError]] = (),
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares a call with a JSON body, which is served past FastAPI.

        Args:
            scopes: scopes of which a token must have one.
            decoder: returns the validator of a body, from the type of the endpoint's last argument.
            errors: errors besides those of every call with a body.
        """

        def json_call(endpoint: Callable[..., Any]) -> ASGIApp:
            *others, body = signature(endpoint).parameters.values()
            return JSONCall(
                endpoint=endpoint,
                arguments=[argument_of(each) for each in others],
                validate=decoder(body.annotation),
                limit=limit,
                status=status,
            )

        return self.add(
            call,
            tags=[tag],
            scopes=scopes,
            responses=refusals(*BODY_ERRORS, *errors),
            status_code=status,
            past_fastapi=json_call,
        )
