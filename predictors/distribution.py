"""What may become of a job: past runtimes, each with a weight, and all that is taken from them.

A method that weighs past runs hands over two arrays: runtimes in ascending order, none longer than
the request, and their weights. Everything else that is said of the job has its one definition
here: the estimate of least expected cost, a quantile, the level at which a runtime lies, and what
is left of a job that runs already. Which level to take a quantile at is for ``calibration`` to
say: weights alone are not calibrated.

Between two of the runtimes the distribution function is linear in the logarithm of time, and at a
runtime it has half of that runtime's weight below it (Hazen's rule). So it is continuous, every
level has one quantile, and a runtime that many past runs share has many levels. A weight of TAIL
lies between 0 and the shortest runtime, and as much between the longest and the request: the next
run may be shorter or longer than all before it.
"""

from math import exp, log

import numpy as np
from msgspec import Struct

from predictors.compiled import compiled
from predictors.memory.columns import Floats

MARGIN_SECONDS = 30.0
"""Added to a past runtime: the next run seldom takes exactly as long."""

TAIL = 0.05
"""Weight below the shortest runtime and above the longest, where the last run has at most 1."""

_NO_TIME = 1e-12


@compiled
def cheapest(values: Floats, weights: Floats, count: int, request: float, price: float) -> float:
    """Of the values, each a margin later, and the request: that whose expected cost is least."""
    weight, weighted = 0.0, 0.0
    for index in range(count):
        weight += weights[index]
        weighted += weights[index] * values[index]
    best, answer = np.inf, request
    below, weighted_below = 0.0, 0.0
    reached = 0
    for index in range(count):
        estimate = min(request, values[index] + MARGIN_SECONDS)
        while reached < count and values[reached] <= estimate:
            below += weights[reached]
            weighted_below += weights[reached] * values[reached]
            reached += 1
        above, weighted_above = weight - below, weighted - weighted_below
        cost = below * estimate - weighted_below + weighted_above - above * estimate + price * above
        if cost < best:
            best, answer = cost, estimate
    return answer


@compiled
def passed(weights: Floats, count: int) -> Floats:
    """The weight below the middle of each runtime, and at last all that there is."""
    found = np.empty(count + 1)
    weight = TAIL
    for index in range(count):
        found[index] = weight + weights[index] / 2
        weight += weights[index]
    found[count] = weight + TAIL
    return found


@compiled
def quantile(values: Floats, weights: Floats, count: int, request: float, level: float) -> float:
    """The runtime below which ``level`` of the distribution lies."""
    return quantile_at(values[:count], passed(weights, count), request, level)


@compiled
def quantile_at(values: Floats, reached: Floats, request: float, level: float) -> float:
    """The same, of weights that were added up by ``passed``."""
    count = len(values)
    wanted = level * reached[count]
    place = min(count, np.searchsorted(reached, wanted))
    after = values[place] if place < count else request
    before, weight = (values[place - 1], reached[place - 1]) if place else (0.0, 0.0)
    return _between(before, after, (wanted - weight) / max(reached[place] - weight, 1e-300))


@compiled
def levels(
    values: Floats, weights: Floats, count: int, request: float, runtime: float
) -> tuple[float, float]:
    """The lowest level whose quantile is not shorter than ``runtime``, and the highest not longer.

    They differ where past runs took exactly as long; and a job that used up its request has all
    levels above, as no quantile is longer.
    """
    return levels_at(values[:count], passed(weights, count), request, runtime)


@compiled
def levels_at(
    values: Floats, reached: Floats, request: float, runtime: float
) -> tuple[float, float]:
    """The same, of weights that were added up by ``passed``."""
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
    """The weight below ``runtime``, which lies before the value at a place or is that value."""
    value = values[place] if place < len(values) else request
    here: float = reached[place]
    if value <= runtime:
        return here
    before, weight = (values[place - 1], reached[place - 1]) if place else (0.0, 0.0)
    between: float = weight + (here - weight) * _share(before, value, runtime)
    return between


@compiled
def _share(before: float, after: float, time: float) -> float:
    """How far ``time`` is on the way between two others, by logarithms."""
    way = log(1.0 + after) - log(1.0 + before)
    return (log(1.0 + time) - log(1.0 + before)) / way if way > _NO_TIME else 1.0


@compiled
def _between(before: float, after: float, share: float) -> float:
    """The time that is ``share`` of the way between two others, by logarithms."""
    if after - before <= _NO_TIME or share >= 1.0:
        return after
    if share <= 0.0:
        return before
    time = exp(log(1.0 + before) + share * (log(1.0 + after) - log(1.0 + before))) - 1.0
    return min(after, max(before, time))


@compiled
def left(values: Floats, weights: Floats, count: int, elapsed: float) -> int:
    """Leave only what took longer than ``elapsed``; answer how many that are."""
    first = 0
    while first < count and values[first] <= elapsed:
        first += 1
    for index in range(first, count):
        values[index - first] = values[index]
        weights[index - first] = weights[index]
    return count - first


class Distribution(Struct, frozen=True, kw_only=True):
    """The distribution of one job's runtime, for whoever has the time to look at it.

    Attributes:
        values: runtimes in ascending order, none longer than the request.
        weights: theirs.
        request: seconds.
    """

    values: Floats
    weights: Floats
    request: float

    def estimate(self, price_seconds: float = 0.0) -> float:
        """The estimate of least expected cost; an underestimate costs ``price_seconds`` more."""
        return cheapest(self.values, self.weights, len(self.values), self.request, price_seconds)

    def quantile(self, level: float) -> float:
        """The runtime below which ``level`` of the distribution lies."""
        return quantile(self.values, self.weights, len(self.values), self.request, level)

    def levels(self, runtime: float) -> tuple[float, float]:
        """The lowest level whose quantile reaches ``runtime``, and the highest within it."""
        return levels(self.values, self.weights, len(self.values), self.request, runtime)

    def left(self, elapsed: float) -> "Distribution":
        """That of a job that has run for ``elapsed`` seconds; empty if no past run was longer."""
        longer = self.values > elapsed
        return Distribution(
            values=self.values[longer], weights=self.weights[longer], request=self.request
        )
