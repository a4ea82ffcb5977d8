"""Forest by hand: trees that divide by one feature, and leaves that can be counted."""

import numpy as np
import pytest
from msgspec.structs import replace
from runs import ended, submission

from predictors.base import COLD_START, Question
from predictors.distribution import NO_ROW
from predictors.facts import Facts
from predictors.jobs import Completion, Submission
from predictors.memory.columns import PIT
from predictors.memory.fact_rows import OWN
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.forest_features import FEATURES
from predictors.methods.forest_leaves import IN_LEAF
from predictors.methods.forest_trees import (
    NO_FEATURE,
    LearnedForest,
    Trees,
    UnusableForestError,
    joined,
    one_leaf,
    packed,
    unpacked,
)
from predictors.tuning.forest_learning import learn

LEAF = Trees(
    *(np.array([each], kind) for each, kind in zip((NO_FEATURE, 0, 0, 0), "bfii", strict=True))
)


def dividing(name, threshold):
    """A tree of two leaves: one up to the threshold of a feature, one above."""
    return Trees(
        np.array([FEATURES.index(name), NO_FEATURE, NO_FEATURE], np.int8),
        np.array([threshold, 0, 0], np.float32),
        np.array([2, 0, 0], np.int32),
        np.zeros(1, np.int32),
    )


def learned(*trees, attention=0.0):
    return LearnedForest(trees=packed(joined(trees)), attention=attention, runs=0, until=0.0)


def forest_of(runs, forest, **parameters):
    method = Forest(learned=forest, **parameters)
    for run in runs:
        method.observe(run)
    return method


BY_MEMORY = dividing("memory", np.log1p(50.0))
"""Jobs of up to 50 KiB go left."""

THREE = [
    ended(10.0, 5.0, requested_memory=10.0),
    ended(200.0, 100.0, requested_memory=10.0),
    ended(400.0, 200.0, requested_memory=10.0),
    ended(2000.0, 1000.0, requested_memory=90.0),
]
"""The first is nobody's neighbour: when it was submitted nothing was known."""


def scores(forest):
    """PIT values of all runs; -1 where nothing was predicted."""
    rows = (forest._recent.first, forest._recent.first + len(forest._recent))
    forest._score(*rows)
    return forest._recent.columns[0][PIT, slice(*rows)].tolist()


def weights_by_row(evidence):
    rows = {
        row: evidence.weights[evidence.rows == row].sum() for row in set(evidence.rows.tolist())
    }
    rows.pop(NO_ROW, None)
    total = sum(rows.values())
    return {row: weight / total for row, weight in sorted(rows.items())}


def test_a_run_weighs_by_the_leaves_it_shares_and_by_how_full_they_are():
    """Of the tree by memory two runs share the leaf, of the other tree three.

    So the two weigh (1/2 + 1/3) / 2 each, and the third 1/3 / 2.
    """
    forest = forest_of(THREE, learned(BY_MEMORY, LEAF))
    found = weights_by_row(forest.evidence(submission(requested_memory=10.0)))
    assert found == pytest.approx({1: 5 / 12, 2: 5 / 12, 3: 2 / 12})
    found = weights_by_row(forest.evidence(submission(requested_memory=90.0)))
    assert found == pytest.approx({1: 1 / 6, 2: 1 / 6, 3: 4 / 6})


def test_the_answer_is_the_estimate_of_least_cost_with_interval_and_explanation():
    forest = forest_of(THREE, learned(BY_MEMORY), price=0)
    answer = forest.predict(submission(requested_memory=90.0))
    assert (answer.predicted_walltime, answer.method) == (1030.0, "forest")
    assert (answer.basis.jobs, answer.basis.reason) == (4, "history")
    question = Question(explain=True)
    full = forest.ask(submission(requested_memory=90.0), question)
    assert full.predicted_walltime == 1030.0
    assert [run.runtime for run in full.explanation] == [1000.0]
    running = forest.ask(submission(requested_memory=10.0), Question(elapsed=150.0))
    assert running.predicted_walltime >= 150.0


def test_only_the_newest_runs_of_a_leaf_count():
    runs = [ended(100.0 * place, 50.0) for place in range(1, IN_LEAF + 5)]
    found = weights_by_row(forest_of(runs, learned(LEAF)).evidence(submission()))
    assert list(found) == list(range(4, IN_LEAF + 4))


