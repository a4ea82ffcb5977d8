"""What wins on later runs by more than noise is in force, and what loses afterwards is dropped."""

from typing import NamedTuple

import numpy as np

from predictors.tuning.adoption import Adopted, Demand, adopt_or_revert, compare

DEMAND = Demand()


class Run(NamedTuple):
    """A run that has ended, and predictions by method."""

    user: str
    runtime: float
    end: float
    said: dict[str, float]


class Method:
    """Proposes the method of least error, and judges by errors."""

    name = "method"

    def propose(self, now, older):
        if not older:
            return None
        best = min(older[0].said, key=lambda method: self.errors(method, older).mean())
        return None if best == now else best

    def judge(self, old, new, later):
        users = [run.user for run in later]
        return compare(self.errors(old, later), self.errors(new, later), users, DEMAND)

    def errors(self, method, runs):
        return np.array([abs(run.said[method] - run.runtime) for run in runs])


def runs(first, last, good, bad, *, users=20, seed=1):
    """Runs of 600 s or so; the good method is off by a minute, the bad one by an hour or so."""
    random = np.random.default_rng(seed)
    for number in range(first, last):
        runtime = 600.0 + random.normal(0, 60)
        said = {
            good: runtime + abs(random.normal(60, 10)),
            bad: runtime + abs(random.normal(3600, 600)),
        }
        yield Run(f"u{number % users}", runtime, float(number), said)


def best():
    return Method()


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
        said = {name: 600.0 + random.uniform(0, 1000) for name in ("attention", "least-cost")}
        said["attention"] += seconds_worse
        since.append(Run(f"u{number % 20}", 600.0, float(number), said))
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
    change, held = after_adoption(30.0)
    assert -change.review.error < change.review.gain < 0
    assert (change.action, held.now) == ("kept", "attention")


def test_a_gain_on_the_runs_it_was_made_on_is_none_if_later_ones_lack_it():
    older = list(runs(0, 300, "attention", "least-cost"))
    later = list(runs(300, 500, "least-cost", "attention"))
    change, held = adopt_or_revert(best(), Adopted(now="least-cost"), older, later)
    assert change.action == "kept"
    assert change.verdict.gain < 0
    assert held.now == "least-cost"


def test_two_methods_that_are_alike_are_not_exchanged():
    random = np.random.default_rng(5)

    def alike(first, last):
        for number in range(first, last):
            said = {name: random.uniform(60, 3600) for name in "ab"}
            yield Run(f"u{number % 20}", random.uniform(60, 3600), float(number), said)

    changes = [
        adopt_or_revert(best(), Adopted(now="a"), list(alike(0, 300)), list(alike(300, 400)))
        for _ in range(20)
    ]
    assert [change.action for change, _ in changes].count("adopted") <= 2
