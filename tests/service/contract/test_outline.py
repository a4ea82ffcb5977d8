"""Large nonsense is refused before it is described; what may be valid is not."""

import json

import pytest

from service.contract.outline import LARGE, check_outline
from service.errors import InvalidFieldError

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
