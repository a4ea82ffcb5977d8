"""Rounds in a simulation look at as many runs as those of a service."""

import numpy as np
from runs import ended

from predictors.tuning import cluster_round
from predictors.tuning.cluster_round import SimulatedRounds
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan


def test_a_round_looks_at_the_learned_runs_and_at_the_test_runs_after_them():
    plan = TuningPlan(learned=600, test=100)
    rounds = SimulatedRounds(first="least-cost", prices=(1.0,), plan=plan, every=FEWEST_JOBS)
    for number in range(800):
        said = {name: np.array([10.0]) for name in ("attention", "least-cost")}
        rounds.observe(ended(1000.0 * number, 10.0, waited=10.0, request=60.0), said)
    older, later = rounds._buffer.divide(plan.test)
    assert [len(older), len(later)] == [600, 100]
    assert later[-1].end == 799_000.0


def rounds_of(runs, *, every):
    """Rounds of runs of 10 s: attention is right at a price of 0, least-cost at a price of 1."""
    rounds = SimulatedRounds(
        first="least-cost",
        prices=(0.0, 1.0),
        plan=TuningPlan(learned=100, test=100),
        every=every,
    )
    right, wrong = {"attention": [10.0, 50.0]}, {"least-cost": [50.0, 10.0]}
    said = {name: np.array(each) for name, each in (right | wrong).items()}
    for number in range(runs):
        user = f"u{number % 9}"
        rounds.observe(ended(1000.0 * number, 10.0, waited=10.0, request=60.0, user=user), said)
    return rounds


def test_rounds_are_held_as_often_as_asked_once_there_are_enough_runs(monkeypatch):
    monkeypatch.setattr(cluster_round, "FEWEST_JOBS", 45)
    rounds = rounds_of(90, every=20)
    assert [ended for ended, _ in rounds.changes] == [45] * 2 + [65] * 2 + [85] * 2
    assert [change.action for _, change in rounds.changes[:2]] == ["adopted", "kept"]
    assert rounds.methods == ["attention", "least-cost"]
    for seldom in (rounds_of(44, every=20), rounds_of(90, every=0)):
        assert (seldom.changes, seldom.methods) == ([], ["least-cost", "least-cost"])
