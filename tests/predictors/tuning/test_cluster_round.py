"""What a round does about each subject of its plan, and what it puts in force."""

import numpy as np
import pytest
from msgspec.structs import replace
from runs import ended, submission

from predictors.methods.knn import KnnParameters
from predictors.tuning import cluster_round
from predictors.tuning.adoption import Adopted
from predictors.tuning.cluster_round import (
    PRICES,
    ClusterParameters,
    tune_cluster,
    tune_price_and_method,
)
from predictors.tuning.plan import TooShortHistoryError, TuningPlan
from predictors.tuning.tunables import ReplayBuffer, RunRecord, fill_buffer

IN_FORCE = ClusterParameters(
    knn=Adopted(now=KnnParameters(template=(), history=100, neighbours=1, beta=0.0)),
    price=Adopted(now=1.0),
    auto=Adopted(now="least-cost"),
)
JUDGED = TuningPlan(learned=1_900, test=100)
"""A plan that chooses methods on 400 runs or more."""

SMALL = TuningPlan(history=100, training=200, test=100, learned=100)


def log(count=400):
    """Two scripts in turn, of one and of fifty minutes."""
    return [
        ended(1e4 * place + seconds, seconds, user=f"u{place % 7}", application=application)
        for place in range(count)
        for seconds, application in [((60.0, "a"), (3000.0, "b"))[place % 2]]
    ]


def held(plan, in_force=IN_FORCE, runs=None, **told):
    """What a round did, and how it asked the methods about the runs."""
    return tune_cluster(log() if runs is None else runs, in_force, plan, **told)


