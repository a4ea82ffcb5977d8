"""How far off predictions were lately, and what is drawn from that."""

import pytest

from predictors.memory.error_ratios import CAPACITY, ErrorRatios, sample

RATIOS = [0.2, 0.5, 0.5, 1.0]


def test_the_latest_ratios_of_runtime_to_prediction_are_kept_in_ascending_order():
    errors = ErrorRatios()
    for runtime in (300.0, 50.0, 100.0):
        errors.add(100.0, runtime)
    assert errors.ascending() == [0.5, 1.0, 3.0]
    for _ in range(CAPACITY):
        errors.add(2.0, 1.0)
    assert errors.ascending() == [0.5] * CAPACITY
    assert CAPACITY == 500
    assert errors.memory.latest_jobs == 5_000


@pytest.mark.parametrize(
    ("least", "position", "ratio"),
    [
        (0.0, 0.0, 0.2),
        (0.0, 0.49, 0.5),
        (0.0, 0.99, 1.0),
        (0.1, 0.0, 0.2),
        (0.2, 0.0, 0.5),  # a running job has exceeded what it is known to have taken
        (0.2, 0.67, 1.0),
        (0.5, 0.0, 1.0),
        (1.0, 0.0, None),
    ],
)
def test_a_ratio_is_drawn_among_those_that_exceed_what_has_passed(least, position, ratio):
    assert sample(RATIOS, least, position) == ratio


def test_where_nothing_is_known_nothing_is_drawn_and_no_time_is_a_ratio_too():
    assert sample([], 0.0, 0.5) is None
    assert sample([0.0, 1.0], 0.0, 0.0) == 0.0
