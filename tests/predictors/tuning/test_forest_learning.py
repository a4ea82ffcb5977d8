"""Trees are learned on the newest runs, and others on older ones, which score what these know."""

import numpy as np
import pytest
from runs import ended
from sklearn.ensemble import RandomForestRegressor

from predictors.auto import Auto
from predictors.methods.forest import Forest
from predictors.methods.forest_features import FEATURES
from predictors.methods.forest_trees import leaf_of, unpacked
from predictors.methods.knn import KnnParameters
from predictors.tuning import forest_learning
from predictors.tuning.adoption import Adopted
from predictors.tuning.cluster_round import ClusterParameters, tune_cluster
from predictors.tuning.forest_learning import EQUAL_PARTS, fit, learn
from predictors.tuning.plan import TuningPlan

IN_FORCE = ClusterParameters(knn=Adopted(now=KnnParameters()))
PLAN = TuningPlan(history=100, training=700, test=150, subjects=("forest",))


@pytest.fixture(autouse=True)
def few_runs_are_enough(monkeypatch):
    monkeypatch.setattr(forest_learning, "FEWEST_RUNS", 300)


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
        forest_learning.TREES,
        min_samples_leaf=forest_learning.SMALLEST_LEAF,
        max_features=forest_learning.FEATURE_SHARE,
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
    assert len(unpacked(learned.trees).roots) == forest_learning.TREES
    assert learned == learn(forest, features, later=200)
    assert learn(forest, features, later=301) is None


def test_a_round_learns_two_sets_of_trees_and_puts_both_in_force():
    runs = log()
    done = tune_cluster(runs, IN_FORCE, PLAN)
    (change,) = done.changes
    assert (change.subject, change.action, change.before) == ("forest", "learned", None)
    learned = done.in_force.forest
    assert change.after == learned.summary()
    assert change.verdict is None
    assert learned.until == runs[-1].end_time
    assert learned.known == runs[499].end_time
    assert learned.attention == EQUAL_PARTS
    assert learned.calibrating == len(unpacked(learned.trees).roots) / 2 == forest_learning.TREES


def test_the_next_round_learns_the_trees_anew():
    before = tune_cluster(log(), IN_FORCE, PLAN).in_force
    runs = log(1100)
    done = tune_cluster(runs, before, PLAN)
    assert done.changes[0].action == "learned"
    assert done.changes[0].before == before.forest.summary()
    assert done.in_force.forest.until == runs[-1].end_time


def test_too_few_runs_leave_the_forest_in_force(monkeypatch):
    before = tune_cluster(log(), IN_FORCE, PLAN).in_force
    monkeypatch.setattr(forest_learning, "FEWEST_RUNS", 600)
    done = tune_cluster(log(), before, PLAN)
    assert [change.action for change in done.changes] == ["kept"]
    assert done.in_force == before


def test_auto_learns_what_only_the_forest_can_know():
    """The hour tells how long a job takes, which attention never sees."""
    auto, errors = Auto(price=0.0, every=1000), []
    for run in log(1400):
        errors.append(abs(auto.predict(run.submission).predicted_walltime - run.runtime))
        auto.observe(run)
    assert np.mean(errors[1200:]) < np.mean(errors[600:1000]) / 10
    answer = auto.predict(log(1401)[-1].submission)
    assert answer.method == "forest"


def test_trees_that_are_learned_after_a_job_array_still_divide_the_jobs_of_others(monkeypatch):
    """Of what they are learned on half is of one user at most."""
    monkeypatch.setattr(forest_learning, "MOST_RUNS", 600)
    monkeypatch.setattr(forest_learning, "OF_A_USER", 300)
    runs = log(500)
    array = [ended(runs[-1].end_time + 60.0 * each, 30.0, user="array") for each in range(1, 1000)]
    forest = forest_after([*runs, *array])
    learned = learn(forest, forest.features(), 0)
    assert learned.runs == 600
    trees = unpacked(learned.trees, learned.features)
    assert FEATURES.index("hour of the day") in trees.features
