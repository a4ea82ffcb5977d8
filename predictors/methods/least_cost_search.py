"""Machine code that weighs past runs and finds the estimate of least expected cost."""

import numpy as np

from predictors.compiled import compiled
from predictors.jobs import usage_of
from predictors.memory.columns import (
    APPLICATION,
    END,
    PREVIOUS,
    PROCESSORS,
    QUEUE,
    REQUEST,
    RUNTIME,
    TOTAL,
    Columns,
    Floats,
    admit,
    rows_until,
)

SCALING = 1000
"""Number of the cluster's last runs whose mean runtime is the unit of the price."""

OTHERS = 16
"""Number of the cluster's last runs that stand for all users; with fewer, none are used."""

MARGIN_SECONDS = 30.0
"""Seconds added to a past runtime, because the next run seldom takes exactly as long."""

_AGEING = 0.96
_OTHER_QUEUE = 0.75
_OTHER_APPLICATION = 0.25
_WEIGHT_OF_OTHERS = 0.1

usage = compiled(usage_of)


@compiled
def least_cost(
    columns: Columns,
    window: tuple[int, int, float, int],
    alike: tuple[int, int],
    job: tuple[float, float],
    settings: tuple[float, int, int],
) -> tuple[int, int, float]:
    """The number of runs of the user, the number of runs of all users, and the estimate in seconds.

    Args:
        columns: the runs.
        window: first row, end of the rows, the time by which a run must have ended, and the last
            row of the user.
        alike: ids of the job's queue and application.
        job: request and processors.
        settings: price, most runs of the user, and number of the cluster's last runs to search.
    """
    first, stop, time, row = window
    price, most, history = settings
    request = job[0]
    numbers, attributes, _ = columns
    stop = rows_until(numbers[END], first, stop, time)
    first = max(first, stop - history)
    values = np.empty(most + OTHERS)
    weights = np.empty(most + OTHERS)
    own = 0
    age = 1.0
    while row >= first and own < most:
        if row < stop:
            weight = age * likeness(numbers, row, job)
            if attributes[QUEUE, row] != alike[0]:
                weight *= _OTHER_QUEUE
            if attributes[APPLICATION, row] != alike[1]:
                weight *= _OTHER_APPLICATION
            own = admit(values, weights, own, (min(numbers[RUNTIME, row], request), weight))
            age *= _AGEING
        row = attributes[PREVIOUS, row]
    others = OTHERS if stop - first >= OTHERS else 0
    known = own
    for other in range(stop - others, stop):
        used = usage(numbers[RUNTIME, other], numbers[REQUEST, other]) * request
        known = admit(values, weights, known, (used, _WEIGHT_OF_OTHERS / OTHERS))
    scale = mean_seconds(numbers, max(first, stop - SCALING), stop)
    return own, others, cheapest(values, weights, known, request, price * scale)


@compiled
def likeness(numbers: Floats, row: int, job: tuple[float, float]) -> float:
    """The fourth power of the ratio of requests, times the ratio of processors; both at most 1."""
    request, processors = numbers[REQUEST, row], numbers[PROCESSORS, row]
    if np.isnan(processors):
        processors = 1.0
    ratio = request / job[0] if request < job[0] else job[0] / request
    of_processors = processors / job[1] if processors < job[1] else job[1] / processors
    alike: float = ratio * ratio * ratio * ratio * of_processors
    return alike


@compiled
def mean_seconds(numbers: Floats, first: int, stop: int) -> float:
    """The mean runtime of the rows ``first:stop``, each in whole seconds; 0 without rows."""
    if stop <= first:
        return 0.0
    first_seconds = np.floor(numbers[RUNTIME, first])
    seconds: float = numbers[TOTAL, stop - 1] - numbers[TOTAL, first] + first_seconds
    return seconds / (stop - first)


@compiled
def cheapest(values: Floats, weights: Floats, count: int, request: float, price: float) -> float:
    """The candidate of least expected cost: one of ``values`` plus the margin, or ``request``."""
    weight, weighted = 0.0, 0.0
    for index in range(count):
        weight += weights[index]
        weighted += weights[index] * values[index]
    best, answer = np.inf, request
    below, weighted_below = 0.0, 0.0
    reached = 0
    for index in range(count):
        estimate = min(request, values[index] + MARGIN_SECONDS)
        while reached < count and values[reached] <= estimate:
            below += weights[reached]
            weighted_below += weights[reached] * values[reached]
            reached += 1
        above, weighted_above = weight - below, weighted - weighted_below
        cost = below * estimate - weighted_below + weighted_above - above * estimate + price * above
        if cost < best:
            best, answer = cost, estimate
    if weight * request - weighted < best:
        return request
    return answer
