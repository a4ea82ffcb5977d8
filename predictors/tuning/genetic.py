"""The genetic search of Xu et al. 2019 (section 2.3), with the operators of DEAP."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from predictors.memory.columns import Floats
from predictors.memory.job_table import TEMPLATE_ATTRIBUTES
from predictors.methods.knn import KnnParameters
from predictors.tuning.batch import MOST_NEIGHBOURS, Batch
from predictors.tuning.plan import TuningPlan

PATIENCE = 20
IMPROVEMENT = 1e-3
"""The search has converged when PATIENCE generations improved the cost by less than this share."""

BITS = len(TEMPLATE_ATTRIBUTES)
GENES = BITS + 4

SHORTEST_HISTORY = 10
ALPHAS = (-1.0, 3.0)
BETAS = (0.0, 1.0)
"""Range of the weight of the request."""

CROSSED = 0.9
"""Probability of a crossover of two parents; a gene mutates with probability 1/GENES."""

CROWDING = 15.0
"""Crowding degree (eta) of simulated binary crossover and of polynomial mutation."""


class SearchResult(Struct, frozen=True, kw_only=True):
    """The best parameters of a search.

    Attributes:
        cost: their cost on the batch, in seconds.
        costs: the best cost after each generation or step.
        evaluations: number of sets of parameters that were tried.
    """

    parameters: KnnParameters
    cost: float
    costs: tuple[float, ...]
    evaluations: int


class Progress(Struct, frozen=True, kw_only=True):
    """Progress of a search: steps done, steps at most, and the best parameters so far."""

    step: int
    steps: int
    cost: float
    parameters: KnnParameters


ProgressReport = Callable[[Progress], None]
"""Called with the progress; an exception that it raises ends the search."""


def no_report(progress: Progress) -> None:
    """Report nothing."""


class Individual(NamedTuple):
    """A genome and its fitness: minus the cost, in seconds."""

    genome: Sequence[float]
    fitness: float


def genetic(batch: Batch, plan: TuningPlan, *, report: ProgressReport = no_report) -> SearchResult:
    """Return the parameters of least cost that a population finds; determined by the seed.

    Args:
        batch: the jobs they are tried on.
        plan: cost, population, largest number of generations, and seed.
    """
    from deap import tools  # noqa: PLC0415 - in rounds only

    costs: list[float] = []
    genomes = np.random.default_rng(plan.seed).random((plan.population, GENES)).tolist()
    population: list[Individual] = []
    with seeded(plan.seed):
        while len(costs) < plan.generations and not converged(costs):
            if population:
                genomes = children(population)
            tried = [Individual(each, -cost(each, batch, plan)) for each in genomes]
            population = tools.selBest([*population, *tried], plan.population)
            best = population[0]
            costs.append(-best.fitness)
            parameters = decode(np.array(best.genome), batch)
            report(
                Progress(
                    step=len(costs), steps=plan.generations, cost=costs[-1], parameters=parameters
                )
            )
    return SearchResult(
        parameters=parameters,
        cost=costs[-1],
        costs=tuple(costs),
        evaluations=len(costs) * plan.population,
    )


def cost(genome: Sequence[float], batch: Batch, plan: TuningPlan) -> float:
    """Return the cost of the parameters in a genome, in seconds."""
    return batch.errors(decode(np.array(genome), batch)).cost(plan.penalty)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the generator that DEAP uses; return it to its former state in the end."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def children(population: Sequence[Individual]) -> list[list[float]]:
    """Return as many genomes: parents win binary tournaments, are crossed, and mutate."""
    from deap import tools  # noqa: PLC0415 - in rounds only

    count = len(population)
    parents = [list(each.genome) for each in tools.selTournament(population, count + count % 2, 2)]
    for one, other in zip(parents[::2], parents[1::2], strict=True):
        if random.random() < CROSSED:  # noqa: S311 - no secret
            cross(one, other)
    for genome in parents:
        mutate(genome)
    return parents[:count]


def cross(one: list[float], other: list[float]) -> None:
    """Cross two genomes in place: bits uniformly, numbers by simulated binary crossover."""
    from deap import tools  # noqa: PLC0415 - in rounds only

    bits, numbers = tools.cxUniform(one[:BITS], other[:BITS], 0.5), (one[BITS:], other[BITS:])
    numbers = tools.cxSimulatedBinaryBounded(*numbers, CROWDING, 0.0, 1.0)
    one[:], other[:] = (
        [*template, *values] for template, values in zip(bits, numbers, strict=True)
    )


def mutate(genome: list[float]) -> None:
    """Mutate a genome in place: bits flip, numbers move by polynomial mutation."""
    from deap import tools  # noqa: PLC0415 - in rounds only

    bits = [float(each >= 0.5) for each in genome[:BITS]]
    (bits,) = tools.mutFlipBit(bits, 1 / GENES)
    (numbers,) = tools.mutPolynomialBounded(genome[BITS:], CROWDING, 0.0, 1.0, 1 / GENES)
    genome[:] = [*bits, *numbers]


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
