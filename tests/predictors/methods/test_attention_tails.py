"""What attention leaves to runtimes that no past run had, worked out by hand."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from predictors.distribution import NO_ROW
from predictors.methods.attention_decision import TAIL_STEPS, mix_tails, tail_values

VALUES, WEIGHTS, PLACES = np.array([100.0, 400.0]), np.array([0.5, 0.5]), np.array([1, 0])


def test_half_of_the_guess_is_below_the_median_and_half_up_to_the_request():
    """25,600 s are 256 times 100 s, which is 2 to the eighth."""
    guessed = tail_values(100.0, 25_600.0)
    assert guessed[:TAIL_STEPS].tolist() == [6.25, 18.75, 31.25, 43.75, 56.25, 68.75, 81.25, 93.75]
    assert guessed[TAIL_STEPS:] == pytest.approx([100.0 * 2**step for step in range(1, 9)])


def test_a_guess_of_two_runs_beside_two_has_half_of_the_weight():
    values, weights, places = mix_tails((VALUES, WEIGHTS), PLACES, 25_600.0, 2.0)
    assert np.array_equal(values, np.sort(np.concatenate((VALUES, tail_values(100.0, 25_600.0)))))
    assert weights[places == NO_ROW] == pytest.approx(np.full(16, 1 / 32))
    assert weights[places != NO_ROW] == pytest.approx([0.25, 0.25])
    assert places[places != NO_ROW].tolist() == [1, 0]


def test_without_a_guess_the_distribution_is_what_it_was():
    values, weights, places = mix_tails((VALUES, WEIGHTS), PLACES, 25_600.0, 0.0)
    assert values is VALUES or np.array_equal(values, VALUES)
    assert np.array_equal(weights, WEIGHTS)
    assert np.array_equal(places, PLACES)


@given(
    seconds=st.lists(st.floats(1.0, 1e6), min_size=1, max_size=30),
    runs=st.floats(0.1, 50.0),
    over=st.floats(1.0, 100.0),
)
@examples(30)
def test_it_stays_a_distribution_with_the_median_that_it_had(seconds, runs, over):
    known = np.sort(np.array(seconds))
    request = float(known[-1]) * over
    weights = np.full(len(known), 1 / len(known))
    values, mixed, places = mix_tails((known, weights), np.arange(len(known)), request, runs)
    assert mixed.sum() == pytest.approx(1)
    assert (np.diff(values) >= 0).all()
    assert values[0] > 0
    assert values[-1] <= request
    middle = known[np.searchsorted(np.cumsum(weights), 0.5)]
    assert mixed[values < middle].sum() <= 0.5 + 1e-9
    assert mixed[values <= middle].sum() >= 0.5 - 1e-9
    assert sorted(places[places != NO_ROW].tolist()) == list(range(len(known)))
