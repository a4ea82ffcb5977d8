"""What attention with some weights would have answered about runs that it once looked at."""

from collections.abc import Sequence

import numpy as np

from predictors.base import SHORTEST_ESTIMATE
from predictors.compiled import compiled
from predictors.distribution import cheapest
from predictors.memory.columns import Floats
from predictors.methods.attention_features import Singles
from predictors.methods.attention_network import Layers, weigh
from predictors.methods.attention_weights import Weights
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
    found = estimates(atoms, case.request, prices, weights.layers)
    answers: Floats = np.minimum(case.request, np.maximum(SHORTEST_ESTIMATE, found))
    return answers


@compiled
def estimates(atoms: Atoms, request: float, prices: Floats, layers: Layers) -> Floats:
    """The estimate of least expected cost at each of the prices in seconds."""
    features, values, context = atoms
    count = len(values)
    weights = weigh(features, context, count, layers)
    order = np.argsort(values)
    ordered, weighed = values[order], weights[order].astype(np.float64)
    found = np.empty(len(prices))
    for index in range(len(prices)):
        found[index] = cheapest(ordered, weighed, count, request, prices[index])
    return found
