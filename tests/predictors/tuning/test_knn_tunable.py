"""A round about knn's parameters: what each job gains, and what is dropped, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from runs import ended

from predictors.methods.knn import KnnParameters
from predictors.tuning.adoption import NO_CASES, Adopted
from predictors.tuning.knn_tunable import KnnTunable, divide, gains, tune
from predictors.tuning.plan import TuningPlan

BY_APPLICATION = KnnParameters(template=("application",), history=100, neighbours=1, beta=0.0)
BY_NOTHING = KnnParameters(template=(), history=100, neighbours=1, beta=0.0)
PLAN = TuningPlan(history=100, training=200, test=100)

WHOLE = 4 / 3
"""The gain, to first order, of who errs no more where half of all was too short: the error times
1 + 1/2, and half an error for the underestimates, of a cost of the error times 1 + 1/2."""


def log(count=400):
    """Two scripts in turn, of one and of fifty minutes: the last run is never like the next."""
    runs = []
    for place in range(count):
        seconds = (60.0, 3000.0)[place % 2]
        known = {
            "job_id": str(place),
            "user": f"u{place % 7}",
            "request": 3600.0,
            "requested_processors": 1,
            "application": "ab"[place % 2],
        }
        runs.append(ended(1e4 * place + seconds, seconds, **known))
    return runs


def gained(old, new, penalty):
    """What each of two jobs of 100 s gains by new predictions in place of old ones."""
    batch = SimpleNamespace(runtimes=np.array([100.0, 100.0]), predictions=np.array)
    return gains(batch, old, new, penalty)


def test_what_a_job_gains_by_hand():
    """Errors of 50 s, half of them too short, cost 50 x (1 + 2 x 1/2) = 100 s.

    A second less error counts 1 + 2 x 1/2 = 2, an underestimate less 2 x 50 = 100.
    """
    assert gained((50.0, 150.0), (110.0, 150.0), 2.0) == pytest.approx([(2 * 40 + 100) / 100, 0.0])
    lost = gained((150.0, 150.0), (150.0, 90.0), 0.0)
    assert lost == pytest.approx([0.0, 40 / 50])


def test_small_costs_are_compared_too_and_none_at_all_is_no_division_by_zero():
    small = gained((100.1, 100.1), (100.0, 100.1), 1.0)
    assert small == pytest.approx([1.0, 0.0])
    assert gained((100.0, 100.0), (100.0, 100.0), 1.0).tolist() == [0, 0]


def test_parameters_are_judged_on_the_test_jobs_that_ended_after_their_adoption():
    runs = log()
    jobs = divide(runs, PLAN, BY_NOTHING)
    subject = KnnTunable(jobs, PLAN, None)
    older, later = subject.jobs()
    assert (len(older), len(later), later[-1].end) == (200, 100, runs[-1].end_time)
    better = subject.judge(BY_NOTHING, BY_APPLICATION, [*older, *later])
    assert (better.cases, better.wins) == (100, True)
    assert better.gain > 0.9
    assert subject.judge(BY_APPLICATION, BY_NOTHING, later).loses
    assert subject.judge(BY_NOTHING, BY_APPLICATION, later[1:]).cases == 99
    assert subject.judge(BY_NOTHING, BY_APPLICATION, older) is NO_CASES


def tuned(runs, held, plan, *told):
    """What a round did; what is in force after it is as its change says."""
    done, change, after = tune(runs, held, plan, *told)
    expected = {"adopted": done.after.parameters, "dropped": held.before, "kept": held.now}
    assert after.now == expected[change.action]
    return done


def test_parameters_that_have_lost_since_are_dropped_without_a_search():
    runs, told = log(), []
    done = tuned(runs, Adopted(now=BY_NOTHING, before=BY_APPLICATION, since=0.0), PLAN, told.append)
    assert (done.dropped, done.adopted) == (True, False)
    assert (done.before.parameters, done.after.parameters) == (BY_NOTHING, BY_APPLICATION)
    assert (done.costs, done.evaluations, told) == ((), 0, [])
    assert (done.training_jobs, done.test_jobs) == (200, 100)
    assert done.review.cases == 100
    assert done.review.gain < -0.9
    # The first of a script is unlike the last run by 2940 s, every second time too short.
    assert done.before.test.mean_absolute_error == 2940.0
    assert done.before.test.underestimation_rate == 0.5
    assert done.after.test.mean_absolute_error == 0.0


def test_parameters_that_have_not_lost_stay_and_are_searched_beside():
    done = tuned(log(), Adopted(now=BY_APPLICATION, before=BY_NOTHING, since=0.0), PLAN)
    assert (done.dropped, done.adopted) == (False, False)
    assert done.review.gain == pytest.approx(WHOLE)
    assert done.evaluations > 0
    adopted = tuned(log(), Adopted(now=BY_NOTHING), PLAN)
    assert (adopted.adopted, adopted.review) == (True, None)
    assert adopted.verdict.cases == 100
