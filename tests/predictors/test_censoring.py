"""Like jobs that still run as right-censored runs, worked out by hand."""

import numpy as np
import pytest

from predictors.censoring import censored, is_refuted, revised
from predictors.distribution import Evidence
from predictors.memory.columns import ELAPSED, ENDED, NOBODY, RUNNING

REQUEST = 1_000.0


def evidence(*values):
    """A distribution with a run of equal weight for each value."""
    count = len(values)
    rows = np.arange(count, dtype=np.int64)
    return Evidence(np.array(values), np.full(count, 1.0 / max(1, count)), rows, count, 0, 100.0)


def running(*elapsed, jobs=None, ended=0):
    found = np.zeros_like(NOBODY)
    found[RUNNING], found[ENDED] = len(elapsed) if jobs is None else jobs, ended
    found[ELAPSED : ELAPSED + len(elapsed)] = elapsed
    return found


def weights(found):
    return dict(zip(found.values.tolist(), found.weights.tolist(), strict=True))


def test_a_job_that_has_passed_a_runtime_moves_weight_to_longer_ones():
    """Four runs and one job that has run 150 s: a fifth of all, whose place is behind 150 s."""
    found = censored(evidence(100.0, 200.0, 300.0, 400.0), running(150.0), REQUEST, 1.0)
    # 100 s keeps 1/5 of all; the three others share 4/5.
    assert weights(found) == pytest.approx(
        {100.0: 0.2, 200.0: 0.8 / 3, 300.0: 0.8 / 3, 400.0: 0.8 / 3, REQUEST: 0.0}
    )


def test_what_is_longer_than_every_run_goes_to_the_request():
    found = censored(evidence(100.0, 200.0, 300.0), running(350.0), REQUEST, 1.0)
    assert weights(found) == pytest.approx({100.0: 0.25, 200.0: 0.25, 300.0: 0.25, REQUEST: 0.25})


def test_a_running_job_may_count_for_several_runs_and_stand_for_several_jobs():
    thrice = censored(evidence(100.0, 300.0), running(200.0), REQUEST, 3.0)
    assert weights(thrice)[100.0] == pytest.approx(1 / 5)
    eight = censored(evidence(100.0, 300.0), running(200.0, 200.0, jobs=8), REQUEST, 1.0)
    assert weights(eight)[100.0] == pytest.approx(1 / 10)


def test_a_job_that_has_just_started_changes_nothing():
    found = censored(evidence(100.0, 200.0), running(50.0), REQUEST, 1.0)
    assert weights(found) == pytest.approx({100.0: 0.5, 200.0: 0.5, REQUEST: 0.0})


@pytest.mark.parametrize(
    ("jobs", "is_refuting"),
    [
        (running(150.0), False),  # half of the runs take longer: hazard 0.7 of one job
        (running(250.0), True),  # none does: hazard 6.9
        (running(*8 * [150.0], jobs=16), False),  # 16 times 0.7 is 11.1, less than 3 times 4
        (running(*8 * [150.0], jobs=25), True),  # 25 times 0.7 is 17.3, more than 3 times 5
        (running(*8 * [150.0], jobs=25, ended=3), False),  # three of them did end
    ],
)
def test_the_more_like_jobs_run_longer_the_sooner_a_distribution_is_refuted(jobs, is_refuting):
    assert is_refuted(evidence(100.0, 200.0), jobs) == is_refuting


def test_a_refuted_distribution_is_revised_and_no_other_is():
    whole = evidence(100.0, 200.0)
    found, is_revised = revised(whole, running(250.0), REQUEST)
    assert is_revised
    assert weights(found)[REQUEST] == pytest.approx(3 / 5)
    assert revised(whole, running(150.0), REQUEST) == (whole, False)
    assert revised(whole, NOBODY, REQUEST) == (whole, False)
    nothing = evidence()
    assert revised(nothing, running(150.0), REQUEST) == (nothing, False)
