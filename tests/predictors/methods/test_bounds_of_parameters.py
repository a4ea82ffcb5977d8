"""Every parameter takes what it is documented to take, to the last of it, and nothing beyond."""

import pytest

from predictors.auto import Auto
from predictors.base import Memory
from predictors.methods.knn import KnnParameters
from predictors.registry import PREDICTORS

BOUNDS = {
    ("max-usage", "window"): (1, 1000, 1),
    ("max-usage", "margin_seconds"): (0, 366 * 86400, 1),
    ("max-usage", "factor"): (0.01, 100, 0.001),
    ("percentile", "window_days"): (1, 36500, 0.001),
    ("percentile", "percentile"): (0, 100, 0.001),
    ("percentile", "lower_bound"): (0, 1, 0.001),
    ("percentile", "min_jobs"): (1, 50_000, 1),
    ("knn", "history"): (1, 1_000_000, 1),
    ("knn", "neighbours"): (1, 1000, 1),
    ("knn", "scaling"): (1, 1_000_000, 1),
    ("knn", "alpha"): (-100, 100, 0.001),
    ("knn", "beta"): (-100, 100, 0.001),
    ("least-cost", "price"): (0, 1000, 0.001),
    ("least-cost", "window"): (1, 1000, 1),
    ("least-cost", "history"): (1000, 1_000_000, 1),
    ("attention", "price"): (0, 1000, 0.001),
    ("attention", "history"): (1000, 1_000_000, 1),
}
"""The least value, the greatest, and how far beyond it is refused."""


@pytest.mark.parametrize(("method", "name"), BOUNDS)
def test_the_bounds_of_a_parameter_are_taken_and_nothing_beyond(method, name):
    least, most, step = BOUNDS[method, name]
    for value in (least, most):
        PREDICTORS[method](**{name: value})
    for value in (least - step, most + step, float("nan"), "1", True, None):
        if (name, value) == ("window_days", None):  # all of the history
            continue
        with pytest.raises(ValueError, match=name):
            PREDICTORS[method](**{name: value})


DEFAULTS = {
    "requested": ({}, Memory()),
    "max-usage": (
        {"window": 5, "margin_seconds": 0.0, "factor": 1.0},
        Memory(jobs_per_user=5 + 16, latest_jobs=10_000),
    ),
    "percentile": (
        {
            "key": "user+project+walltime",
            "window_days": 30,
            "percentile": 85,
            "lower_bound": 0.5,
            "min_jobs": 10,
        },
        Memory(window_seconds=31 * 86_400.0),
    ),
    "last-two": ({}, Memory(jobs_per_user=2 + 16, latest_jobs=10_000)),
    "knn": (
        {
            "template": ["user"],
            "history": 5000,
            "neighbours": 5,
            "alpha": 0.0,
            "beta": 0.02,
            "scaling": 5000,
            "distance": "euclidean",
            "weights": [1.0, 1.0, 1.0],
        },
        Memory(latest_jobs=7_000),
    ),
    "least-cost": (
        {"price": 1.0, "window": 128, "history": 20_000},
        Memory(latest_jobs=30_000),
    ),
    "attention": ({"price": 1.0, "history": 20_000}, Memory(latest_jobs=40_000)),
}
"""What methods do where a site says nothing, and how much of its history a service reads then."""


@pytest.mark.parametrize("method", DEFAULTS)
def test_the_defaults_are_those_that_were_measured(method):
    predictor = PREDICTORS[method]()
    assert (predictor.parameters, predictor.memory) == DEFAULTS[method]


@pytest.mark.parametrize(
    ("weights", "is_taken"),
    [
        ((0, 0, 1000), True),
        ((1000.1, 0, 0), False),
        ((0, -0.1, 0), False),
        ((0, 0, float("nan")), False),
        ((1, 1), False),
        ((1, 1, 1, 1), False),
    ],
)
def test_the_weights_of_neighbours_are_three_from_nothing_to_a_thousand(weights, is_taken):
    if is_taken:
        assert PREDICTORS["knn"](weights=weights).parameters["weights"] == list(weights)
    else:
        with pytest.raises(ValueError, match="weights"):
            PREDICTORS["knn"](weights=weights)


@pytest.mark.parametrize("named", [{"distance": "hamming"}, {"template": ["shoe size"]}])
def test_a_name_that_nobody_knows_is_refused(named):
    with pytest.raises(ValueError, match=next(iter(named))):
        PREDICTORS["knn"](**named)


def test_two_metrics_are_told_apart():
    assert KnnParameters(distance="manhattan").metric == (True, (1.0, 1.0, 1.0))
    assert KnnParameters(weights=(1, 2, 3)).metric == (False, (1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("name", "least", "most", "step"), [("price", 0, 1000, 0.001), ("every", 0, 100_000, 1)]
)
def test_auto_takes_prices_and_rounds_within_its_bounds(name, least, most, step):
    assert Auto().parameters == {"price": 1.0, "every": 10_000}
    for value in (least, most):
        assert Auto(**{name: value}).parameters[name] == value
    for value in (least - step, most + step, None):
        with pytest.raises(ValueError, match=name):
            Auto(**{name: value})