def test_a_run_counts_from_its_end_on_only():
    forest = forest_of(THREE, learned(LEAF))
    assert list(weights_by_row(forest.evidence(submission(at=399.0)))) == [1]
    assert list(weights_by_row(forest.evidence(submission(at=400.0)))) == [1, 2]


def test_half_of_the_weight_can_be_that_of_attention():
    job = submission(requested_memory=10.0)
    alone, shared = (forest_of(THREE, learned(LEAF, attention=share)) for share in (0.0, 0.5))
    attention = Attention()
    for run in THREE:
        attention.observe(run)
    both, one, other = shared.evidence(job), alone.evidence(job), attention.evidence(job)
    assert both.weights.sum() == pytest.approx(1.0)
    assert len(both.values) == len(one.values) + len(other.values)
    for seconds in (100.0, 200.0, 1000.0, 3600.0):
        halves = [each.weights[each.values <= seconds].sum() / 2 for each in (one, other)]
        assert both.weights[both.values <= seconds].sum() == pytest.approx(sum(halves))


def test_trees_without_a_run_in_the_leaf_leave_their_weight_to_attention():
    """Two of four trees tell no run of the job's: after a job array, say, that fills all leaves."""
    runs = [ended(100.0 * each, 50.0 * each, requested_memory=90.0) for each in range(1, 9)]
    job = submission(requested_memory=10.0)
    both = forest_of(runs, learned(BY_MEMORY, BY_MEMORY, LEAF, LEAF, attention=0.5)).evidence(job)
    attention = Attention()
    for run in runs:
        attention.observe(run)
    leaf = forest_of(runs, learned(LEAF, LEAF)).evidence(job)
    attention = attention.evidence(job)
    assert both.weights.sum() == pytest.approx(1.0)
    for seconds in (100.0, 200.0, 1000.0, 3600.0):
        quarter, rest = (each.weights[each.values <= seconds].sum() for each in (leaf, attention))
        expected = 0.25 * quarter + 0.75 * rest
        assert both.weights[both.values <= seconds].sum() == pytest.approx(expected)


def test_runs_that_the_trees_in_use_know_are_scored_by_the_other_trees():
    """The first tree predicts; until 2,000 s runs are scored by the second, which is one leaf."""
    both = replace(learned(BY_MEMORY, LEAF), calibrating=1, until=2000.0)
    runs = [*THREE, ended(3000.0, 150.0, requested_memory=10.0)]
    forests = [forest_of(runs, each) for each in (both, learned(BY_MEMORY), learned(LEAF))]
    job = submission(requested_memory=10.0)
    found, by_memory, in_one_leaf = (scores(forest) for forest in forests)
    assert found == [*in_one_leaf[:4], by_memory[4]]
    assert by_memory[3] != in_one_leaf[3]
    assert by_memory[4] != in_one_leaf[4]
    evidence = [weights_by_row(forest.evidence(job)) for forest in forests]
    assert evidence[0] == evidence[1] != evidence[2]


def test_without_trees_the_answer_is_the_request():
    forest = forest_of(THREE, None)
    answer = forest.ask(submission(), Question())
    assert (answer.predicted_walltime, answer.basis, answer.median) == (3600.0, COLD_START, None)
    assert forest.quantiles(submission(), [0.5]) is None
    assert forest.parameters["learned"] is None


