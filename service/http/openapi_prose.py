"""Words for the OpenAPI document: what each call does, what each field means, and examples."""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from predictors.tuning.plan import TooShortHistoryError
from service.contract.vocabulary import meaning
from service.errors import (
    BodyTooLargeError,
    ForbiddenError,
    InternalError,
    InvalidFieldError,
    MalformedJSONError,
    MissingTokenError,
    UnknownQueueError,
    UnknownTuningError,
    UnknownUserError,
    UnsupportedMediaTypeError,
    body_of,
    status_of,
)
from service.store import StoreUnavailableError

Operation = dict[str, Any]

TAGS = (
    ("predictions", "How long jobs will run. Submit filters call these."),
    ("completions", "Runs that have ended: what the service learns from."),
    ("adapters", "The same, as resource managers write their own records."),
    ("methods", "How far off the methods and the forecasts were."),
    ("accuracy", "How well users' requests fit, and priorities that follow from it."),
    ("queues", "The queues of clusters as they are now, and when their jobs will start."),
    ("forecasts", "The same for a queue that comes with the question, on shared nodes too."),
    ("reports", "How requests compared with runtimes, and who has most to gain."),
    ("tunings", "Rounds in which parameters of knn are searched on the cluster's own runs."),
    ("health", "The service itself."),
)
"""What the groups of calls are about, in the order in which they are shown."""

REFUSALS: tuple[Exception, ...] = (
    MalformedJSONError("The body is not JSON: expected value at line 1 column 1."),
    MissingTokenError("This call needs a token: 'Authorization: Bearer wt_…'."),
    ForbiddenError("This call needs a token with scope predict."),
    TooShortHistoryError("Tuning needs 1000 completions, there are 5."),
    BodyTooLargeError("The body has more than 8388608 bytes."),
    UnsupportedMediaTypeError("The body must be sent as application/json."),
    InvalidFieldError("Input should be greater than 0.", "requested_walltime"),
    InternalError("The service failed; its log says why."),
    StoreUnavailableError("The history store cannot be used now."),
)
"""An error of each status, as it may be answered."""

UNKNOWN: tuple[tuple[str, Exception], ...] = (
    ("/v1/users", UnknownUserError("No completed job of user eve was reported.")),
    ("/v1/queues", UnknownQueueError("No queue of cluster hill was handed over.")),
    ("/v1/tunings", UnknownTuningError("There is no round of tuning 17.")),
)
"""What is unknown, by the beginning of the path."""

STARTING = {
    "status": "starting",
    "lag": 17898,
    "stale_seconds": 0.0,
    "detail": None,
    "history": "9c1f0a44d2b7e835",
}
"""What a service says of itself that still reads its history."""


def explain(document: dict[str, Any]) -> None:
    """Put words and examples to everything in the document that has none yet."""
    document["tags"] = [{"name": name, "description": about} for name, about in TAGS]
    recorded = json.loads((files("service") / "data" / "examples.json").read_text("utf-8"))
    for verb, path, operation in operations(document):
        told, _, _ = operation["description"].partition("\n\n")
        operation["summary"] = " ".join(told.split()).removesuffix(".")
        for parameter in operation.get("parameters", ()):
            parameter.setdefault("description", meaning(parameter["name"]))
        show(operation, recorded.get(f"{verb.upper()} {path}", {"asked": {}, "told": {}}))
        show_refusals(operation, path)
    for owner, schema in document["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            field.setdefault("description", meaning(name, owner))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, Operation]]:
    """Verb, path and description of every call."""
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield verb, path, operation


def show(operation: Operation, recorded: dict[str, Any]) -> None:
    """Add what was asked and answered in a session, unless a call has examples of its own."""
    bodies = operation.get("requestBody", {}).get("content", {})
    for kind, examples in recorded["asked"].items():
        if "examples" not in bodies[kind]:
            bodies[kind]["examples"] = by_number(examples)
    for status, examples in recorded["told"].items():
        (content,) = operation["responses"][status]["content"].values()
        content["examples"] = by_number(examples)


def by_number(examples: list[tuple[str, Any]]) -> dict[str, Any]:
    """Examples by a name, as OpenAPI has them."""
    return {
        str(number): {"summary": title, "value": value}
        for number, (title, value) in enumerate(examples, start=1)
    }


def show_refusals(operation: Operation, path: str) -> None:
    """Add an error to each status that is one."""
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            continue
        content = answer["content"]["application/json"]
        if content["schema"].get("$ref", "").endswith("/HealthAnswer"):
            content["example"] = STARTING
        else:
            content["example"] = refusal_of(int(status), path)


def refusal_of(status: int, path: str) -> dict[str, Any]:
    """The body of an error of this status."""
    here = [error for begin, error in UNKNOWN if path.startswith(begin)]
    error = next(each for each in (*REFUSALS, *here) if status_of(each) == status)
    body = body_of(error)
    return {name: getattr(body, name) for name in type(body).__match_args__}
