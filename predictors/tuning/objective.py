"""The cost that tuning minimises: the mean absolute error, raised by the underestimation rate."""

from typing import TypeVar

import numpy as np
from msgspec import Struct

from predictors.compiled import compiled
from predictors.memory.columns import Floats, within

Amount = TypeVar("Amount", float, Floats)
"""A number, or one for each of many sets of parameters."""


class Errors(Struct, frozen=True, kw_only=True, rename={"underestimation_rate": "underestimated"}):
    """The errors of predictions over a set of jobs.

    Attributes:
        mean_absolute_error: seconds (Xu et al. 2019, section 3).
        underestimation_rate: share of the jobs that ran longer than predicted; called
            ``underestimated`` in stored rounds.
    """

    mean_absolute_error: float
    underestimation_rate: float

    def cost(self, penalty: float, fitness: str = "product") -> float:
        """The number to make small, in seconds, as ``cost_of`` puts the two together."""
        return float(cost_of(self.mean_absolute_error, self.underestimation_rate, penalty, fitness))


FITNESSES = ("product", "sum")
"""How error and underestimation rate become one number."""

HOUR = 3600.0


def cost_of(error: Amount, rate: Amount, penalty: float, fitness: str) -> Amount:
    """Of errors in seconds and underestimation rates: a product or a sum.

    Equations 7 and 8 of the paper, its fitness, did not survive in our copy; it names the two
    ingredients and says that both are to be small. ``product`` is MAE * (1 + penalty * rate): the
    penalty says how much error one is willing to add in order to underestimate fewer jobs; with 0
    the error alone counts; with 4, halving a share of 50% is worth a third more error. ``sum`` is
    MAE + penalty * rate * 3600 s: what it costs does not grow with the error.
    """
    if fitness == "sum":
        return error + penalty * HOUR * rate
    return error * (1.0 + penalty * rate)


@compiled
def error_surface(
    neighbours: tuple[Floats, Floats],
    jobs: tuple[Floats, Floats],
    alphas: Floats,
    betas: Floats,
) -> tuple[Floats, Floats]:
    """Mean absolute error and underestimation rate for every pair of alpha and beta.

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
