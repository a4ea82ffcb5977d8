"""What counts as a gain, by hand."""

from math import inf, sqrt

import numpy as np
import pytest

from predictors.tuning.adoption import NO_CASES, Demand, compare, noise, standard_error, verdict_of

ONE_USER = ["ann"] * 10
QUARTER = Demand(least_gain=0.25, errors=0.0)


@pytest.mark.parametrize(
    ("gain", "wins", "loses"),
    [
        (0.25, False, False),
        (0.2501, True, False),
        (0.0, False, False),
        (-0.125, False, False),
        (-0.1251, False, True),
    ],
)
def test_a_change_wins_above_what_is_demanded_and_loses_below_half_of_it(gain, wins, loses):
    verdict = verdict_of(np.full(10, gain), ONE_USER, QUARTER)
    assert (verdict.cases, verdict.wins, verdict.loses) == (10, wins, loses)


def test_a_gain_is_relative_to_the_mean_cost_and_has_to_exceed_its_noise():
    before, after = np.full(10, 4.0), np.array([3.0] * 5 + [1.0] * 5)
    verdict = compare(before, after, ONE_USER, Demand(errors=2.0))
    # Ten observations of 1/4 and 3/4: each is a quarter from their mean.
    assert verdict.gain == pytest.approx(0.5)
    assert verdict.error == pytest.approx(0.25 / 3)
    assert verdict.wins
    assert not compare(before, after, ONE_USER, Demand(errors=6.1)).wins
    assert compare(before, after, ONE_USER, Demand(errors=5.9)).wins


def test_usually_a_gain_is_two_thousandths_and_significant_at_five_percent():
    assert (Demand().least_gain, Demand().errors) == (0.002, 1.65)


def test_without_runs_nothing_is_known():
    nothing = np.zeros(0)
    assert compare(nothing, nothing, [], Demand()) is NO_CASES
    assert verdict_of(nothing, [], Demand()) is NO_CASES
    assert not NO_CASES.wins
    assert not NO_CASES.loses
    assert NO_CASES.cases == NO_CASES.gain == 0
    alone = verdict_of(np.array([9.0]), ["ann"], Demand())
    assert (alone.error, alone.wins) == (None, False)


def test_gains_of_one_group_are_one_observation():
    assert standard_error(np.array([1.0, -1.0]), np.array([0, 1])) == pytest.approx(1.0)
    assert standard_error(np.array([1.0, 1, -1, -1]), np.array([7, 7, 9, 9])) == pytest.approx(1.0)
    assert standard_error(np.array([1.0, -1.0]), np.array([3, 3])) == inf


def test_noise_is_that_of_users_or_that_of_days_whichever_is_larger():
    of_users = np.tile([1.0, -1.0], 10)  # each stretch of two runs has one of either user
    assert noise(of_users, ["ann", "bob"] * 10) == pytest.approx(sqrt(20 * 20 / 19) / 20)
    of_days = np.repeat([1.0, -1.0] * 5, 2)
    assert noise(of_days, ["ann", "bob"] * 10) == pytest.approx(sqrt(40 * 10 / 9) / 20)


def test_each_user_is_told_from_all_others_in_each_stretch_of_time():
    """The two of twenty users who gain are one observation each: 2 x 0.81 + 18 x 0.01 squared."""
    gains = np.zeros(20)
    gains[0] = gains[2] = 1.0
    others = (f"u{number:02}" for number in range(20) if number not in {0, 10})
    users = ["u10", next(others), "u00", *others]
    assert noise(gains, users) == pytest.approx(sqrt(1.8 * 20 / 19) / 20)
