"""The study of trees on a small log: causal columns, quantiles of a forest, and the tables."""

import numpy as np
import pytest

from predictors.jobs import Completion, Submission
from simulator.studies import boosted
from simulator.studies.boosted import (
    QUANTILES,
    UNKNOWN,
    Columns,
    Forest,
    Part,
    causal_rounds,
)

HOUR = 3600.0


def run(submit, runtime, user="ann"):
    job = Submission(requested_walltime=HOUR, submit_time=submit, user=user, queue="q")
    return Completion(submission=job, start_time=submit, end_time=submit + runtime, runtime=runtime)


def test_columns_hold_runs_that_had_ended_and_mark_what_is_unknown():
    columns = Columns()
    before = columns.of(run(0.0, 1.0).submission)
    columns.observe(run(0.0, 900.0))
    after = columns.of(run(5000.0, 1.0).submission)
    assert set(before[9:]) == {UNKNOWN}
    assert after[9:11] == [900.0, 0.25]
    assert after[6] == UNKNOWN  # no group
    assert after[-1] == 0.25


def test_a_training_knows_only_what_had_ended_before_the_jobs_it_predicts():
    log = [run(100.0 * i, 950.0, user=f"u{i % 3}") for i in range(60)]
    table, (ended, rounds) = causal_rounds(log, every=10)
    assert len(table) == 60
    assert len(rounds) > 3
    for each in rounds:
        for job in each.submitted:
            assert all(
                log[known].end_time <= log[job].submission.submit_time
                for known in ended[: each.ended]
            )
    assert sorted(job for each in rounds for job in each.submitted) == list(range(60))


def test_a_forest_answers_quantiles_of_the_runs_a_job_falls_among():
    random = np.random.default_rng(0)
    table = random.integers(0, 2, (400, 1)).astype(float)
    usages = np.where(table[:, 0] == 1, random.uniform(0.5, 1, 400), random.uniform(0, 0.2, 400))
    forest = Forest()
    forest.fit(table, usages)
    low, high = forest.predict(np.array([[0.0], [1.0]])).T
    assert low == pytest.approx(np.array(QUANTILES) * 0.2, abs=0.05)
    assert high == pytest.approx(0.5 + np.array(QUANTILES) * 0.5, abs=0.08)


def test_the_study_compares_trees_with_ours_and_says_what_they_cost(monkeypatch):
    random = np.random.default_rng(1)
    log = [run(50.0 * i, float(random.uniform(10, 3600)), f"u{i % 4}") for i in range(300)]
    monkeypatch.setattr(boosted, "runs_of", lambda _, limit: log[:limit])
    part = Part("a.swf", 250, 100, 100)
    found = boosted.play(part)
    assert found.jobs == 250
    assert [curve.name for curve in found.curves] == ["least-cost", "attention"]
    for learner in found.learners:
        shares = [point.underestimation_rate for point in learner.points]
        assert shares == sorted(shares, reverse=True)
        assert learner.trainings == 2
    text = boosted.report([(part, found)])
    assert "boosted trees, quantile=0.5" in text
    assert "microseconds a prediction" in text
    assert boosted.records([(part, found)])["logs"]["a.swf"]["jobs"] == 250
