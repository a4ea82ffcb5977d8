"""Schemes of Tang et al. side by side predict what their predictors would one by one."""

from dataclasses import replace

import numpy as np
import pytest
from hand_worked_log import run

from papers.tang.percentile_schemes import (
    Scheme,
    predictions,
    schemes,
    sweep,
    usable_keys,
)
from simulator.replay.trace_replay import InProcess, replay


def test_schemes_are_every_combination_and_write_themselves_as_methods():
    combined = schemes(["user"])
    assert len(combined) == len(set(combined)) == 7 * 6 * 2 * 2
    assert [scheme.label for scheme in (combined[0], combined[-1])] == [
        "percentile:key=user,percentile=50,window_days=30,lower_bound=0,min_jobs=1",
        "percentile:key=user,percentile=100,window_days=all,lower_bound=0.5,min_jobs=10",
    ]
    assert combined[0].predictor().parameters["percentile"] == 50


def test_keys_with_a_part_that_no_job_has_are_left_out():
    assert usable_keys([run(1, 0, 1)]) == ["user", "user+walltime"]
    assert usable_keys([run(1, 0, 1, user=None)]) == []


def test_a_lower_percentile_adjusts_more_and_a_bound_underestimates_less():
    # One user's jobs of 100 s run for 10, 40, 10 and 100 s in turn: half of the usages are 0.1.
    runs = [run(n, 200 * n, (10, 40, 10, 100)[n % 4]) for n in range(60)]
    compared = [
        Scheme("user", *given) for given in ((50, None, 0.0), (100, None, 0.0), (50, None, 0.5))
    ]
    median, maximum, bounded = sweep(runs, compared).values()
    assert maximum.not_adjusted == 1
    # The first ten jobs have too little history; then every second one runs longer than 10 s.
    assert median.not_adjusted == bounded.not_adjusted == pytest.approx(10 / 60)
    assert median.overestimated == median.underestimated == pytest.approx(25 / 60)
    # A bound of 0.5 holds 50 s, which is enough for the twelve jobs of 40 s.
    assert bounded.underestimated == pytest.approx(13 / 60)
    assert median.accuracy > maximum.accuracy


def test_every_scheme_predicts_what_its_own_predictor_would():
    runs = [
        run(n, 40 * n, (10, 40, 10, 100, 0)[n % 5], user=f"u{n % 2}", request=100 + 50 * (n % 3))
        for n in range(120)
    ]
    compared = [
        replace(scheme, window_days=days)
        for scheme in schemes(["user", "user+walltime"])
        if scheme.window_days is None
        for days in (1, None)
    ]
    requested = np.array([each.submission.requested_walltime for each in runs])
    found = predictions(runs, compared, requested)
    played = replay(runs, InProcess({each.label: each.predictor() for each in compared}))
    for each in compared:
        assert found[each].tolist() == played.answers[each.label].predicted.tolist(), each


def test_a_usage_above_one_counts_as_one():
    runs = [run(n, 1000 * n, 150) for n in range(4)]
    [measured] = sweep(runs, [Scheme("user", 100, None, 0.0, 1)]).values()
    assert (measured.accuracy, measured.underestimated) == (1.0, 0.0)
