"""Large nonsense is refused before it is described; what may be valid is not."""

import json

import pytest

from service.contract.bodies import CompletionBatch, CompletionBody, PredictionBatch
from service.contract.outline import LARGE, fields_of, plausible
from service.errors import InvalidFieldError

NAMES = ("submissions", "running", "method")
BATCH = {"submissions": [{"requested_walltime": 1}] * 10_000}
NONSENSE = {
    "a list": (b"[" + b"1," * LARGE + b"1]", "body"),
    "empty objects": (b'{"x": [' + b"{}," * LARGE + b"{}]}", "body"),
    "numbers": (b'{"method": [' + b"1," * 1_000_000 + b"1]}", "body"),
    "lists in lists": (b"{" + b"[" * LARGE, "body"),
    "lists in lists with room between": (b'{"method":' + (b"[" + b" " * 9) * LARGE, "body"),
    "lists in an item": (b'{"submissions":[' + (b"[" + b" " * 9) * LARGE, "body"),
    "unknown fields": (json.dumps({f"k{n}": n for n in range(LARGE)}).encode(), "k0"),
    "a long text": (json.dumps({"method": "a" * LARGE}).encode(), "method"),
    "unknown fields of an item": (
        json.dumps({"submissions": [{}, {f"k{n}": n for n in range(LARGE)}]}).encode(),
        "submissions.1",
    ),
}


def passed(body: bytes) -> bytes:
    """The body, if it comes as far as the validator."""
    return plausible(lambda body: body, NAMES)(body)


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_refused_and_its_field_named(kind):
    body, field = NONSENSE[kind]
    with pytest.raises(InvalidFieldError) as refused:
        passed(body)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "document",
    [BATCH, {"running": [{"job_id": 1, "nodes": ["a"]}] * 10_000}, BATCH | {"method": "knn"}],
)
def test_the_smallest_batches_and_queues_pass(document):
    body = json.dumps(document, separators=(",", ":")).encode()
    assert len(body) > LARGE
    assert passed(body) == body


@pytest.mark.parametrize("body", [b'{"submissions": ' + b" " * LARGE, b"{" + b"\xff" * LARGE])
def test_what_is_no_json_is_left_to_the_validator(body):
    assert passed(body) == body


def test_the_fields_are_those_of_all_models():
    assert fields_of(PredictionBatch) >= {"submissions", "method"}
    assert fields_of(CompletionBody | CompletionBatch) >= {"completions", "end_time"}
