"""Tries every template with a ladder of N and K, each with the best alpha and beta."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from predictors.knn import KnnParameters
from predictors.neighbours import Floats
from predictors.tuning.batch import Batch
from predictors.tuning.objective import cost_surface
from predictors.tuning.search import (
    ALPHAS,
    BETAS,
    MOST_NEIGHBOURS,
    SHORTEST_HISTORY,
    Found,
    Progress,
    Report,
    templates,
    untold,
)

HISTORIES = (50, 100, 200, 500, 1000, 2000, 5000)
NEIGHBOURS = (1, 2, 3, 5, 8, 12, 20, 35, 50)

COARSE_ALPHAS = (0.0, -0.5, 0.5, 1.0, 2.0)
COARSE_BETAS = (0.0, 0.03, 0.1, 0.2, 0.4, 0.7)
"""Of equal costs the first wins: a weight that has no effect stays 0."""

REFINEMENTS = 3
"""So many times the neighbourhood of each template's best is searched, each time at half the
distance."""


class Weights(Struct, frozen=True, kw_only=True):
    """Values of alpha and beta to try with every template, N and K."""

    alphas: Floats
    betas: Floats


class Best(Struct, frozen=True, kw_only=True):
    """Parameters and their cost in seconds."""

    parameters: KnnParameters
    cost: float


def exhaustive(batch: Batch, penalty: float, *, seed: int = 0, report: Report = untold) -> Found:
    """The parameters of least cost on a batch.

    Args:
        batch: the jobs they are tried on.
        penalty: price of underestimating; see Errors.cost.
        seed: taken for the sake of the genetic search's signature; nothing here is random.
        report: is told after each template.
    """
    del seed
    trials = _Trials(batch, penalty)
    bests: list[Best] = []
    costs: list[float] = []
    subsets = templates(batch)
    for template in subsets:
        bests.append(trials.refined(trials.of_template(template)))
        best = min(bests, key=lambda one: one.cost)
        costs.append(best.cost)
        report(
            Progress(
                step=len(bests), steps=len(subsets), cost=best.cost, parameters=best.parameters
            )
        )
    return Found(
        parameters=best.parameters,
        cost=best.cost,
        costs=tuple(costs),
        evaluations=trials.evaluations,
    )


class _Trials:
    """Tries parameters on a batch and counts how many."""

    def __init__(self, batch: Batch, penalty: float) -> None:
        self._batch = batch
        self._penalty = float(penalty)
        self._jobs = (batch.requests, batch.runtimes)
        self._base = KnnParameters(scaling=batch.scaling)
        self.evaluations = 0

    def of_template(self, template: tuple[str, ...]) -> Best:
        """The best with this template on the ladders."""
        histories = [n for n in HISTORIES if n <= self._batch.longest_history]
        weights = Weights(alphas=np.array(COARSE_ALPHAS), betas=np.array(COARSE_BETAS))
        return self._best(template, histories, NEIGHBOURS, weights)

    def refined(self, best: Best) -> Best:
        """The best in the neighbourhood of what was found."""
        for level in range(1, REFINEMENTS + 1):
            given = best.parameters
            narrow = 0.5**level
            weights = Weights(
                alphas=around(given.alpha, 0.5 * narrow, ALPHAS),
                betas=around(given.beta, 0.1 * narrow, BETAS),
            )
            histories = stretched(
                given.history, narrow, (SHORTEST_HISTORY, self._batch.longest_history)
            )
            neighbours = stretched(given.neighbours, narrow, (1, MOST_NEIGHBOURS))
            found = self._best(given.template, histories, neighbours, weights)
            if found.cost < best.cost:
                best = found
        return best

    def _best(
        self,
        template: tuple[str, ...],
        histories: Sequence[int],
        neighbours: Sequence[int],
        weights: Weights,
    ) -> Best:
        least, chosen = np.inf, self._base
        for history in histories:
            means, deviations = self._batch.neighbours(template, history, neighbours)
            for step, count in enumerate(neighbours):
                costs = cost_surface(
                    (means[step], deviations[step]),
                    self._jobs,
                    weights.alphas,
                    weights.betas,
                    self._penalty,
                )
                self.evaluations += costs.size
                where = int(costs.argmin())
                if costs.flat[where] < least:
                    least = float(costs.flat[where])
                    i, j = divmod(where, len(weights.betas))
                    chosen = replace(
                        self._base,
                        template=template,
                        history=history,
                        neighbours=count,
                        alpha=float(weights.alphas[i]),
                        beta=float(weights.betas[j]),
                    )
        return Best(parameters=chosen, cost=least)


def around(value: float, step: float, limits: tuple[float, float]) -> Floats:
    """The value and two on either side a step apart, within limits, in increasing order."""
    offsets = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    return np.unique(np.clip(value + offsets * step, *limits))


def stretched(value: int, share: float, limits: tuple[int, int]) -> list[int]:
    """The value and two on either side up to a share of it away, within limits, in order."""
    least, most = limits
    factors = (1 - share, 1 - share / 2, 1.0, 1 + share / 2, 1 + share)
    return sorted({min(most, max(least, round(value * factor))) for factor in factors})
