"""What the two searches share: the space of parameters, the answer, the report of progress."""

from collections.abc import Callable, Sequence
from itertools import chain, combinations

from msgspec import Struct

from predictors.methods.knn import KnnParameters
from predictors.tuning.batch import Batch


class Found(Struct, frozen=True, kw_only=True):
    """The best parameters of a search.

    Attributes:
        parameters: what was found.
        cost: of these on the batch, in seconds.
        costs: the best cost after each generation or step.
        evaluations: how many sets of parameters were tried.
    """

    parameters: KnnParameters
    cost: float
    costs: tuple[float, ...]
    evaluations: int


class Progress(Struct, frozen=True, kw_only=True):
    """How far a search is: steps done, steps at most, and the best found so far."""

    step: int
    steps: int
    cost: float
    parameters: KnnParameters


Report = Callable[[Progress], None]
"""Is told of progress; what it raises ends the search."""


def untold(progress: Progress) -> None:
    """Tells nobody."""


def templates(batch: Batch) -> Sequence[tuple[str, ...]]:
    """All subsets of the attributes that any trial job has, the smaller ones first."""
    usable = batch.usable_attributes
    return list(chain.from_iterable(combinations(usable, n) for n in range(len(usable) + 1)))
