"""Neighbours and errors of a handful of jobs, for any parameters of knn, worked out by hand."""

from math import inf, sqrt

import numpy as np
import pytest
from runs import a_run

from papers.xu.exhaustive import error_surface
from predictors.methods.knn import KnnParameters
from predictors.tuning.batch import batch_of

REQUESTS = {"ada0": 600, "ben1": 1200, "ada2": 1800, "ben3": 600, "ada4": 1000, "ada5": 600}
RUNTIMES = (100, 200, 400, 800, 700, 300)
"""They end at 200, 400 and so on. The request is all by which they are told apart: from one of
600 s the first five are 0, 1/2, 1, 0 and 1/3 of the range away."""

TIE = sqrt((350**2 + 350**2 + 250**2 + 250**2) / 4)


def six_runs():
    return [
        a_run(
            name,
            user=name[:3],
            start=200.0 * (place + 1) - runtime,
            runtime=float(runtime),
            requested_walltime=float(request),
        )
        for place, ((name, request), runtime) in enumerate(
            zip(REQUESTS.items(), RUNTIMES, strict=True)
        )
    ]


def a_job(*, user="ada", at=1000.0, request=600.0, runtime=450.0):
    """A job that is submitted as ada4 ends."""
    return a_run("new", user=user, submit_time=at, requested_walltime=request, runtime=runtime)


@pytest.fixture
def batch():
    """Of three jobs: ada's, one of somebody new, and one of before any run had ended."""
    trials = [a_job(), a_job(user="eve"), a_job(at=199.0)]
    return batch_of(six_runs(), trials, longest_history=5, most_neighbours=9)


@pytest.mark.parametrize(
    ("template", "history", "means", "deviations"),
    [
        # Of runs that are as near the later one comes first: 800, 100, 700, 200 and 400 s.
        ((), 5, [800, 450, 450, 440], [0, 350, TIE, None]),
        ((), 3, [800, 750, 1900 / 3, 1900 / 3], [0, 50, None, None]),
        ((), 2, [800, 750, 750, 750], [0, 50, 50, 50]),
        ((), 1, [700] * 4, [0] * 4),
        # Ada's runs are 100, 700 and 400 s.
        (("user",), 5, [100, 400, 400, 400], [0, 300, sqrt(60000), sqrt(60000)]),
        (("user",), 3, [700, 550, 550, 550], [0, 150, 150, 150]),
        (("queue",), 5, [inf] * 4, [0] * 4),
        (("user", "queue"), 5, [inf] * 4, [0] * 4),
    ],
)
def test_neighbours_are_the_nearest_of_the_last_runs_that_match(
    batch, template, history, means, deviations
):
    found, apart = batch.neighbours(template, history, [1, 2, 4, 9])
    assert found[:, 0].tolist() == pytest.approx(means)
    known = [place for place, each in enumerate(deviations) if each is not None]
    assert apart[known, 0].tolist() == pytest.approx([deviations[place] for place in known])
    assert found[:, 2].tolist() == [inf] * 4, "nothing had ended"
    if template:
        assert found[:, 1].tolist() == [inf] * 4, "eve had no runs"
    else:
        assert found[:, 1].tolist() == found[:, 0].tolist()


@pytest.mark.parametrize(("history", "mean"), [(5, 450), (4, 750), (3, 750), (2, 750), (1, 700)])
def test_lists_for_few_neighbours_know_them_for_every_shorter_history(history, mean):
    """Of the last four runs those of 800 and 700 s are nearest, of five those of 800 and 100 s."""
    batch = batch_of(six_runs(), [a_job()], longest_history=5, most_neighbours=2)
    assert batch.neighbours((), history, [2])[0].tolist() == [[mean]]


def test_of_jobs_that_name_no_user_a_template_with_one_matches_nothing():
    batch = batch_of(six_runs(), [a_job(user=None)], longest_history=5)
    assert batch.usable_attributes == ()
    assert batch.neighbours(("user",), 5, [1])[0].tolist() == [[inf]]
    assert batch.neighbours((), 5, [1])[0].tolist() == [[800]]


@pytest.mark.parametrize(
    ("scaling", "means"), [(2, [200, 450, 1700 / 3, 525]), (5, [200, 450, 1300 / 3, 525])]
)
def test_features_are_scaled_over_as_many_runs_as_knn_is_told(scaling, means):
    """Of a job of 1400 s that of 1200 s is nearest, which took 200 s.

    Over the last two runs requests range over 400 s: all others are as far as can be, and come
    from the last on, of 700, 800, 400 and 100 s. Over all five they range over 1200 s, and those
    of 1000 s and 1800 s are nearer than those of 600 s.
    """
    like = KnnParameters(scaling=scaling)
    batch = batch_of(six_runs(), [a_job(request=1400.0)], longest_history=5, unsearched=like)
    found, _ = batch.neighbours((), 5, [1, 2, 3, 4])
    assert found[:, 0].tolist() == pytest.approx(means)


def test_errors_of_every_alpha_and_beta_by_hand():
    """Of 200 s and 60 s that were asked for, 120 s and 60 s were needed."""
    means, deviations = np.array([100.0, 50.0]), np.array([10.0, 20.0])
    requests, runtimes = np.array([200.0, 60.0]), np.array([120.0, 60.0])
    errors, shares = error_surface(
        (means, deviations), (requests, runtimes), np.array([0.0, 1.0, -9.0]), np.array([0.0, 0.5])
    )
    # 100 and 50, or 200 and 60 with half the request; 110 and 60; and at -9 deviations a second
    # each, or 110 and 1 with half the request.
    assert errors.tolist() == [[15.0, 40.0], [5.0, 40.0], [(110 + 59) / 2, (10 + 59) / 2]]
    assert shares.tolist() == [[1.0, 0.0], [0.5, 0.0], [1.0, 1.0]]
