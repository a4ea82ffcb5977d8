"""How reports say durations."""

import doctest

import pytest

from terminal import words
from terminal.words import change, changes, counted, duration, one_in, told_apart, usual


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(40, "40 s"), (89 * 60, "89 min"), (91 * 60, "1.5 h"), (99.6 * 3600, "4.2 days"), (None, "-")],
)
def test_a_duration_has_the_unit_of_its_size(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.3, "0.3 s"), (-0.3, "-0.3 s"), (0.042, "0.04 s"), (0.96, "1 s"), (1e-9, "0 s"), (0, "0 s")],
)
def test_a_duration_below_a_second_is_not_nothing(seconds, said):
    assert duration(seconds) == said


def test_a_duration_beside_another_has_its_unit():
    assert duration(91 * 60, beside=89 * 60) == "91 min"
    assert duration(89 * 60, beside=91 * 60) == "1.5 h"


def test_a_negative_duration_that_is_rounded_to_nothing_has_no_sign():
    assert (duration(-3, beside=7200), duration(-0.0001)) == ("0.0 h", "0 s")
    assert duration(-600, beside=7200) == "-0.2 h"


def test_a_duration_beside_a_far_longer_one_keeps_its_unit_and_is_not_rounded_to_nothing():
    assert duration(40, beside=7200) == "<0.1 h"
    assert duration(20, beside=600) == "<1 min"
    assert duration(0, beside=7200) == "0.0 h"


def test_a_column_has_the_unit_of_its_median():
    hours = usual([None, 0, 84 * 60, 6000, 5.5 * 3600])
    assert [duration(each, beside=hours) for each in (5040, 19800)] == ["1.4 h", "5.5 h"]
    assert usual([None, 0]) is None


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (100 * 60, 101 * 60, ("100 min", "101 min")),
        (100 * 60, 80 * 60, ("1.7 h", "1.3 h")),
        (70, 66, ("70 s", "66 s")),
        (100.2 * 3600, 100.1 * 3600, ("100.2 h", "100.1 h")),
        (20, 20.1, ("20 s", "20 s")),
    ],
)
def test_two_durations_that_differ_are_told_apart(one, other, said):
    assert told_apart(one, other) == said


def test_one_thing_is_no_plural():
    assert [counted(number, "job") for number in (0, 1, 2400)] == ["0 jobs", "1 job", "2,400 jobs"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (-0.1, "\u221210%"), (0.034, "+3%"), (0.0, "0%"), (-0.0004, "0%"), (-0.002, "\u22120.2%"),
        (0.0046, "+0.5%"),
    ],
)  # fmt: skip
def test_a_change_has_its_sign_however_small_it_is(part, said):
    assert change(part) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-0.12, 0.034, "\u221212..+3%"), (-0.1, 0.002, "\u221210..+0.2%"), (0.0, 0.0004, "0%"),
        (0.051, 0.053, "+5%"),
    ],
)  # fmt: skip
def test_a_range_of_changes_has_one_percent_sign_and_the_signs_of_both_ends(low, high, said):
    assert changes(low, high, to="..") == said


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (0.084, "one job in 12"), (1 / 3, "one job in 3"), (0.4, "40% of the jobs"),
        (0.0002, "one job in 5,000"), (0.0, "0% of the jobs"),
    ],
)  # fmt: skip
def test_a_share_is_one_of_how_many_only_where_that_says_the_same(part, said):
    assert one_in(part) == said


def test_the_examples_of_words_hold():
    result = doctest.testmod(words)
    assert (result.failed, result.attempted) == (0, 2)
