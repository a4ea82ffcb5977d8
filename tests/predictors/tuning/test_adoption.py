"""What wins on later runs by more than noise is in force, and what loses afterwards is dropped."""

import numpy as np
import pytest
from runs import submission

from predictors.tuning.adoption import Adopted, Demand, adopt_or_revert
from predictors.tuning.tunables import BestMethod, RunRecord, TargetPrice

PRICES = (0.0, 1.0, 4.0)
DEMAND = Demand()


def runs(first, last, good, bad, *, users=20, seed=1):
    """Runs of 600 s or so; the good method is off by a minute, the bad one by an hour or so."""
    random = np.random.default_rng(seed)
    for number in range(first, last):
        runtime = 600.0 + random.normal(0, 60)
        said = {
            good: np.full(3, runtime + abs(random.normal(60, 10))),
            bad: np.full(3, runtime + abs(random.normal(3600, 600))),
        }
        yield RunRecord(f"u{number % users}", runtime, float(number), said, submission())


def best():
    return BestMethod(1, 1.0, DEMAND)


def test_a_method_that_costs_less_on_later_runs_is_adopted_and_dropped_when_it_loses():
    older = list(runs(0, 300, "attention", "least-cost"))
    later = list(runs(300, 500, "attention", "least-cost"))
    change, held = adopt_or_revert(best(), Adopted(now="least-cost"), older, later)
    assert (change.action, change.before, change.after) == ("adopted", "least-cost", "attention")
    assert change.verdict.cases == 200
    assert change.verdict.gain > 0.9
    assert (held.now, held.before, held.since) == ("attention", "least-cost", 499.0)

    kept, same = adopt_or_revert(
        best(), held, older + later, list(runs(500, 700, "attention", "least-cost"))
    )
    assert (kept.action, same) == ("kept", held)

    turned = list(runs(500, 700, "least-cost", "attention"))
    change, held = adopt_or_revert(best(), held, older + later, turned)
    assert (change.action, change.before, change.after) == ("dropped", "attention", "least-cost")
    assert change.review.cases == 200
    assert change.review.gain < -0.9
    assert (held.now, held.before) == ("least-cost", None)


def after_adoption(seconds_worse):
    """A review of attention, whose answers are some seconds longer than least-cost's."""
    random = np.random.default_rng(3)
    held = Adopted(now="attention", before="least-cost", since=499.0)
    since = []
    for number in range(500, 700):
        said = {name: 600.0 + random.uniform(0, 1000, 3) for name in ("attention", "least-cost")}
        said["attention"] += seconds_worse
        since.append(RunRecord(f"u{number % 20}", 600.0, float(number), said, submission()))
    return adopt_or_revert(best(), held, [], since)


def test_what_was_adopted_is_dropped_by_half_the_loss_that_would_have_had_to_be_a_gain():
    change, held = after_adoption(50.0)
    assert -2 * change.review.error < change.review.gain < -change.review.error
    assert (change.action, held) == ("dropped", Adopted(now="least-cost"))


def test_what_was_adopted_at_an_unknown_time_is_judged_on_all_runs():
    held = Adopted(now="attention", before="least-cost")
    runs_of_both = list(runs(0, 80, "attention", "least-cost"))
    change, _ = adopt_or_revert(best(), held, runs_of_both[:60], runs_of_both[60:])
    assert change.review.cases == 80


def test_what_was_adopted_is_kept_while_it_loses_by_less():
    change, held = after_adoption(10.0)
    assert -change.review.error < change.review.gain < 0
    assert (change.action, held.now) == ("kept", "attention")


def test_a_gain_on_the_runs_it_was_made_on_is_none_if_later_ones_lack_it():
    older = list(runs(0, 300, "attention", "least-cost"))
    later = list(runs(300, 500, "least-cost", "attention"))
    change, held = adopt_or_revert(best(), Adopted(now="least-cost"), older, later)
    assert change.action == "kept"
    assert change.verdict.gain < 0
    assert held.now == "least-cost"


def test_what_wins_on_all_runs_has_to_gain_on_the_latest_too():
    older = list(runs(0, 600, "least-cost", "attention"))
    later = list(runs(600, 800, "attention", "least-cost"))
    adopted = Adopted(now="attention")
    change, _ = adopt_or_revert(best(), adopted, older, later, [*older, *later])
    assert (change.action, change.verdict.gain > 0) == ("kept", True)


def test_two_methods_that_are_alike_are_not_exchanged():
    random = np.random.default_rng(5)

    def alike(first, last):
        for number in range(first, last):
            said = {name: np.full(3, random.uniform(60, 3600)) for name in "ab"}
            yield RunRecord(
                f"u{number % 20}", random.uniform(60, 3600), float(number), said, submission()
            )

    changes = [
        adopt_or_revert(
            BestMethod(1, 1.0, DEMAND), Adopted(now="a"), list(alike(0, 300)), list(alike(300, 400))
        )
        for _ in range(20)
    ]
    assert [change.action for change, _ in changes].count("adopted") <= 2


def priced(first, last, seed=2):
    """The higher the price, the longer the answer: 0.5, 0.2 and 0.05 of the runs are too short."""
    random = np.random.default_rng(seed)
    for number in range(first, last):
        runtime = random.uniform(0, 1000)
        said = {"attention": np.array([500.0, 800.0, 950.0])}
        yield RunRecord(f"u{number % 50}", runtime, float(number), said, submission())


@pytest.mark.parametrize(("rate", "expected"), [(0.5, 0.0), (0.2, 1.0), (0.05, 4.0), (0.01, 4.0)])
def test_the_price_is_found_that_reaches_a_rate(rate, expected):
    subject = TargetPrice(PRICES, "attention", rate, DEMAND)
    now = 4.0 if expected < 4 else 0.0
    change, held = adopt_or_revert(
        subject, Adopted(now=now), list(priced(0, 3000)), list(priced(3000, 4000))
    )
    assert change.action == "adopted"
    assert held.now == pytest.approx(expected, abs=0.2)
    assert change.verdict.gain > 0.1


def test_a_price_that_is_right_already_is_left_alone():
    subject = TargetPrice(PRICES, "attention", 0.2, DEMAND)
    change, held = adopt_or_revert(
        subject, Adopted(now=1.0), list(priced(0, 3000)), list(priced(3000, 4000, seed=3))
    )
    assert change.action == "kept"
    assert held.now == 1.0
