"""Common parts of the two searches: the space of parameters, the answer, the progress report."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import chain, combinations

from msgspec import Struct

from predictors.methods.knn import KnnParameters
from predictors.tuning.batch import Batch


class SearchUnavailableError(RuntimeError):
    """The genetic search needs pymoo, which is not installed (extra tuning): pip install pymoo."""

    def __str__(self) -> str:
        """What it says; made of nothing, it is made again in another process as it was."""
        return str(self.__doc__)


def has_genetic() -> bool:
    """Whether the operators of the genetic search are installed."""
    return find_spec("pymoo") is not None


def check_available(search: str) -> None:
    """Refuse a search that is not installed.

    Raises:
        SearchUnavailableError: the message names what to install.
    """
    if search == "genetic" and not has_genetic():
        raise SearchUnavailableError


class Found(Struct, frozen=True, kw_only=True):
    """The best parameters of a search.

    Attributes:
        parameters: the best parameters.
        cost: their cost on the batch, in seconds.
        costs: the best cost after each generation or step.
        evaluations: number of sets of parameters that were tried.
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


ProgressReport = Callable[[Progress], None]
"""Called with the progress; an exception that it raises ends the search."""


def untold(progress: Progress) -> None:
    """Report nothing."""


def templates(batch: Batch) -> Sequence[tuple[str, ...]]:
    """All subsets of the attributes that any trial job has, the smaller ones first."""
    usable = batch.usable_attributes
    return list(chain.from_iterable(combinations(usable, n) for n in range(len(usable) + 1)))
