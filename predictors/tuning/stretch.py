"""The last runs of a cluster, as the methods saw each of them when it was submitted."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.attention_weights import Weights
from predictors.methods.least_cost import LeastCost
from predictors.tuning.case_answers import answers_of_case
from predictors.tuning.fine_tuning import Case, case_of

NOBODY = ""
"""Stands for the unknown user of a run."""


class Noted(NamedTuple):
    """A run that has ended, and what was said of it.

    Attributes:
        user: whose it was.
        runtime: seconds, at most the request.
        end: Unix seconds.
        case: as attention saw it; None where nothing was known of it.
        said: what each method would have answered, by price.
    """

    user: str
    runtime: float
    end: float
    case: Case | None
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

    def note(self, run: Completion, attention: Attention, said: Mapping[str, Floats]) -> None:
        """Keep a run; attention must not have observed it yet.

        Args:
            run: that has ended.
            attention: sees it as it was submitted.
            said: by method, what was answered at each of the prices.
        """
        request = run.submission.requested_walltime
        noted = Noted(
            user=run.submission.user or NOBODY,
            runtime=min(run.runtime, request),
            end=run.end_time,
            case=case_of(attention, run),
            said=said,
        )
        self._noted.append(noted)

    def asked_again(self, weights: Weights) -> "Stretch":
        """The same runs, with what attention would have said of them with other weights.

        Who answers is to be chosen by the weights that are in force from now on.
        """
        other = Stretch(self._room, self.prices.tolist())
        prices = self.prices * np.mean([noted.runtime for noted in self._noted])
        for noted in self._noted:
            said = dict(noted.said)
            if noted.case is not None and Attention.name in said:
                said[Attention.name] = answers_of_case(weights, noted.case, prices)
            other._noted.append(noted._replace(said=said))
        return other

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
    job = run.submission
    priced = [least_cost.repriced(float(price)) for price in prices]
    return {
        LeastCost.name: np.array([each.predict(job).predicted_walltime for each in priced]),
        Attention.name: attention.estimates(job, prices),
    }


def stretch_of(
    completions: Sequence[Completion],
    attention: Attention,
    *,
    asked: int,
    prices: Sequence[float],
    alive: Callable[[], object] = lambda: None,
) -> Stretch:
    """Fold completions, and note the last ``asked`` of them.

    A method that is asked about a run when it ends answers as it did when the run was submitted:
    what ended in between has no influence on it.

    Args:
        completions: in the order of the log.
        attention: as it is in force; it must not have observed anything.
        asked: how many runs are noted.
        prices: at which the methods are asked.
        alive: called once for every hundred runs.
    """
    least_cost = LeastCost()
    stretch = Stretch(asked, prices)
    for place, run in enumerate(completions):
        if place >= len(completions) - asked:
            stretch.note(run, attention, said_of(run, least_cost, attention, stretch.prices))
        attention.observe(run)
        least_cost.observe(run)
        if not place % 100:
            alive()
    return stretch
