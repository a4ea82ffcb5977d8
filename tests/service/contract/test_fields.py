"""The msgspec decoder takes nothing that the model refuses, and makes the same of the rest.

Large nonsense is refused before it is described; what may be valid is not.
"""

import json

import msgspec
import pytest
from asgi_client import run_of
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from service.contract.bodies import (
    CompletionBatch,
    CompletionBody,
    ExtensionRequest,
    PredictionRequest,
)
from service.contract.fields import LARGE, LIVE_POLICIES, check_outline, msgspec_first, struct_of
from service.contract.queue_bodies import QueueBody
from service.errors import InvalidFieldError
from simulator.engine.policies import POLICIES

by_msgspec = msgspec_first(CompletionBatch)
decode = msgspec.json.Decoder(struct_of(CompletionBatch)).decode
validate = TypeAdapter(CompletionBatch).validate_json

TEXTS = st.one_of(
    st.text(max_size=4),
    st.sampled_from(["", "a" * 256, "a" * 257, "ä" * 256, "\x00", "\x7f", "\x85", "\u2028", "é"]),
)
NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from(
        [0, -0.0, 1e9, 1.0000001e9, 1e11, 2**31 - 1, 2**31, 2**53 - 1, 2**53, 4.0, 1e308, 5e-324]
    ),
)
VALUES = st.one_of(
    TEXTS,
    NUMBERS,
    st.sampled_from([None, True, [], {}, "2024-01-01T00:00:00Z", "completed", "done"]),
)
FIELDS = st.sampled_from([*CompletionBody.model_fields, "usr"])
RUNS = st.dictionaries(FIELDS, VALUES, max_size=4).map(lambda change: run_of("1") | change)


def outcome(function, body):
    """What a validator makes of a body."""
    try:
        return function(body).runs()
    except (ValidationError, InvalidFieldError) as error:
        return str(error)


@examples(300)
@given(runs=st.lists(RUNS, max_size=3), escapes=st.booleans(), is_cut=st.booleans())
@example(runs=[run_of("1", user="a\tb")], escapes=False, is_cut=False)
def test_both_make_the_same_of_a_body(runs, escapes, is_cut):
    body = json.dumps({"completions": runs}, ensure_ascii=escapes).encode()
    body = body[: len(body) // 2] if is_cut else body
    assert outcome(by_msgspec, body) == outcome(validate, body)


@examples(300)
@given(st.binary(max_size=12), st.integers(0, 400))
@example(b"\xff", 30)
@example(b"\t", 30)
@example(b"\xc2\x85", 30)
@example(b'"user": "eve", ', 17)
def test_both_make_the_same_of_a_damaged_body(damage, place):
    body = json.dumps({"completions": [run_of("1", user="ada" * 20)]}).encode()
    body = body[:place] + damage + body[place:]
    assert outcome(by_msgspec, body) == outcome(validate, body)


def test_ordinary_bodies_take_the_quick_way():
    body = json.dumps({"completions": [run_of("1"), run_of(2, requested_processors=4)]}).encode()
    assert decode(body).runs() == validate(body).runs()


@pytest.mark.parametrize("text", ["a", "ä" * 256, "日本"])
def test_text_that_is_not_ascii_takes_the_quick_way_too(text):
    body = json.dumps({"completions": [run_of("1", user=text)]}, ensure_ascii=False).encode()
    assert decode(body).completions[0].user == text


PREDICTIONS = st.dictionaries(
    st.sampled_from([*PredictionRequest.model_fields, "usr"]), VALUES, max_size=4
).map(lambda change: {"requested_walltime": 3600.0, "user": "ada"} | change)


def submission_of(validator, body):
    """What a validator makes of a request for a prediction."""
    try:
        taken = validator(body)
    except ValidationError as error:
        return str(error)
    return taken.submission(0.0), taken.job_id, taken.method


@examples(300)
@given(request=PREDICTIONS, escapes=st.booleans())
@example(request={"requested_walltime": 3600, "method": "knn", "job_id": 7}, escapes=False)
def test_both_make_the_same_of_a_request_for_a_prediction(request, escapes):
    body = json.dumps(request, ensure_ascii=escapes).encode()
    validate = TypeAdapter(PredictionRequest).validate_json
    assert submission_of(msgspec_first(PredictionRequest), body) == submission_of(validate, body)


def test_a_running_job_takes_the_quick_way_with_its_submission():
    job = {"requested_walltime": 3600.0, "predicted_walltime": 60.0, "elapsed": 60.0}
    body = json.dumps(job | {"submission": {"requested_walltime": 3600.0, "user": "ada"}}).encode()
    decoded = msgspec.json.Decoder(struct_of(ExtensionRequest)).decode(body)
    expected = ExtensionRequest.model_validate_json(body)
    assert decoded.submission.submission(0.0) == expected.submission.submission(0.0)


@pytest.mark.parametrize("field", ["order", "policy"])
def test_a_word_that_is_none_of_those_allowed_is_refused_on_both_ways(field):
    body = {"pools": [{"processors": 4}], field: "AAA"}
    with pytest.raises(ValidationError, match="Input should be 'fcfs'"):
        msgspec_first(QueueBody)(json.dumps(body).encode())
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.Decoder(struct_of(QueueBody)).decode(json.dumps(body).encode())


def test_the_policies_of_live_queues_are_policies_of_the_simulator():
    assert set(LIVE_POLICIES) <= set(POLICIES)


BATCH = {"submissions": [{"requested_walltime": 1}] * 10_000}
NONSENSE = {
    "a list": b"[" + b"1," * LARGE + b"1]",
    "empty objects": b'{"x": [' + b"{}," * LARGE + b"{}]}",
    "numbers": b'{"method": [' + b"1," * 1_000_000 + b"1]}",
    "lists in lists": b"{" + b"[" * LARGE,
    "fields": json.dumps({f"k{n}": n for n in range(LARGE)}).encode(),
    "fields of an item": json.dumps({"jobs": [{}, {f"k{n}": n for n in range(LARGE)}]}).encode(),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_refused(kind):
    with pytest.raises(InvalidFieldError) as refused:
        check_outline(NONSENSE[kind])
    assert refused.value.field == "body"


@pytest.mark.parametrize(
    "document",
    [BATCH, {"running": [{"job_id": 1, "nodes": ["a"]}] * 10_000}, BATCH | {"method": "knn"}],
)
def test_the_smallest_batches_and_queues_pass(document):
    body = json.dumps(document, separators=(",", ":")).encode()
    assert len(body) > LARGE
    check_outline(body)


@pytest.mark.parametrize("body", [b'{"submissions": ' + b" " * LARGE, b"{" + b"\xff" * LARGE])
def test_what_is_no_json_is_left_to_the_validator(body):
    check_outline(body)
