"""Single values of records, at the edges of what they may be."""

import doctest
from datetime import UTC

import pytest

from service.adapters import pbs, values
from service.adapters.values import count, kibibytes, moment, number, text
from terminal.words import clock

WRAPPED = {"set": True, "infinite": False, "number": 8}


@pytest.mark.parametrize(
    ("value", "name"),
    [(7, "7"), ("a\nb", "a?b"), ("x" * 256, "x" * 255), (True, None), (1.5, None), ({}, None)],
)
def test_a_name_is_text_or_a_whole_number(value, name):
    assert text(value) == name


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (-0.5, None),
        (4294967293, 4294967293),
        (4294967294, None),
        (4294967295, None),
        (2**64 - 2, None),
        (1e15 - 1, 1e15 - 1),
        (1e15, None),
        (WRAPPED, 8),
        (WRAPPED | {"set": False}, None),
        (WRAPPED | {"infinite": True}, None),
        ("0" * 253 + "1", 1),
        ("0" * 254 + "1", None),
        ("many", None),
    ],
)
def test_a_number_is_set_finite_and_of_a_size_that_jobs_have(value, expected):
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(1, 1), (0.5, None), (0, None), (2**31 - 1, 2**31 - 1), (2**31, None)]
)
def test_things_are_counted_from_one_to_what_a_machine_can_have(value, expected):
    assert count(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(1e9, 1e9), (0, None), (5, None), ("2031-02-03T04:05", None)]
)
def test_a_moment_is_after_the_beginning_of_time(value, expected):
    assert moment(value, UTC) == expected


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90", 90),
        ("90.5", 90),
        ("1:02", 62),
        ("1:02:03", 3723),
        ("1:02:03:04", 86400 + 7384),
        ("2-1:02:03", 2 * 86400 + 3723),
        ("1:2:3:4:5", None),
        (90, None),
    ],
)
def test_a_clock_is_read_from_its_seconds(written, seconds):
    assert clock(written) == seconds


@pytest.mark.parametrize(
    ("written", "unit", "kib"),
    [
        ("500", "m", 500 * 1024),
        ("2048", "", 2),
        ("2048b", "m", 2),
        ("1", "", 1 / 1024),
        ("3k", "m", 3),
        ("1.5G", "m", 1.5 * 1024**2),
        ("2kw", "m", 16),
        ("1024w", "m", 8),
        ("0M", "m", None),
        ("much", "m", None),
    ],
)
def test_sizes_are_read_in_every_unit(written, unit, kib):
    assert kibibytes(written, unit=unit) == kib


@pytest.mark.parametrize("module", [values, pbs])
def test_the_examples_of_conversions_are_true(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
