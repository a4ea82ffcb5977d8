"""What is proposed about each subject, and what it costs, worked out by hand."""

import numpy as np
import pytest

from predictors.methods.attention_context import CONTEXT
from predictors.methods.attention_features import FEATURES
from predictors.methods.attention_weights import NOTHING_LEARNED, Weights, zeros
from predictors.tuning import subjects
from predictors.tuning.fine_tuning import Case, FineTuning
from predictors.tuning.stretch import Noted
from predictors.tuning.subjects import AttentionWeights, BestMethod, TargetPrice
from predictors.tuning.verdict import NO_CASES, Demand, Verdict

MARK = FEATURES.index("scaled")
NO_RUNS = (np.empty(0), np.empty(0))
DEMAND = Demand(least_gain=0.1, errors=3.0)


def knowing():
    """Weights that are sure of the value that bears the mark."""
    layers = zeros(1, 1)
    layers[6][MARK] = 50
    return Weights(layers=layers, origin={"fine_tuned_on": 7})


def case(marked, runtime, user="ada"):
    """A run that may take 500 s or 1500 s, one of which bears the mark."""
    features = np.zeros((len(FEATURES), 3), np.float32)
    features[MARK, (500.0, 1500.0).index(marked)] = 1
    values = np.array([500.0, 1500.0, 3600.0])
    context = np.zeros(len(CONTEXT), np.float32)
    return Case(features, values, context, NO_RUNS, runtime, 3600.0, user)


def noted(runtime, case=None, user="ada", **said):
    return Noted(user, runtime, 0.0, case, {name: np.array(each) for name, each in said.items()})


def of_weights():
    return AttentionWeights(FineTuning(), DEMAND, 3.0)


def test_the_cost_of_weights_is_the_error_and_the_price_where_an_answer_is_too_short():
    """530 s and 1530 s are said. Runs of 500 s and 1500 s take 1000 s in the mean."""
    found = of_weights().costs(knowing(), [case(500.0, 500.0), case(1500.0, 1500.0)])
    assert found == pytest.approx([30.0, 30.0])
    found = of_weights().costs(knowing(), [case(500.0, 440.0), case(1500.0, 1560.0)])
    assert found == pytest.approx([90.0, 30.0 + 3 * 1000.0])


@pytest.mark.parametrize("nearer", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("cheaper", [(False, False), (True, False), (False, True)])
def test_weights_win_by_distance_and_cost_and_lose_by_either(monkeypatch, nearer, cheaper):
    asked = []

    def verdict(outcome, gain):
        wins, loses = outcome
        return Verdict(cases=2, gain=gain, error=0.01, wins=wins, loses=loses)

    def compare(before, after, users, demand):
        asked.append((before.mean() > after.mean(), list(users), demand))
        return verdict(cheaper, 0.25)

    monkeypatch.setattr(subjects, "judge", lambda *_: verdict(nearer, 0.5))
    monkeypatch.setattr(subjects, "compare", compare)
    later = [
        noted(500.0, case(500.0, 500.0)),
        noted(9.0),
        noted(1500.0, case(1500.0, 1500.0, "bob")),
    ]
    found = of_weights().judge(NOTHING_LEARNED, knowing(), later)
    assert asked == [(True, ["ada", "bob"], Demand(least_gain=0.0, errors=1.5))]
    assert (found.gain, found.cost, found.cases) == (0.5, 0.25, 2)
    assert found.wins == (nearer[0] and cheaper[0])
    assert found.loses == (nearer[1] or cheaper[1])


def test_without_cases_nothing_is_judged():
    assert of_weights().judge(NOTHING_LEARNED, knowing(), [noted(9.0)]) is NO_CASES


def test_weights_are_told_by_a_digest_and_by_what_they_were_tuned_on():
    told, other = of_weights().described(knowing()), of_weights().described(NOTHING_LEARNED)
    assert len(told["weights"]) == 12
    assert told["weights"] != other["weights"]
    assert (told["fine_tuned_on"], other["fine_tuned_on"]) == (7, 0)


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
    assert subjects.CANDIDATES == ("attention", "least-cost")
    assert subjects.FIRST == "attention"
    assert subjects.FEWEST_CASES == 500
