"""Trees are learned on older runs, chosen on later ones, and judged on the latest."""

import numpy as np
import pytest
from msgspec.structs import replace
from runs import ended
from sklearn.ensemble import RandomForestRegressor

from predictors.methods.forest import Forest
from predictors.methods.forest_features import FEATURES
from predictors.methods.forest_trees import leaf_of, unpacked
from predictors.methods.knn import KnnParameters
from predictors.tuning import forest_tunable
from predictors.tuning.adoption import Adopted
from predictors.tuning.cluster_round import ClusterParameters, tune_cluster
from predictors.tuning.forest_tunable import EQUAL_PARTS, fit, learn, predict_strangers
from predictors.tuning.plan import TuningPlan
from predictors.tuning.tunables import RunRecord

IN_FORCE = ClusterParameters(
    knn=Adopted(now=KnnParameters()), price=Adopted(now=0.0), auto=Adopted(now="attention")
)
DEAR = replace(IN_FORCE, price=Adopted(now=3.0))
"""An underestimate costs three mean runtimes."""

PLAN = TuningPlan(
    history=100, training=700, test=150, learned=300, subjects=("forest", "auto"), errors=1.0
)


@pytest.fixture(autouse=True)
def few_runs_are_enough(monkeypatch):
    monkeypatch.setattr(forest_tunable, "FEWEST_RUNS", 300)


def log(count=1000, short=60.0, long=3000.0):
    """A job every five hours that is short in the morning; nothing but the hour tells."""
    return [
        ended(
            start + seconds,
            seconds,
            user=f"u{place % 7}",
        )
        for place in range(count)
        for start in [18_600.0 * place]
        for seconds in [short + place % 9 if start % 86_400 < 43_200 else long + place % 9]
    ]


def forest_after(runs):
    forest = Forest()
    for run in runs:
        forest.observe(run)
    return forest


def test_a_walk_through_the_trees_ends_where_that_of_scikit_learn_does():

    random = np.random.default_rng(3)
    features = random.integers(0, 9, (500, len(FEATURES))).astype(np.float32) / np.float32(3)
    targets = features[:, 0] * features[:, 5] + random.random(500)
    trees = fit(features, targets, seed=1)
    theirs = RandomForestRegressor(
        forest_tunable.TREES,
        min_samples_leaf=forest_tunable.SMALLEST_LEAF,
        max_features=forest_tunable.FEATURE_SHARE,
        random_state=1,
    ).fit(features, targets)
    for tree, leaves in enumerate(theirs.apply(features).T):
        ours = [leaf_of(trees, tree, job) - trees.roots[tree] for job in features]
        assert ours == leaves.tolist()


def test_trees_are_learned_on_the_runs_before_the_later_ones():
    forest = forest_after(runs := log(600))
    features = forest.features()
    learned = learn(forest, features, later=200)
    assert (learned.runs, learned.until) == (399, runs[399].end_time)  # nothing known of the first
    assert len(unpacked(learned.trees).roots) == forest_tunable.TREES
    assert learned == learn(forest, features, later=200)
    assert learn(forest, features, later=301) is None


def test_runs_of_new_users_are_judged_by_what_was_predicted_for_them():
    new = [ended(18_600.0 * place + 500.0, 500.0, user=f"new{place}") for place in range(400, 450)]
    before = forest_after(log(400))
    forest = Forest(learned=learn(before, before.features(), later=0))
    expected = []
    for run in (runs := [*log(400), *new]):
        expected.append(forest.predict(run.submission).predicted_walltime)
        forest.observe(run)
    found = forest.estimates_of_last(51, np.array([0.0]))
    assert np.isnan(found[:, 0]).tolist() == [False] + [True] * 50
    records = [RunRecord("", run.runtime, run.end_time, {}, run.submission) for run in runs[-51:]]
    predict_strangers(forest, records, found)
    assert found[:, 0] == pytest.approx(expected[-51:])
    assert len(set(expected[-50:])) > 1


def test_a_round_adopts_a_forest_and_lets_auto_answer_with_it():
    runs = log()
    done = tune_cluster(runs, IN_FORCE, PLAN)
    of_forest, of_auto = done.changes
    assert (of_forest.subject, of_forest.action, of_forest.before) == ("forest", "adopted", None)
    assert of_forest.verdict.cases == 450  # of 1000 runs at most half, and those of the plan
    assert of_forest.verdict.gain > 0.9
    assert of_forest.after == done.in_force.forest.now.summary()
    assert (of_auto.action, of_auto.after) == ("adopted", "forest")
    learned = done.in_force.forest.now
    assert learned.until == runs[-1].end_time
    assert learned.calibrating == len(unpacked(learned.trees).roots) / 2 == forest_tunable.TREES


def test_the_next_round_learns_the_trees_anew():
    before = tune_cluster(log(), IN_FORCE, PLAN).in_force
    runs = log(1100)
    done = tune_cluster(runs, before, PLAN)
    of_forest, of_auto = done.changes
    assert (of_forest.action, of_auto.action) == ("renewed", "kept")
    assert of_forest.before == before.forest.now.summary()
    assert done.in_force.forest.now.until == runs[-1].end_time
    assert done.in_force.auto == before.auto


def test_a_share_of_attention_that_costs_more_than_none_is_given_up():
    """Attention knows nothing of the hour, so half of the weight is on wrong runtimes."""
    assert tune_cluster(log(), DEAR, PLAN).in_force.forest.now.attention == 0.0
    same = tune_cluster([ended(1e4 * place, 500.0) for place in range(1000)], IN_FORCE, PLAN)
    assert same.in_force.forest.now.attention == EQUAL_PARTS


def test_auto_drops_a_forest_that_has_become_wrong():
    """From one job to the next all jobs take as long as they request, which no tree knows."""
    runs = log()
    before = tune_cluster(runs, DEAR, PLAN).in_force
    later = [
        ended(start + 3600.0, 3600.0, user=f"u{place % 7}")
        for place in range(1000, 1200)
        for start in [18_600.0 * place]
    ]
    done = tune_cluster([*runs, *later], before, PLAN)
    assert [(change.subject, change.action) for change in done.changes] == [
        ("forest", "renewed"),
        ("auto", "dropped"),
    ]
    assert done.in_force.auto == Adopted(now="attention")


AUTO_ONLY = replace(PLAN, subjects=("auto",))


def test_without_a_forest_auto_does_not_answer_with_it():
    in_force = replace(IN_FORCE, auto=Adopted(now="forest", before="attention", since=0.0))
    done = tune_cluster(log(), in_force, AUTO_ONLY)
    assert done.in_force.auto == Adopted(now="attention")
    assert [(change.action, change.after) for change in done.changes] == [("dropped", "attention")]


def test_a_round_that_leaves_the_forest_out_leaves_its_trees():
    before = tune_cluster(log(), IN_FORCE, PLAN).in_force
    done = tune_cluster(log(1100), before, AUTO_ONLY)
    assert (done.in_force.forest, done.in_force.auto) == (before.forest, before.auto)


def test_too_few_runs_teach_no_forest():
    done = tune_cluster(log(500), IN_FORCE, replace(PLAN, training=250, learned=200))
    assert [(change.subject, change.action) for change in done.changes] == [("auto", "kept")]