def many(count, late=0):
    """Runs of nine users; every seventh is observed after those that ended soon after it."""
    runs = [
        ended(
            1e5 + 300.0 * place,
            float(60 + place * place % 2000),
            user=f"u{place % 9}",
            waited=float(place % 5 * 400),
            requested_memory=float(place % 3 * 40),
        )
        for place in range(count)
    ]
    if late:
        runs.sort(key=lambda run: run.end_time + 300.0 * late * (int(run.end_time // 300) % 7 == 0))
    return runs


BOTH = learned(BY_MEMORY, dividing("hour of the day", 12.0), LEAF, attention=0.5)


def test_late_runs_enter_the_same_leaves():
    jobs = [submission(at=1e9, user=f"u{place}", requested_memory=40.0) for place in range(3)]
    in_order, late = forest_of(many(400), BOTH), Forest(learned=BOTH)
    for run in many(400, late=5):
        late.observe(run)
        late.predict(jobs[0])
    for job in jobs:
        assert late.ask(job, Question()) == in_order.ask(job, Question())


def test_answers_depend_on_the_remembered_runs_only():
    """The table has moved its rows meanwhile; a service that starts now reads the last runs."""
    runs = many(24_000)
    old, young = Forest(learned=BOTH, history=1000), Forest(learned=BOTH, history=1000)
    for place, run in enumerate(runs):
        old.observe(run)
        if place % 4000 == 0:
            old.ask(run.submission, Question())
    for run in runs[-young.memory.latest_jobs :]:
        young.observe(run)
    job = submission(at=1e9, user="u1", requested_memory=40.0)
    assert old.ask(job, Question()) == young.ask(job, Question())


def test_another_forest_takes_over_the_runs_or_a_copy_of_them():
    runs = many(300)
    forest = forest_of(runs[:200], learned(BY_MEMORY))
    forest.ask(submission(), Question())
    copied = forest.copied(BOTH)
    for run in runs[200:]:
        forest.observe(run)
        copied.observe(run)
    job = submission(at=1e9, user="u1", requested_memory=40.0)
    expected = forest_of(runs, BOTH).ask(job, Question())
    assert copied.ask(job, Question()) == expected
    assert forest.retuned(BOTH).ask(job, Question()) == expected


def test_features_are_those_at_the_submission():
    forest = forest_of(THREE, None)
    features = dict(zip(FEATURES, forest.features().T, strict=True))
    assert np.isnan(features["memory"][0])
    assert features["memory"][1:] == pytest.approx(np.log1p([10.0, 10.0, 90.0]))
    assert features["newest runtime of the user"][1:] == pytest.approx(
        np.log1p([5.0, 100.0, 200.0])
    )
    assert features["second newest runtime"][1] == -1


@pytest.mark.parametrize(
    "change",
    [
        {"features": np.array([len(FEATURES), -1, -1], np.int8)},
        {"features": np.array([0.0, -1, -1])},
        {"features": np.array([-1, -1, 0], np.int8)},
        {"rights": np.array([3, 0, 0], np.int32)},
        {"rights": np.array([0, 0, 0], np.int32)},
        {"roots": np.array([9], np.int32)},
        {"roots": np.zeros(0, np.int32)},
    ],
)
def test_trees_whose_walk_would_not_end_in_a_leaf_are_refused(change):
    damaged = packed(BY_MEMORY._replace(**change))
    with pytest.raises(UnusableForestError):
        Forest(learned=replace(one_leaf(), trees=damaged))


def test_what_is_no_forest_is_refused():
    with pytest.raises(UnusableForestError):
        unpacked(b"no file")
    with pytest.raises(UnusableForestError, match="features 9"):
        replace(one_leaf(), version=9)
    with pytest.raises(TypeError):
        Forest(learned="trees")


def test_a_forest_divides_jobs_by_facts_that_count_and_by_no_others():
    random = np.random.default_rng(1)
    forest = Forest(history=4_000)
    for number in range(4_500):
        gpus, host = int(random.integers(1, 9)), f"login{random.integers(3)}"
        job = Submission(
            requested_walltime=86_400.0,
            submit_time=number * 1e5,
            user=f"u{number % 5}",
            application="a",
            facts=Facts(gpus=gpus, submit_host=host),
        )
        seconds = 36_000.0 / gpus
        run = Completion(
            submission=job,
            start_time=job.submit_time,
            end_time=job.submit_time + seconds,
            runtime=seconds,
        )
        forest.observe(run)
    learned = learn(forest, forest.features(), 0)
    divided = {*unpacked(learned.trees, learned.features).features.tolist()}
    assert learned.has_facts
    assert len(FEATURES) + OWN.index("gpus") in divided
    assert len(FEATURES) + OWN.index("submit_host") not in divided
    with pytest.raises(UnusableForestError, match="unknown feature"):
        Forest(learned=replace(learned, version=1))
    forest = forest.retuned(replace(learned, attention=0.0))
    asked = Submission(
        requested_walltime=86_400.0,
        submit_time=1e9,
        user="u1",
        application="a",
        facts=Facts(gpus=2, submit_host="login1"),
    )
    assert forest.predict(asked).predicted_walltime == pytest.approx(18_000, rel=0.05)
