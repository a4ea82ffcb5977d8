"""The genetic search of Xu et al. 2019 (section 2.3), with the operators of pymoo."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from predictors.memory.columns import Floats
from predictors.memory.job_table import TEMPLATE_ATTRIBUTES
from predictors.methods.knn import KnnParameters
from predictors.tuning.batch import MOST_NEIGHBOURS, Batch
from predictors.tuning.plan import TuningPlan, check_available
from predictors.tuning.search import Progress, ProgressReport, SearchResult, no_report

PATIENCE = 20
IMPROVEMENT = 1e-3
"""The search has converged when PATIENCE generations improved the cost by less than this share."""

GENES = len(TEMPLATE_ATTRIBUTES) + 4

SHORTEST_HISTORY = 10
ALPHAS = (-1.0, 3.0)
BETAS = (0.0, 1.0)
"""Range of the weight of the request."""


def genetic(batch: Batch, plan: TuningPlan, *, report: ProgressReport = no_report) -> SearchResult:
    """Return the parameters of least cost that a population finds; determined by the seed.

    Args:
        batch: the jobs they are tried on.
        plan: cost, population, largest number of generations, and seed.
        report: called after each generation.

    Raises:
        SearchUnavailableError: pymoo is not installed.
    """
    check_available("genetic")
    from pymoo.algorithms.soo.nonconvex.ga import GA  # noqa: PLC0415 - an extra
    from pymoo.core.problem import Problem  # noqa: PLC0415 - an extra
    from pymoo.problems.static import StaticProblem  # noqa: PLC0415 - an extra

    problem = Problem(n_var=GENES, n_obj=1, xl=0.0, xu=1.0)
    evolution = GA(pop_size=plan.population)
    evolution.setup(problem, termination=("n_gen", plan.generations), seed=plan.seed)
    costs: list[float] = []
    evaluations = 0
    while evolution.has_next() and not converged(costs):
        individuals = evolution.ask()
        tried = [batch.errors(decode(genome, batch)) for genome in individuals.get("X")]
        tried_costs = np.array([errors.cost(plan.penalty, plan.fitness) for errors in tried])
        evolution.evaluator.eval(StaticProblem(problem, F=tried_costs[:, np.newaxis]), individuals)
        evolution.tell(infills=individuals)
        evaluations += len(tried)
        best = evolution.opt[0]
        costs.append(float(best.F[0]))
        parameters = decode(best.X, batch)
        report(
            Progress(step=len(costs), steps=plan.generations, cost=costs[-1], parameters=parameters)
        )
    return SearchResult(
        parameters=parameters, cost=costs[-1], costs=tuple(costs), evaluations=evaluations
    )


def converged(costs: Sequence[float]) -> bool:
    """Return whether PATIENCE generations improved the cost by less than IMPROVEMENT."""
    return len(costs) > PATIENCE and costs[-1] > (1 - IMPROVEMENT) * costs[-1 - PATIENCE]


def decode(genome: Floats, batch: Batch) -> KnnParameters:
    """Return the parameters in a genome: x1 to x4, log N, log K, alpha, beta.

    An attribute that no trial job has is left out of the template, even if its bit is set.
    """
    bits, (history, neighbours, alpha, beta) = genome[:-4] >= 0.5, genome[-4:]
    usable = batch.usable_attributes
    chosen = zip(TEMPLATE_ATTRIBUTES, bits, strict=True)
    return replace(
        batch.unsearched,
        template=tuple(name for name, bit in chosen if bit and name in usable),
        history=round(_between(SHORTEST_HISTORY, batch.longest_history, history)),
        neighbours=round(_between(1, MOST_NEIGHBOURS, neighbours)),
        alpha=float(ALPHAS[0] + alpha * (ALPHAS[1] - ALPHAS[0])),
        beta=float(BETAS[0] + beta * (BETAS[1] - BETAS[0])),
    )


def _between(least: float, most: float, share: float) -> float:
    return float(least * (most / least) ** share)
