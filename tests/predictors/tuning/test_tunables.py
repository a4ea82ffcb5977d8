"""What is proposed about each subject, and what it costs, worked out by hand."""

import numpy as np
import pytest
from runs import submission

from predictors.tuning import tunables
from predictors.tuning.adoption import NO_CASES, Demand
from predictors.tuning.tunables import BestMethod, RunRecord, TargetPrice

DEMAND = Demand(least_gain=0.1, errors=3.0)


def noted(runtime, user="ada", **said):
    estimates = {name: np.array(each) for name, each in said.items()}
    return RunRecord(user, runtime, 0.0, estimates, submission())


def test_the_cost_of_a_method_is_its_error_and_the_price_where_it_was_too_short():
    """Runs of 100 s and 300 s: a price of 2 is 400 s."""
    runs = [noted(100.0, a=[9.0, 200.0]), noted(300.0, a=[9.0, 200.0])]
    assert BestMethod(1, 2.0, DEMAND).costs("a", runs).tolist() == [100.0, 500.0]
    exact = [noted(100.0, a=[100.0]), noted(300.0, a=[300.0])]
    assert BestMethod(0, 2.0, DEMAND).costs("a", exact).tolist() == [0.0, 0.0]


def test_no_method_is_proposed_or_judged_without_runs():
    assert BestMethod(0, 1.0, DEMAND).propose("a", []) is None
    assert BestMethod(0, 1.0, DEMAND).judge("a", "b", []) is NO_CASES
    price = TargetPrice([0.0, 1.0], "a", 0.1, DEMAND)
    assert price.propose(1.0, []) is None
    assert price.judge(1.0, 0.0, []) is NO_CASES


def too_short(*shares, runs=20):
    """Runs of which these shares are underestimated at each of the prices, first by the first."""
    return [
        noted(
            100.0, a=[50.0 if place < share * runs else 150.0 for share in shares], user=f"u{place}"
        )
        for place in range(runs)
    ]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (0.6, 0.0),
        (0.5, 0.0),
        # Between 0 and 1 the price is half way by log (1 + price), and between 1 and 3, too.
        (0.35, 2**0.5 - 1),
        (0.2, 1.0),
        (0.15, 2 * 2**0.5 - 1),
        (0.1, 3.0),
        (0.05, 3.0),
    ],
)
def test_a_price_lies_between_those_whose_rates_are_known(rate, expected):
    price = TargetPrice([0.0, 1.0, 3.0], "a", rate, DEMAND)
    assert price.propose(9.0, too_short(0.5, 0.2, 0.1)) == round(expected, 3)
    assert price.propose(round(expected, 3), too_short(0.5, 0.2, 0.1)) is None


def test_an_answer_that_is_exact_is_not_too_short():
    exact = [noted(100.0, a=[100.0, 100.0])] * 9
    assert TargetPrice([0.0, 1.0], "a", 0.1, DEMAND).propose(9.0, exact) == 0.0


def test_a_rate_that_rises_with_the_price_once_counts_as_if_it_had_not():
    """0.5, 0.2, 0.3, 0.1: the price of 1 reaches 0.2, and behind 3 it falls on to 0.1."""
    price = TargetPrice([0.0, 1.0, 3.0, 7.0], "a", 0.15, DEMAND)
    assert price.propose(9.0, too_short(0.5, 0.2, 0.3, 0.1)) == round(4 * 2**0.5 - 1, 3)


def test_a_price_gains_by_how_much_nearer_its_rate_is():
    price = TargetPrice([0.0, 1.0, 3.0], "a", 0.2, Demand(errors=0.0))
    runs = too_short(0.5, 0.2, 0.1)
    assert price.judge(0.0, 1.0, runs).gain == pytest.approx(0.3)
    assert price.judge(1.0, 0.0, runs).gain == pytest.approx(-0.3)
    assert price.judge(0.0, 3.0, runs).gain == pytest.approx(0.3 - 0.1)
    assert price.judge(3.0, 1.0, runs).gain == pytest.approx(0.1)
    # Half way by log (1 + price) half as many fewer are too short.
    assert price.judge(0.0, 2**0.5 - 1, runs).gain == pytest.approx(0.15)
    assert price.judge(99.0, 1.0, runs).gain == pytest.approx(0.1)


def test_the_noise_of_a_price_is_that_of_the_runs_it_moves():
    """Of 20 runs the first six are no longer too short, in three of ten stretches of two.

    A stretch is off its mean by 1.4 in those three, by 0.6 in the other seven: 8.4 squared.
    """
    price = TargetPrice([0.0, 1.0, 3.0], "a", 0.2, DEMAND)
    for old, new in ((0.0, 1.0), (1.0, 0.0)):
        verdict = price.judge(old, new, too_short(0.5, 0.2, 0.1))
        assert verdict.error == pytest.approx((8.4 * 10 / 9) ** 0.5 / 20)
        assert verdict.cases == 20


def test_what_is_known_before_any_round():
    assert tunables.CANDIDATES == ("attention", "least-cost", "forest")
    assert tunables.FIRST == "attention"
