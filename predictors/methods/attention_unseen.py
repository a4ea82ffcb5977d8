"""Machine code that leaves some weight to runtimes that no past run had."""

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import Floats
from predictors.methods.attention_features import Rows
from predictors.methods.least_cost_search import Sorted

STEPS = 8
"""How many values stand for such runtimes on each side of the median."""

UNSEEN = -1
"""The place, and the row, of such a value."""


@compiled
def with_unseen(
    known: Sorted, places: Rows, request: float, runs: float
) -> tuple[Floats, Floats, Rows]:
    """The distribution, mixed with a guess that counts as if it were some past runs more.

    The fewer runs a distribution rests on, the more likely the next one is none of them. Half of
    the guess is below the median, evenly by time, and half between the median and the request,
    evenly by the logarithm of time. So the median stays, and both ends get heavier.

    Args:
        known: values in ascending order, with weights that add up to one.
        places: of the values, where they were before they were in order.
        request: the longest that the job may take.
        runs: how many past runs the guess counts for; the distribution counts for as many as
            would have its squares of weights if they weighed alike. 0 leaves it as it is.

    Returns:
        Values, weights and places, which are UNSEEN where the value is of the guess.
    """
    values, weights = known
    if runs <= 0.0:
        return values, weights, places
    share = runs / (runs + 1.0 / np.sum(weights * weights))
    guessed = guess(median(values, weights), request)
    all_values = np.empty(len(values) + len(guessed))
    all_weights = np.empty(len(all_values))
    all_places = np.empty(len(all_values), np.int64)
    own = other = 0
    for place in range(len(all_values)):
        is_guessed = own == len(values) or (other < len(guessed) and guessed[other] < values[own])
        if is_guessed:
            all_values[place], all_places[place] = guessed[other], UNSEEN
            all_weights[place] = share / len(guessed)
            other += 1
        else:
            all_values[place], all_places[place] = values[own], places[own]
            all_weights[place] = (1.0 - share) * weights[own]
            own += 1
    return all_values, all_weights, all_places


@compiled
def guess(middle: float, request: float) -> Floats:
    """The values that stand for runtimes that no past run had, in ascending order."""
    guessed = np.empty(2 * STEPS)
    factor = (request / middle) ** (1.0 / STEPS)
    longer = middle
    for step in range(STEPS):
        longer = min(request, longer * factor)
        guessed[step] = middle * (step + 0.5) / STEPS
        guessed[STEPS + step] = longer
    return guessed


@compiled
def median(values: Floats, weights: Floats) -> float:
    """The first of the values that has half of all weight with those before it."""
    reached = 0.0
    for place in range(len(values)):
        reached += weights[place]
        if reached >= 0.5:
            return float(values[place])
    return float(values[len(values) - 1])
