"""The distribution of a job's runtime: past runtimes with weights, and everything taken from it.

A method hands over two arrays: runtimes (support points) in ascending order, none longer than the
request, and their weights. This module defines the estimate of least expected cost, quantiles, the
levels of a runtime, and the distribution of a running job. The level at which a quantile is taken
comes from ``calibration``: weights alone are not calibrated.

Between two support points the distribution function is linear in the logarithm of time, and at a
support point it has half of that point's weight below it (Hazen's rule). So the function is
continuous, each level has one quantile, and a runtime that many runs share has many levels. A
weight of TAIL lies below the shortest runtime, and as much between the longest and the request.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import Floats, RowIds

MARGIN_SECONDS = 30.0
"""Added to a past runtime: the next run seldom takes exactly as long."""

TAIL = 0.05
"""Weight in each tail, relative to the newest run's weight, which is at most 1."""

_NO_TIME = 1e-12

NO_ROW = -1
"""Row of a support point that is not a run of the job's user."""


class Evidence(NamedTuple):
    """The distribution of a job's runtime by one method, and the runs behind it.

    Attributes:
        values: support points in ascending order, in seconds, none longer than the request.
        rows: row of the run behind each of them, or NO_ROW.
        own: number of runs of the user.
        others: number of runs of other users.
        mean_runtime: of the cluster, in seconds.
    """

    values: Floats
    weights: Floats
    rows: RowIds
    own: int
    others: int
    mean_runtime: float


@compiled
def bayes_estimate(
    values: Floats, weights: Floats, count: int, request: float, penalty: float
) -> float:
    """Return the prediction of least expected cost: equation 2 of docs/attention.md.

    Args:
        values: support points in ascending order, in seconds.
        count: number of support points; the arrays may be longer.
        penalty: seconds that an underestimate costs beside its error.
    """
    weight, weighted = 0.0, 0.0
    for index in range(count):
        weight += weights[index]
        weighted += weights[index] * values[index]
    least, best = np.inf, request
    below, weighted_below = 0.0, 0.0
    reached = 0
    for index in range(count):
        estimate = min(request, values[index] + MARGIN_SECONDS)
        while reached < count and values[reached] <= estimate:
            below += weights[reached]
            weighted_below += weights[reached] * values[reached]
            reached += 1
        above, weighted_above = weight - below, weighted - weighted_below
        error = below * estimate - weighted_below + weighted_above - above * estimate
        cost = error + penalty * above
        if cost < least:
            least, best = cost, estimate
    return best


@compiled
def cumulative(weights: Floats) -> Floats:
    """Return the weight below the middle of each support point, and last the total weight."""
    count = len(weights)
    found = np.empty(count + 1)
    weight = TAIL
    for index in range(count):
        found[index] = weight + weights[index] / 2
        weight += weights[index]
    found[count] = weight + TAIL
    return found


@compiled
def quantile_at(values: Floats, reached: Floats, request: float, level: float) -> float:
    """Return the runtime below which ``level`` of the distribution lies.

    Args:
        values: support points in ascending order, in seconds.
        reached: by ``cumulative``.
        level: between 0 and 1.
    """
    count = len(values)
    target = level * reached[count]
    place = min(count, np.searchsorted(reached, target))
    after = values[place] if place < count else request
    before, weight = (values[place - 1], reached[place - 1]) if place else (0.0, 0.0)
    return _between(before, after, (target - weight) / max(reached[place] - weight, 1e-300))


@compiled
def levels_at(
    values: Floats, reached: Floats, request: float, runtime: float
) -> tuple[float, float]:
    """Return the lowest level whose quantile is at least ``runtime``, and the highest at most.

    They differ where past runs took exactly as long. A job that used up its request has all higher
    levels, as no quantile is longer. Takes what ``quantile_at`` takes.
    """
    runtime = min(runtime, request)
    first = int(np.searchsorted(values, runtime))
    after = int(np.searchsorted(values, runtime, side="right"))
    lowest = _weight_until(values, reached, request, runtime, first)
    highest = _weight_until(values, reached, request, runtime, after)
    whole = reached[len(values)]
    return (lowest if runtime > 0 else 0.0) / whole, highest / whole


@compiled
def _weight_until(
    values: Floats, reached: Floats, request: float, runtime: float, place: int
) -> float:
    """Return the weight below ``runtime``, which is at most the value at ``place``."""
    value = values[place] if place < len(values) else request
    here: float = reached[place]
    if value <= runtime:
        return here
    before, weight = (values[place - 1], reached[place - 1]) if place else (0.0, 0.0)
    between: float = weight + (here - weight) * _share(before, value, runtime)
    return between


@compiled
def _share(before: float, after: float, time: float) -> float:
    """Return the position of ``time`` between two others, from 0 to 1, by logarithms."""
    way = log(1.0 + after) - log(1.0 + before)
    return (log(1.0 + time) - log(1.0 + before)) / way if way > _NO_TIME else 1.0


@compiled
def _between(before: float, after: float, share: float) -> float:
    """Return the time at a position between two others, by logarithms."""
    if after - before <= _NO_TIME or share >= 1.0:
        return after
    if share <= 0.0:
        return before
    time = exp(log(1.0 + before) + share * (log(1.0 + after) - log(1.0 + before))) - 1.0
    return min(after, max(before, time))
