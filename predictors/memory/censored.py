"""The walltime that holds a share of a user's jobs, from runs some of which were cut.

A run that ended at its limit would have needed at least that: it is right-censored. The estimate of
Kaplan and Meier takes such runs out of those at risk at their limits. Runs are weighted by their
likeness to the job (Beran's estimator).

Reference:
    E. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations", JASA 53, 1958.
    R. Beran, "Nonparametric regression with randomly censored survival data", Berkeley 1981.
"""

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import (
    APPLICATION,
    PREVIOUS,
    REQUEST,
    RUNTIME,
    Columns,
    width,
)
from predictors.memory.limit_features import Job, rows_at

FEWEST_UNCUT = 5
"""Fewest uncut runs of the job's application or width that an estimate is made from."""

FEWEST_LONGER = 2
"""Fewest of them that were longer than the request: nothing else says how much is missing."""

SAME_WIDTH, OTHER = 0.05, 0.01
"""Weights of runs of other applications: on as many processors as the job, and on others."""

MARGIN = 1.1
"""Factor of the estimate: the longest of a user's few runs is not the longest that may come."""

AGEING = 0.97
"""Factor of the weight from one of the user's runs to the one before it."""

NOT_KNOWN = -1.0

LastRows = tuple[int, int, int, int]
"""First row, end of the rows, last row of the user, and most runs of the user that count."""


@compiled
def walltime_within(
    columns: Columns, rows: LastRows, job: Job, share: float, elapsed: float
) -> float:
    """Return a round walltime that holds a share of jobs; NOT_KNOWN from too few uncut runs.

    Args:
        columns: the runs; one that was cut has its request as runtime.
        rows: the user's rows.
        job: ids of user and application, requested walltime, processors and submit time.
        share: of the jobs.
        elapsed: seconds that the job has run; only runs count that were as long.
    """
    numbers, attributes, _ = columns
    most = rows[3]
    first, stop, row = rows_at(columns, rows[:3], job)
    _, application, request, processors, _ = job
    values, weights, is_cut = np.empty(most), np.empty(most), np.zeros(most)
    found = uncut = longer = 0
    age = 1.0
    while row >= first and found < most:
        if row < stop:
            cores = width(numbers, row)
            weight = age * np.sqrt(min(cores, processors) / max(cores, processors))
            is_same = attributes[APPLICATION, row] == application
            values[found] = numbers[RUNTIME, row]
            is_like = is_same or cores == processors
            weights[found] = weight * (1.0 if is_same else SAME_WIDTH if is_like else OTHER)
            is_cut[found] = numbers[RUNTIME, row] >= numbers[REQUEST, row]
            uncut += is_like and not is_cut[found]
            longer += is_like and not is_cut[found] and values[found] > request
            found += 1
            age *= AGEING
        row = attributes[PREVIOUS, row]
    if uncut < FEWEST_UNCUT or longer < FEWEST_LONGER:
        return NOT_KNOWN
    order = np.argsort(values[:found] + 1e-9 * is_cut[:found])
    at_risk, left = weights[:found].sum(), 1.0
    for place in order:
        if not is_cut[place] and values[place] > elapsed:
            left *= 1.0 - weights[place] / at_risk
            if left <= 1.0 - share + 1e-12:
                return rounded_up(MARGIN * values[place])
        at_risk = max(at_risk - weights[place], 1e-12)
    return NOT_KNOWN


@compiled
def share_running(columns: Columns, rows: LastRows, job: Job, elapsed: float) -> float:
    """Return the share of the user's uncut runs that were longer than ``elapsed`` seconds.

    It is shrunk, by the weight of one run, to half of the share of the limit that is left.
    """
    numbers, attributes, _ = columns
    first, stop, row = rows_at(columns, rows[:3], job)
    _, application, request, _, _ = job
    total, age, found = 1.0, 1.0, 0
    longer = 0.5 * max(0.0, 1.0 - elapsed / request)
    while row >= first and found < rows[3]:
        if row < stop and numbers[RUNTIME, row] < numbers[REQUEST, row]:
            weight = age if attributes[APPLICATION, row] == application else age * OTHER
            total += weight
            longer += weight if numbers[RUNTIME, row] > elapsed else 0.0
            found += 1
            age *= AGEING
        row = attributes[PREVIOUS, row]
    share: float = longer / total
    return share


@compiled
def rounded_up(seconds: float) -> float:
    """Return the next whole minute, from an hour on the next quarter of an hour, in seconds."""
    step = 60.0 if seconds <= 3600.0 else 900.0
    rounded: float = np.ceil(seconds / step) * step
    return rounded
