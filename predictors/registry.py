"""The methods by name. A new predictor is one module and one line here."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from predictors.auto import Auto
from predictors.base import Predictor
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.knn import Knn
from predictors.methods.last_two import LastTwo
from predictors.methods.least_cost import LeastCost
from predictors.methods.max_usage import MaxUsage
from predictors.methods.percentile import Percentile
from predictors.methods.requested import Requested
from predictors.parameters import unknown

PREDICTORS: Mapping[str, Callable[..., Predictor]] = {
    "requested": Requested,
    "max-usage": MaxUsage,
    "percentile": Percentile,
    "last-two": LastTwo,
    "knn": Knn,
    "least-cost": LeastCost,
    "attention": Attention,
    "forest": Forest,
}
"""The methods in the order in which tables show them, requests first."""

AUTO = Auto.name
"""Chooses for each job among estimates of attention, forest and the request."""

METHODS = (*PREDICTORS, AUTO)
"""All names of methods."""

UNCERTAIN = frozenset({LeastCost.name, Attention.name, Forest.name, Auto.name})
"""The methods with a distribution: each is an ``UncertainPredictor``."""


class UnknownMethodError(ValueError):
    """There is no prediction method of that name."""

    exit_code = 2
    """Of a command that ends by it: wrong usage."""


def create(name: str, **parameters: Any) -> Predictor:
    """Build the predictor called ``name``.

    Raises:
        UnknownMethodError: no such method; the message lists those there are.
        ValueError: a parameter is unknown or out of range; the message names it.
    """
    try:
        factory: Callable[..., Predictor] = Auto if name == AUTO else PREDICTORS[name]
    except KeyError:
        raise UnknownMethodError(unknown("method", name, sorted(METHODS))) from None
    try:
        return factory(**parameters)
    except TypeError as error:
        names = signature(factory).parameters
        for parameter in parameters:
            if parameter not in names:
                sentence = unknown(f"parameter of {name}", parameter, names)
                raise ValueError(sentence) from error
        raise ValueError(
            f"{name}: a parameter has a value of the wrong kind: {parameters}."
        ) from error
