"""Every parameter takes what it is documented to take, to the last of it, and nothing beyond."""

import pytest

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
