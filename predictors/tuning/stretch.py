"""The last runs of a cluster, as the methods saw each of them when it was submitted."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.least_cost import LeastCost

NOBODY = ""
"""Stands for the unknown user of a run."""


class Noted(NamedTuple):
    """A run that has ended, and what was said of it.

    Attributes:
        user: whose it was.
        runtime: seconds, at most the request.
        end: Unix seconds.
        said: what each method would have answered, by price.
    """

    user: str
    runtime: float
    end: float
    said: Mapping[str, Floats]


class Stretch:
    """The last runs of a cluster, oldest first.

    Args:
        room: how many are kept.
        prices: of an underestimate, at which the methods are asked.
    """

    def __init__(self, room: int, prices: Sequence[float]) -> None:
        self.prices = np.array(prices, dtype=float)
        self._room = room
        self._noted: deque[Noted] = deque(maxlen=room)

    def __len__(self) -> int:
        return len(self._noted)

    def note(self, run: Completion, said: Mapping[str, Floats]) -> None:
        """Keep a run that has ended, and what each method answered at each of the prices."""
        request = run.submission.requested_walltime
        noted = Noted(
            user=run.submission.user or NOBODY,
            runtime=min(run.runtime, request),
            end=run.end_time,
            said=said,
        )
        self._noted.append(noted)

    def nearest(self, price: float) -> int:
        """The place of a price, or of the nearest one, among those at which methods are asked."""
        return int(np.abs(self.prices - price).argmin())

    def divided(self, later: int) -> tuple[Sequence[Noted], Sequence[Noted]]:
        """The older runs and the ``later`` newest ones, or a quarter of all where that is fewer."""
        noted = list(self._noted)
        first = len(noted) - min(later, len(noted) // 4)
        return noted[:first], noted[first:]


def said_of(
    run: Completion, least_cost: LeastCost, attention: Attention, prices: Floats
) -> dict[str, Floats]:
    """What the two methods say of a run at each price, from what had ended at its submission."""
    methods = (least_cost, attention)
    return {method.name: method.estimates(run.submission, prices) for method in methods}


def stretch_of(
    completions: Sequence[Completion],
    attention: Attention,
    *,
    asked: int,
    prices: Sequence[float],
) -> Stretch:
    """Fold completions, and note the last ``asked`` of them.

    A method that is asked about a run when it ends answers as it did when the run was submitted:
    what ended in between has no influence on it.

    Args:
        completions: in the order of the log.
        attention: as it is in force; it must not have observed anything.
        asked: how many runs are noted.
        prices: at which the methods are asked.
    """
    least_cost = LeastCost()
    stretch = Stretch(asked, prices)
    for place, run in enumerate(completions):
        if place >= len(completions) - asked:
            stretch.note(run, said_of(run, least_cost, attention, stretch.prices))
        attention.observe(run)
        least_cost.observe(run)
    return stretch
