"""Tries every template with a ladder of N and K, each with a grid of alpha and beta.

What a grid of parameters gives does not depend on the penalty, so one survey of a batch serves
all penalties; around the best of a few templates the search goes on in smaller steps.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from predictors.knn import KnnParameters
from predictors.neighbours import Floats
from predictors.tuning.batch import MOST_NEIGHBOURS, Batch
from predictors.tuning.objective import error_surface
from predictors.tuning.search import (
    ALPHAS,
    BETAS,
    SHORTEST_HISTORY,
    Found,
    Progress,
    Report,
    templates,
    untold,
)

HISTORIES = (50, 100, 200, 500, 1000, 2000, 5000)
NEIGHBOURS = (1, 2, 3, 5, 8, 12, 20, 35, 50)

COARSE_ALPHAS = np.array([0.0, -0.5, 0.5, 1.0, 2.0])
COARSE_BETAS = np.array([0.0, 0.03, 0.1, 0.2, 0.4, 0.7])
"""Of equal costs the first wins: a weight that has no effect stays 0."""

REFINED_TEMPLATES = 3
"""Around the best of so many templates the search goes on."""

REFINEMENTS = 3
"""So often, each time in steps half as large."""


class Grid(Struct, frozen=True, kw_only=True):
    """Sets of parameters with one template: every combination of four ladders."""

    template: tuple[str, ...]
    histories: Sequence[int]
    neighbours: Sequence[int]
    alphas: Floats
    betas: Floats

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of arrays with an entry for each set."""
        return len(self.histories), len(self.neighbours), len(self.alphas), len(self.betas)

    def parameters(self, place: int, scaling: int) -> KnnParameters:
        """The set at a place of such an array, flat."""
        history, neighbours, alpha, beta = map(int, np.unravel_index(place, self.shape))
        return KnnParameters(
            template=self.template,
            history=self.histories[history],
            neighbours=self.neighbours[neighbours],
            alpha=float(self.alphas[alpha]),
            beta=float(self.betas[beta]),
            scaling=scaling,
        )


class Survey(Struct, frozen=True, kw_only=True):
    """What every set of a grid gives on a batch: error in seconds, share underestimated."""

    grid: Grid
    errors: Floats
    shares: Floats

    def best(self, penalty: float, scaling: int) -> "Best":
        """The set of least cost."""
        costs = self.errors * (1.0 + penalty * self.shares)
        place = int(costs.argmin())
        return Best(parameters=self.grid.parameters(place, scaling), cost=float(costs.flat[place]))


class Best(Struct, frozen=True, kw_only=True):
    """Parameters and their cost in seconds."""

    parameters: KnnParameters
    cost: float


Surveyor = Callable[[Batch, tuple[str, ...]], Survey]


def survey(batch: Batch, grid: Grid) -> Survey:
    """Try every set of a grid."""
    errors, shares = np.empty(grid.shape), np.empty(grid.shape)
    jobs = (batch.requests, batch.runtimes)
    for row, history in enumerate(grid.histories):
        means, deviations = batch.neighbours(grid.template, history, grid.neighbours)
        for step in range(len(grid.neighbours)):
            neighbours = (means[step], deviations[step])
            errors[row, step], shares[row, step] = error_surface(
                neighbours, jobs, grid.alphas, grid.betas
            )
    return Survey(grid=grid, errors=errors, shares=shares)


def survey_template(batch: Batch, template: tuple[str, ...]) -> Survey:
    """Try a template with the coarse ladders."""
    return survey(
        batch,
        Grid(
            template=template,
            histories=[history for history in HISTORIES if history <= batch.longest_history],
            neighbours=NEIGHBOURS,
            alphas=COARSE_ALPHAS,
            betas=COARSE_BETAS,
        ),
    )


def exhaustive(
    batch: Batch,
    penalty: float,
    *,
    seed: int = 0,
    report: Report = untold,
    surveyor: Surveyor = survey_template,
) -> Found:
    """The parameters of least cost on a batch.

    Args:
        batch: the jobs they are tried on.
        penalty: price of underestimating; see Errors.cost.
        seed: taken for the sake of the genetic search's signature; nothing here is random.
        report: is told after each template, and after each refinement.
        surveyor: tries a template; one that remembers serves several penalties.
    """
    del seed
    subsets = templates(batch)
    search = _Search(batch, penalty, report)
    search.steps = len(subsets) + min(REFINED_TEMPLATES, len(subsets)) * REFINEMENTS
    coarse = [search.note(surveyor(batch, template)) for template in subsets]
    for best in sorted(coarse, key=cost_of)[:REFINED_TEMPLATES]:
        search.refine(best)
    return Found(
        parameters=search.best.parameters,
        cost=search.best.cost,
        costs=tuple(search.costs),
        evaluations=search.evaluations,
    )


class _Search:
    """The best so far, and how it came about."""

    def __init__(self, batch: Batch, penalty: float, report: Report) -> None:
        self._batch = batch
        self._penalty = penalty
        self._report = report
        self.best = Best(parameters=KnnParameters(scaling=batch.scaling), cost=np.inf)
        self.costs: list[float] = []
        self.steps = 0
        self.evaluations = 0

    def note(self, surveyed: Survey) -> Best:
        """Take a survey into account; answers the best of it."""
        found = surveyed.best(self._penalty, self._batch.scaling)
        self.best = min(self.best, found, key=cost_of)
        self.costs.append(self.best.cost)
        self.evaluations += surveyed.errors.size
        self._report(
            Progress(
                step=len(self.costs),
                steps=self.steps,
                cost=self.best.cost,
                parameters=self.best.parameters,
            )
        )
        return found

    def refine(self, best: Best) -> None:
        """Go on around a set of parameters, in smaller and smaller steps."""
        for level in range(1, REFINEMENTS + 1):
            near = around(best.parameters, 0.5**level, self._batch.longest_history)
            best = min(best, self.note(survey(self._batch, near)), key=cost_of)


def cost_of(best: Best) -> float:
    """Its cost in seconds."""
    return best.cost


def around(given: KnnParameters, share: float, longest_history: int) -> Grid:
    """The neighbourhood of parameters: N and K up to ``share`` away, alpha and beta near."""
    return Grid(
        template=given.template,
        histories=stretched(given.history, share, (SHORTEST_HISTORY, longest_history)),
        neighbours=stretched(given.neighbours, share, (1, MOST_NEIGHBOURS)),
        alphas=spread(given.alpha, 0.5 * share, ALPHAS),
        betas=spread(given.beta, 0.1 * share, BETAS),
    )


def spread(value: float, step: float, limits: tuple[float, float]) -> Floats:
    """The value and two on either side a step apart, within limits, in increasing order."""
    offsets = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    return np.unique(np.clip(value + offsets * step, *limits))


def stretched(value: int, share: float, limits: tuple[int, int]) -> list[int]:
    """The value and two on either side up to a share of it away, within limits, in order."""
    least, most = limits
    factors = (1 - share, 1 - share / 2, 1.0, 1 + share / 2, 1 + share)
    return sorted({min(most, max(least, round(value * factor))) for factor in factors})
