"""Large nonsense is refused before it is described; what may be valid is not."""

import json

import pytest

from service.contract.outline import LARGE, check_outline
from service.errors import InvalidFieldError


@pytest.mark.parametrize(
    "body",
    [b"[" + b"1," * LARGE + b"1]", b'{"x": [' + b"{}," * LARGE + b"{}]}", b"{" + b"[" * LARGE],
    ids=["a list", "empty objects", "lists in lists"],
)
def test_nonsense_is_refused(body):
    with pytest.raises(InvalidFieldError):
        check_outline(body)


def test_the_smallest_batches_and_queues_pass():
    submissions = [{"requested_walltime": 1}] * 10_000
    check_outline(json.dumps({"submissions": submissions}, separators=(",", ":")).encode())
    jobs = [{"job_id": 1, "requested_walltime": 1, "nodes": ["a"]}] * 10_000
    check_outline(json.dumps({"running": jobs}, separators=(",", ":")).encode())
