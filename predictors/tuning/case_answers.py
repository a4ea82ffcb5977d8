"""What attention with some weights would have answered about runs that it once looked at."""

from collections.abc import Sequence

import numpy as np

from predictors.base import SHORTEST_ESTIMATE
from predictors.compiled import compiled
from predictors.distribution import cheapest
from predictors.memory.columns import Floats
from predictors.methods.attention_features import Singles
from predictors.methods.attention_search import Model, in_order
from predictors.methods.attention_weights import Weights
from predictors.methods.least_cost_search import Sorted
from predictors.tuning.fine_tuning import Case

Atoms = tuple[Singles, Floats, Singles]
"""Features by atom, values, and the context."""


def answers_of(weights: Weights, cases: Sequence[Case], prices: Floats) -> Floats:
    """By case and price: what would be answered.

    Args:
        weights: of attention.
        cases: as it saw them.
        prices: of an underestimate, in seconds.
    """
    return np.array([answers_of_case(weights, case, prices) for case in cases])


def answers_of_case(weights: Weights, case: Case, prices: Floats) -> Floats:
    """By price, in seconds: what would be answered about one case."""
    atoms = (case.features, case.values, case.context)
    found = estimates(atoms, case.by_hand, case.request, prices, weights.model)
    answers: Floats = np.minimum(case.request, np.maximum(SHORTEST_ESTIMATE, found))
    return answers


@compiled
def estimates(
    atoms: Atoms, by_hand: Sorted, request: float, prices: Floats, model: Model
) -> Floats:
    """The estimate of least expected cost at each of the prices in seconds."""
    values, weights, _ = in_order(atoms, by_hand, model)
    found = np.empty(len(prices))
    for index in range(len(prices)):
        found[index] = cheapest(values, weights, len(values), request, prices[index])
    return found
