"""The candidates of ``auto`` over one distribution: their estimates, their costs, and the choice.

See docs/auto.md; the sums of costs that decide are those of ``memory.choice``.
"""

from typing import NamedTuple

import numpy as np

from predictors.censoring import HEAVY, LIGHT, censored
from predictors.compiled import compiled
from predictors.distribution import Evidence, bayes_estimate, cumulative, quantile_at
from predictors.memory.choice import (
    KNOWN,
    STRANGERS,
    Costs,
    CostSums,
    Gains,
    gains_of_strangers,
    gains_of_user,
)
from predictors.memory.columns import RUNNING, Floats, Running, within

WARY, WARIER = 0.1, 0.3
"""Shares of all weight that candidates of ``auto`` give to the request."""

CAUTIOUS_RATE = 0.075
"""Share of underestimated jobs of users without runs, whatever the price.

The largest of 0.05, 0.075, 0.1 and 0.15 at which ``attention`` and ``least-cost`` underestimate no
more jobs of new users than of known ones, on each of the ten public logs.
"""

NO_RATE = -1.0
"""The least expected cost decides; of a user without runs, CAUTIOUS_RATE."""

PRICED = -2.0
"""The least expected cost decides, also of a user without runs."""

CHOSEN = -1.0
"""Share of the request where the sums of costs choose among the candidates."""

REQUEST, LIGHTLY, HEAVILY = 3, 4, 5
"""Places of candidates of a distribution: the request, and the estimates that count the like jobs
that run; see ``censoring``."""

Wanted = tuple[float, float, float, float, float, float]
"""Price of an underestimate in mean runtimes, coverage, share of underestimated jobs (or NO_RATE or
PRICED), seconds since the job's start or NOT_RUNNING, share of all weight that the request has in
the estimate of least expected cost (or CHOSEN), and weight of a running job in runs."""


class Decision(NamedTuple):
    """Rule by which a prediction is taken from a distribution.

    Attributes:
        rate: NO_RATE or PRICED.
        request_share: share of all weight that the request has, or CHOSEN; 1 is the request
            itself, which never answers for a rate or a running job.
        running: weight of a like job that runs, in runs.
    """

    rate: float = NO_RATE
    request_share: float = 0.0
    running: float = 0.0


USUAL_DECISION = Decision()
"""The decision of a method by itself."""

LEAST_COST_SO_FAR = Decision(request_share=CHOSEN)
"""The decision by the candidate whose like have cost least."""


@compiled
def choose(wanted: Wanted, gains: Gains, familiarity: int, running_jobs: float) -> Wanted:
    """Return what is wanted with the decision of the candidate of least cost.

    Args:
        wanted: with CHOSEN, or with a decision of its own, which stays as it is.
        gains: differences of cost of the other candidates.
        familiarity: group of the user, 0 without earlier runs.
        running_jobs: number of like jobs that run.
    """
    price, coverage, rate, elapsed, share, running = wanted
    if share != CHOSEN:
        return wanted
    place, least = 0, 0.0
    for other in range(HEAVILY if running_jobs > 0.0 else REQUEST):
        if gains[other] < least:
            place, least = other + 1, gains[other]
    share = 0.0
    if place == REQUEST:
        share = 1.0
    elif familiarity == 0:
        rate = PRICED if place == 1 and rate == NO_RATE else rate
    elif place >= LIGHTLY:
        running = LIGHT if place == LIGHTLY else HEAVY
    elif place > 0:
        share = WARY if place == 1 else WARIER
    return price, coverage, rate, elapsed, share, running


@compiled
def gains_in(user: tuple[int, int], sums: CostSums) -> Gains:
    """Return the differences of cost of the candidates of a distribution.

    Args:
        user: familiarity group and id.
        sums: of the runs that had ended when the job was submitted.
    """
    familiarity, number = user
    if familiarity == 0:
        return gains_of_strangers(sums.cluster[STRANGERS])
    known = sums.cluster[KNOWN]
    own = sums.users[number] if number < len(sums.users) else np.zeros_like(known)
    return gains_of_user(own, known)


@compiled
def estimate_with_request(
    values: Floats, weights: Floats, request: float, decision: tuple[float, float]
) -> float:
    """Return the estimate of least expected cost, with a share of all weight on the request.

    Args:
        values: support points in ascending order, in seconds.
        weights: their weights.
        request: seconds.
        decision: seconds that an underestimate costs beside its error, and share of the request.
    """
    penalty, share = decision
    count = len(values)
    if share <= 0.0:
        return bayes_estimate(values, weights, count, request, penalty)
    points, all_weights = np.empty(count + 1), np.empty(count + 1)
    total = 0.0
    for index in range(count):
        points[index], all_weights[index] = values[index], weights[index]
        total += weights[index]
    points[count], all_weights[count] = request, total * share / (1.0 - share)
    return bayes_estimate(points, all_weights, count + 1, request, penalty)


@compiled
def candidate_costs(
    evidence: Evidence, running: Running, job: tuple[float, float], price: float
) -> Costs:
    """Return the costs of the candidates of one distribution for an ended run.

    The level of the cautious quantile is not corrected here. A candidate that is absent costs as
    much as the first.

    Args:
        evidence: the distribution that was predicted for the run.
        running: like jobs that ran at its submission, unless they are in the distribution already.
        job: request and runtime, in seconds.
        price: of an underestimate, in mean runtimes.
    """
    request, runtime = job[0], min(job[0], job[1])
    penalty = price * evidence.mean_runtime
    priced = cost_of(estimate_of(evidence, request, (penalty, 0.0)), runtime, penalty)
    by_request = cost_of(request, runtime, penalty)
    if evidence.own == 0:
        values, reached = evidence.values, cumulative(evidence.weights)
        cautious = within(quantile_at(values, reached, request, 1.0 - CAUTIOUS_RATE), request)
        first = cost_of(cautious, runtime, penalty)
        return first, priced, by_request, by_request, first, first
    wary = estimate_of(evidence, request, (penalty, WARY))
    warier = estimate_of(evidence, request, (penalty, WARIER))
    light = heavy = priced
    if running[RUNNING] > 0.0:
        lightly = censored(evidence, running, request, LIGHT)
        heavily = censored(evidence, running, request, HEAVY)
        light = cost_of(estimate_of(lightly, request, (penalty, 0.0)), runtime, penalty)
        heavy = cost_of(estimate_of(heavily, request, (penalty, 0.0)), runtime, penalty)
    return (
        priced,
        cost_of(wary, runtime, penalty),
        cost_of(warier, runtime, penalty),
        by_request,
        light,
        heavy,
    )


@compiled
def estimate_of(evidence: Evidence, request: float, decision: tuple[float, float]) -> float:
    """Return the estimate of ``estimate_with_request``, as it is answered."""
    return within(
        estimate_with_request(evidence.values, evidence.weights, request, decision), request
    )


@compiled
def cost_of(estimate: float, runtime: float, penalty: float) -> float:
    """Return the error of an estimate, plus the penalty if it is too short, in seconds."""
    return abs(estimate - runtime) + (penalty if estimate < runtime else 0.0)
