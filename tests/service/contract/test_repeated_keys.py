"""A key that an object has twice is refused by its path, and nothing else is."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.contract.repeated_keys import each_key_once
from service.errors import InvalidFieldError

check: Callable[[bytes], object] = each_key_once(json.loads)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"a": 1, "a": 2}', "a"),
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "b.c"),
        ('{"runs": [{"a": 1}, {"a": 1, "b": 2, "a": 3}]}', "runs.1.a"),
        ('{"a": [[{"x": 1, "x": 2}]]}', "a.0.0.x"),
        (r'{"a\u0062": 1, "ab": 2}', "ab"),
        ('{"a" :1,"a"\n: 2}', "a"),
        ('{"a": ":", "a": ":"}', "a"),
        ('{"": 1, "": 2}', ""),
    ],
)
def test_a_key_given_twice_is_named(body, field):
    with pytest.raises(InvalidFieldError) as refused:
        check(body.encode())
    assert refused.value.field == (field or "body")


@pytest.mark.parametrize(
    "body",
    [
        '{"a": "b: c", "b": "12:00:00"}',
        '{"runs": [{"a": 1}, {"a": 1}], "a": 1}',
        r'{"a": "\"a\": 1"}',
        '{"a": {"a": {"a": 1}}}',
        "[]",
    ],
)
def test_the_same_key_in_several_objects_is_fine(body):
    assert check(body.encode()) == json.loads(body)


documents = st.recursive(
    st.none() | st.integers() | st.text(':a"\\ ', max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(':ab"\\', max_size=2), inner, max_size=3),
)  # fmt: skip


@given(documents)
def test_no_document_without_such_keys_is_refused(document):
    assert check(json.dumps(document).encode()) == document


@given(st.dictionaries(st.text(':ab"\\', max_size=2), documents, min_size=1), st.data())
def test_every_document_with_one_is_refused(document, data):
    again = data.draw(st.sampled_from(sorted(document)))
    body = f'{json.dumps(document)[:-1]}, {json.dumps(again)}: "again"}}'
    with pytest.raises(InvalidFieldError):
        check(body.encode())
