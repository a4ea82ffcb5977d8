"""Every parameter takes what it is documented to take, to the last of it, and nothing beyond."""

import pytest

from predictors.auto import Auto
from predictors.base import Memory
from predictors.registry import PREDICTORS, create

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
        },
        Memory(latest_jobs=7_000),
    ),
    "least-cost": (
        {"price": 1.0, "window": 128, "history": 20_000},
        Memory(jobs_per_user=192, latest_jobs=30_000),
    ),
    "attention": ({"price": 1.0, "history": 20_000}, Memory(jobs_per_user=192, latest_jobs=40_000)),
}
"""What methods do where a site says nothing, and how much of its history a service reads then."""


@pytest.mark.parametrize("method", DEFAULTS)
def test_the_defaults_are_those_that_were_measured(method):
    predictor = PREDICTORS[method]()
    assert (predictor.parameters, predictor.memory) == DEFAULTS[method]


@pytest.mark.parametrize("named", [{"template": ["shoe size"]}])
def test_a_name_that_nobody_knows_is_refused(named):
    with pytest.raises(ValueError, match=next(iter(named))):
        PREDICTORS["knn"](**named)


@pytest.mark.parametrize("gone", ["distance", "weights"])
def test_a_parameter_of_an_earlier_release_is_refused_by_name(gone):
    with pytest.raises(ValueError, match=f"{gone} is no parameter of knn any more"):
        create("knn", template=["user"], **{gone: "euclidean"})


def test_an_unknown_parameter_of_knn_is_named_beside_known_ones():
    with pytest.raises(ValueError, match="'histroy'"):
        create("knn", template=["user"], histroy=7)


@pytest.mark.parametrize(
    ("name", "least", "most", "step"), [("price", 0, 1000, 0.001), ("every", 0, 100_000, 1)]
)
def test_auto_takes_prices_and_rounds_within_its_bounds(name, least, most, step):
    assert Auto().parameters == {"price": 1.0, "every": 2_000}
    for value in (least, most):
        assert Auto(**{name: value}).parameters[name] == value
    for value in (least - step, most + step, None):
        with pytest.raises(ValueError, match=name):
            Auto(**{name: value})
