"""Weighs like jobs that still run as right-censored runs: see docs/auto.md.

A job that has run for e seconds tells that its runtime is longer. The Kaplan-Meier estimate over
the support points and such jobs moves weight from runtimes that they have passed to longer ones.

Reference:
    E. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations", JASA 53, 1958;
    B. Efron, "The two sample problem with censored data", 5th Berkeley symposium, 1967.
"""

from math import log, sqrt

import numpy as np

from predictors.compiled import compiled
from predictors.distribution import NO_ROW, Evidence
from predictors.memory.columns import ELAPSED, ENDED, RUNNING, Running

LIGHT, HEAVY = 1.0, 3.0
"""Weight of a running job, in runs of average weight."""

REFUTED = 3.0
"""Excess hazard of the running jobs, over the root of their number, that refutes a distribution.

One job refutes a distribution of which 5% takes longer; of many like jobs each tells less."""

_LEAST_SURVIVAL = 1e-3


@compiled
def revised(evidence: Evidence, running: Running, request: float) -> tuple[Evidence, bool]:
    """Return the distribution, revised if the running jobs refute it, and whether they do."""
    if running[RUNNING] == 0.0 or len(evidence.values) == 0 or not is_refuted(evidence, running):
        return evidence, False
    return censored(evidence, running, request, HEAVY), True


@compiled
def is_refuted(evidence: Evidence, running: Running) -> bool:
    """Return whether like jobs run longer than the distribution lets expect.

    The cumulative hazard of the jobs since their starts is the number of them that were expected
    to end; it is compared with the number of like jobs that did end meanwhile.
    """
    total = evidence.weights.sum()
    jobs, hazard = running[RUNNING], 0.0
    seen = int(min(jobs, float(len(running) - ELAPSED)))
    for place in range(seen):
        first = int(np.searchsorted(evidence.values, running[ELAPSED + place], side="right"))
        survival = evidence.weights[first:].sum() / total
        hazard -= log(max(_LEAST_SURVIVAL, survival)) * jobs / seen
    return bool(hazard - running[ENDED] > REFUTED * sqrt(jobs))


@compiled
def censored(evidence: Evidence, running: Running, request: float, runs: float) -> Evidence:
    """Return the distribution with the running jobs as right-censored runs.

    What no support point is long enough for goes to the request.

    Args:
        evidence: of the job.
        running: the jobs.
        request: of the job, in seconds.
        runs: weight of a running job, in runs of average weight.
    """
    count = len(evidence.values)
    total = evidence.weights.sum()
    jobs = running[RUNNING]
    seen = int(min(jobs, float(len(running) - ELAPSED)))
    each = runs * (evidence.weights**2).sum() / total * jobs / seen
    values, weights = np.empty(count + 1), np.empty(count + 1)
    rows = np.empty(count + 1, np.int64)
    at_risk, survival, passed = total + each * seen, total, 0
    for place in range(count):
        value = values[place] = evidence.values[place]
        rows[place] = evidence.rows[place]
        while passed < seen and running[ELAPSED + passed] < value:
            at_risk -= each
            passed += 1
        share = min(1.0, evidence.weights[place] / max(at_risk, 1e-300))
        weights[place] = survival * share
        survival -= weights[place]
        at_risk -= evidence.weights[place]
    values[count], weights[count], rows[count] = request, max(0.0, survival), NO_ROW
    return Evidence(values, weights, rows, evidence.own, evidence.others, evidence.mean_runtime)
