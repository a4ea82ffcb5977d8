"""What is taken from a distribution, by hand and by properties."""

from math import expm1, log1p

import numpy as np
import pytest
from distributions import Distribution
from hypothesis import given
from hypothesis import strategies as st

from predictors.distribution import MARGIN_SECONDS, TAIL


def of(*runs: tuple[float, float], request: float = 3600.0) -> Distribution:
    values, weights = zip(*sorted(runs), strict=True) if runs else ((), ())
    return Distribution(
        values=np.array(values, dtype=float),
        weights=np.array(weights, dtype=float),
        request=request,
    )


distributions = st.builds(
    lambda runs: of(*runs),
    st.lists(st.tuples(st.integers(0, 3600), st.floats(0.01, 2)), min_size=1, max_size=12),
)


def test_runs_of_the_same_length_share_many_levels():
    lowest, highest = of((600, 1), (600, 1), (600, 1)).levels(600)
    whole = 3 + 2 * TAIL
    assert lowest == pytest.approx((TAIL + 0.5) / whole)
    assert highest == pytest.approx((TAIL + 2.5) / whole)


def test_below_and_above_all_runs_the_logarithm_of_time_is_spread_evenly():
    lone = of((99, 1), request=9999)
    at_run = 0.5
    assert lone.quantile(at_run / 2) == pytest.approx(10 - 1)
    assert lone.quantile((1 + at_run) / 2) == pytest.approx(1000 - 1)


def test_a_job_that_used_up_its_request_has_all_levels_from_there_on():
    lowest, highest = of((600, 1), (3600, 1)).levels(5000)
    assert lowest == pytest.approx((TAIL + 1.5) / (2 + 2 * TAIL))
    assert highest == 1


def test_the_price_moves_the_estimate_from_the_likely_to_the_safe():
    mixed = of((60, 3), (600, 1), (3000, 0.2))
    assert mixed.estimate() == 60 + MARGIN_SECONDS
    assert mixed.estimate(2000) == 600 + MARGIN_SECONDS
    assert mixed.estimate(100_000) == 3000 + MARGIN_SECONDS


@given(distribution=distributions, levels=st.lists(st.floats(0, 1), min_size=2))
def test_quantiles_grow_with_their_level_from_nothing_to_the_request(distribution, levels):
    found = [distribution.quantile(level) for level in sorted(levels)]
    assert found == sorted(found)
    assert distribution.quantile(0) == 0
    assert distribution.quantile(1) == pytest.approx(3600)


def knots(distribution: Distribution) -> list[tuple[float, float]]:
    """The points between which the distribution function is drawn, by the module's definition."""
    found, passed = [(0.0, 0.0)], TAIL
    for value, weight in zip(distribution.values, distribution.weights, strict=True):
        found.append((float(value), passed + weight / 2))
        passed += weight
    whole = passed + TAIL
    return [(time, weight / whole) for time, weight in [*found, (distribution.request, whole)]]


def on_the_way(before: float, after: float, share: float) -> float:
    return before if after <= before else before + share * (after - before)


@given(distribution=distributions, level=st.floats(0.001, 0.999))
def test_a_quantile_is_the_one_that_is_found_knot_by_knot(distribution, level):
    points = knots(distribution)
    place = next(place for place, (_, reached) in enumerate(points) if place and reached >= level)
    (before, low), (after, high) = points[place - 1], points[place]
    share = (level - low) / (high - low)
    slowly = expm1(on_the_way(log1p(before), log1p(after), share))
    assert distribution.quantile(level) == pytest.approx(slowly, rel=1e-9, abs=1e-6)


@given(distribution=distributions, runtime=st.integers(0, 4000))
def test_levels_are_those_that_are_found_knot_by_knot(distribution, runtime):
    points, runtime = knots(distribution), min(float(runtime), 3600.0)
    at_runtime = [reached for time, reached in points if time == runtime]
    if not at_runtime:
        place = next(place for place, (time, _) in enumerate(points) if time > runtime)
        (before, low), (after, high) = points[place - 1], points[place]
        share = (log1p(runtime) - log1p(before)) / (log1p(after) - log1p(before))
        at_runtime = [on_the_way(low, high, share)]
    assert distribution.levels(runtime) == pytest.approx((at_runtime[0], at_runtime[-1]))


def test_of_equal_costs_the_shorter_estimate_is_taken():
    """30 and 40 s both cost 190 s: two runs are above and two below either."""
    assert of((0, 1), (10, 1), (100, 1), (100, 1)).estimate() == 30
