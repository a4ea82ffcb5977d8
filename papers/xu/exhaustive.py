"""Exhaustive search of knn's parameters, beside which the genetic search is judged.

It tries every template with a few values of N, K, alpha and beta. The values are far apart on
purpose. On the shared traces, finer steps, wider ranges, or smaller steps around the best
parameters gave lower costs on the training jobs and higher costs on later jobs: the search
overfitted.
"""

from collections.abc import Callable, Sequence
from itertools import chain, combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from predictors.compiled import compiled
from predictors.memory.columns import Floats, within
from predictors.methods.knn import KnnParameters
from predictors.tuning.batch import Batch, cost_of
from predictors.tuning.genetic import Progress, ProgressReport, SearchResult, no_report
from predictors.tuning.plan import TuningPlan


@compiled
def error_surface(
    neighbours: tuple[Floats, Floats],
    jobs: tuple[Floats, Floats],
    alphas: Floats,
    betas: Floats,
) -> tuple[Floats, Floats]:
    """Return mean absolute error and underestimation rate for every pair of alpha and beta.

    Computes the measures of ``predictors.measures`` in one compiled loop.

    Args:
        neighbours: mean and deviation of the neighbours' runtimes for each job.
        jobs: request and runtime of each job.
        alphas: weights of the deviation.
        betas: weights of the request.
    """
    means, deviations = neighbours
    requests, runtimes = jobs
    count = len(means)
    errors = np.empty((len(alphas), len(betas)))
    shares = np.empty((len(alphas), len(betas)))
    for i in range(len(alphas)):
        for j in range(len(betas)):
            error = 0.0
            underestimated = 0
            for job in range(count):
                seconds = means[job] + alphas[i] * deviations[job] + betas[j] * requests[job]
                seconds = within(seconds, requests[job])
                error += abs(seconds - runtimes[job])
                if seconds < runtimes[job]:
                    underestimated += 1
            errors[i, j] = error / count
            shares[i, j] = underestimated / count
    return errors, shares


def templates(batch: Batch) -> Sequence[tuple[str, ...]]:
    """Return all subsets of the attributes that any trial job has, smaller ones first."""
    usable = batch.usable_attributes
    return list(chain.from_iterable(combinations(usable, n) for n in range(len(usable) + 1)))


HISTORIES = (500, 2000, 5000)
NEIGHBOURS = (2, 3, 5, 8, 12, 20)

ALPHAS = np.array([0.0, 0.5, 1.0, 2.0])
BETAS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
"""The values of beta that are tried. The first of equal costs wins, so a weight without effect
stays 0."""


class Survey(Struct, frozen=True, kw_only=True):
    """The errors of every set of parameters with one template on a batch, for any penalty.

    Attributes:
        template: the template of all sets.
        histories: the values of N.
        errors: mean absolute errors in seconds by N, K, alpha and beta.
        shares: shares of underestimated jobs, in the same order.
    """

    template: tuple[str, ...]
    histories: Sequence[int]
    errors: Floats
    shares: Floats

    def best(self, plan: TuningPlan, unsearched: KnnParameters) -> "Best":
        """Return the parameters of least cost, as the plan defines it."""
        costs = cost_of(self.errors, self.shares, plan.penalty)
        place = int(costs.argmin())
        history, neighbours, alpha, beta = map(int, np.unravel_index(place, costs.shape))
        parameters = replace(
            unsearched,
            template=self.template,
            history=self.histories[history],
            neighbours=NEIGHBOURS[neighbours],
            alpha=float(ALPHAS[alpha]),
            beta=float(BETAS[beta]),
        )
        return Best(parameters=parameters, cost=float(costs.flat[place]))


class Best(Struct, frozen=True, kw_only=True):
    """Parameters and their cost in seconds."""

    parameters: KnnParameters
    cost: float


Surveyor = Callable[[Batch, tuple[str, ...]], Survey]


def survey(batch: Batch, template: tuple[str, ...]) -> Survey:
    """Try ``template`` with all values on the ladders."""
    histories = [history for history in HISTORIES if history <= batch.longest_history]
    shape = (len(histories), len(NEIGHBOURS), len(ALPHAS), len(BETAS))
    errors, shares = np.empty(shape), np.empty(shape)
    jobs = (batch.requests, batch.runtimes)
    for row, history in enumerate(histories):
        statistics = zip(*batch.neighbours(template, history, NEIGHBOURS), strict=True)
        for step, neighbours in enumerate(statistics):
            errors[row, step], shares[row, step] = error_surface(neighbours, jobs, ALPHAS, BETAS)
    return Survey(template=template, histories=histories, errors=errors, shares=shares)


def exhaustive(
    batch: Batch,
    plan: TuningPlan,
    *,
    report: ProgressReport = no_report,
    surveyor: Surveyor = survey,
) -> SearchResult:
    """Return the parameters of least cost on a batch.

    Args:
        batch: the trial jobs.
        plan: the cost.
        report: called after each template.
        surveyor: surveys a template; a caching one serves several penalties.
    """
    subsets = templates(batch)
    bests: list[Best] = []
    costs: list[float] = []
    evaluations = 0
    for step, template in enumerate(subsets, 1):
        surveyed = surveyor(batch, template)
        evaluations += surveyed.errors.size
        bests.append(surveyed.best(plan, batch.unsearched))
        best = min(bests, key=lambda one: one.cost)
        costs.append(best.cost)
        report(Progress(step=step, steps=len(subsets), cost=best.cost, parameters=best.parameters))
    return SearchResult(
        parameters=best.parameters, cost=best.cost, costs=tuple(costs), evaluations=evaluations
    )