def stretch_of_runs(said, prices, count=400):
    """``count`` runs that took 1000 s in the mean, half of them 500; ``said`` by their runtime."""
    buffer = ReplayBuffer(count, prices)
    for place in range(count):
        runtime = (500.0, 1500.0)[place // 2 % 2]
        buffer._records.append(
            RunRecord(f"u{place % 20}", runtime, float(place), said(runtime), submission())
        )
    return buffer


def test_the_order_is_price_then_method():
    everything = replace(JUDGED, underestimation_rate=0.2)
    buffer = stretch_of_runs(
        lambda runtime: dict.fromkeys(("attention", "least-cost"), np.full(3, runtime)),
        (0.0, 1.0, 4.0),
    )
    changes, in_force = tune_price_and_method(buffer, IN_FORCE, everything)
    assert [change.subject for change in changes] == ["price", "auto"]
    assert [change.action for change in changes] == ["kept"] * 2
    assert in_force == IN_FORCE


@pytest.mark.parametrize("subject", ["price", "auto"])
def test_what_is_no_subject_is_left_alone(subject):
    buffer = stretch_of_runs(
        lambda runtime: {"attention": np.array([runtime]), "least-cost": np.array([9e3])}, (1.0,)
    )
    only = replace(JUDGED, subjects=(subject,), underestimation_rate=0.2)
    changes, _ = tune_price_and_method(buffer, IN_FORCE, only)
    assert [change.subject for change in changes] == [subject]


def test_the_method_is_chosen_by_what_it_says_at_the_price_in_force():
    """Attention is right at a price of 1, and least-cost at all others."""

    def said(runtime):
        right, wrong = np.array([runtime, runtime, runtime]), np.array([9e3, 9e3, 9e3])
        at_one = np.array([False, True, False])
        return {
            "attention": np.where(at_one, right, wrong),
            "least-cost": np.where(at_one, wrong, right),
        }

    buffer = stretch_of_runs(said, (0.0, 1.0, 4.0))
    only = replace(JUDGED, subjects=("auto",))
    (change,), in_force = tune_price_and_method(buffer, IN_FORCE, only)
    assert (change.action, change.verdict.cases) == ("adopted", 400)
    assert in_force.auto == Adopted(now="attention", before="least-cost", since=399.0)
    assert replace(in_force, auto=IN_FORCE.auto) == IN_FORCE
    other = replace(IN_FORCE, price=Adopted(now=4.0))
    (change,), in_force = tune_price_and_method(buffer, other, only)
    assert (change.action, in_force) == ("kept", other)


def test_no_method_is_chosen_on_few_runs():
    def said(runtime):
        return {"attention": np.array([runtime]), "least-cost": np.array([9e3])}

    def actions(count):
        changes, _ = tune_price_and_method(stretch_of_runs(said, (1.0,), count), IN_FORCE, JUDGED)
        return [change.action for change in changes]

    assert actions(399) == []
    assert actions(400) == ["adopted"]


def test_a_price_is_sought_for_the_method_that_answers_and_counts_at_once_for_the_next():
    """Half of least-cost's answers are too short but for a price of 4, where none is.

    At that price attention is right, which least-cost is never.
    """

    def said(runtime):
        return {
            "least-cost": np.array([1000.0, 1000.0, 2000.0]),
            "attention": np.array([9e3, 9e3, runtime]),
        }

    buffer = stretch_of_runs(said, (0.0, 1.0, 4.0))
    rare = replace(JUDGED, subjects=("price", "auto"), underestimation_rate=0.001)
    changes, in_force = tune_price_and_method(buffer, IN_FORCE, rare)
    assert [(change.subject, change.action) for change in changes] == [
        ("price", "adopted"),
        ("auto", "adopted"),
    ]
    assert in_force.price.now == pytest.approx(4.0, abs=0.02)
    assert (in_force.price.before, in_force.auto.now) == (1.0, "attention")


@pytest.fixture
def asked(monkeypatch):
    """How many runs a round folds, how many of them it asks about, and at which prices."""
    noted = []

    def noting(completions, attention, **named):
        noted.append((len(completions), named["capacity"], list(named["prices"]), attention.price))
        return fill_buffer(completions, attention, **named)

    monkeypatch.setattr(cluster_round, "fill_buffer", noting)
    return noted


def test_a_round_asks_about_the_runs_of_its_plan_at_the_price_in_force(asked):
    plan = replace(SMALL, subjects=("auto",), learned=150)
    done = held(plan, replace(IN_FORCE, price=Adopted(now=2.0)), log(500))
    assert asked == [(400, 250, [2.0], 2.0)]
    assert (done.knn, [change.subject for change in done.changes]) == (None, ["auto"])
    held(replace(plan, learned=1000), runs=log(450))
    assert asked[1] == (400, 400, [1.0], 1.0)


def test_a_round_that_seeks_a_price_asks_at_all_of_them(asked):
    plan = replace(SMALL, subjects=("price",), underestimation_rate=0.1)
    held(plan, replace(IN_FORCE, price=Adopted(now=2.0)))
    assert asked[0][2] == sorted([*PRICES, 2.0])
    held(plan)
    assert asked[1][2] == list(PRICES)
    assert PRICES == (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def test_a_round_of_knn_alone_asks_no_other_method(asked):
    told = []
    done = held(replace(SMALL, subjects=("knn",)), report=told.append)
    assert asked == []
    assert told
    assert [change.subject for change in done.changes] == ["knn"]
    assert done.adopted
    assert done.in_force.knn.now == done.knn.after.parameters
    assert "application" in done.in_force.knn.now.template
    assert done.in_force.knn.before == IN_FORCE.knn.now
    assert done.in_force.knn.since == log()[-1].end_time

    again = held(replace(SMALL, subjects=("knn",)), done.in_force)
    assert (again.adopted, again.in_force) == (False, done.in_force)
    assert again.knn.review.cases == 0  # no run has ended since


def test_what_a_round_of_knn_drops_is_replaced_by_what_was_there_before():
    right = KnnParameters(template=("application",), history=100, neighbours=1, beta=0.0)
    lost = replace(IN_FORCE, knn=Adopted(now=IN_FORCE.knn.now, before=right, since=0.0))
    done = held(replace(SMALL, subjects=("knn",)), lost)
    assert (done.knn.dropped, done.adopted) == (True, False)
    assert done.in_force.knn == Adopted(now=right)


def test_too_few_runs_are_refused_before_anything_is_done():
    with pytest.raises(TooShortHistoryError):
        held(replace(SMALL, subjects=("auto",)), runs=log(399))


def test_everything_that_enough_runs_are_there_for_is_proposed_in_one_round():
    assert [change.subject for change in held(SMALL).changes] == ["knn", "auto"]  # no forest yet
