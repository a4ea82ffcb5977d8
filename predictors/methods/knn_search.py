"""Machine code that finds the nearest of the most recent runs."""

# ruff: noqa: FURB136, PLR1730 - min and max answer NaN for NaN; comparisons leave it out

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import (
    ANY,
    BLOCK,
    END,
    FEATURES,
    PREVIOUS,
    RUNTIME,
    Columns,
    Features,
    Floats,
    Ids,
    admit,
    rows_until,
)

Job = tuple[tuple[int, int, int, int], Features, Features]
"""A job whose neighbours are searched: ids that must match, features, and one over their ranges."""

Kept = tuple[Floats, Floats]
"""Distances and runtimes of the nearest so far, in order."""


@compiled
def inverse_ranges(
    numbers: Floats, bounds: Floats, first: int, stop: int
) -> tuple[float, float, float]:
    """One over the range of each feature among the rows ``first:stop``; 0 if the range is 0."""
    inverse = np.zeros(FEATURES)
    for feature in range(FEATURES):
        low, high = np.inf, -np.inf
        row = first
        while row < stop:
            if row % BLOCK == 0 and row + BLOCK <= stop:
                low = min(low, bounds[feature, row // BLOCK])
                high = max(high, bounds[FEATURES + feature, row // BLOCK])
                row += BLOCK
                continue
            value = numbers[feature, row]
            if value < low:
                low = value
            if value > high:
                high = value
            row += 1
        if high > low:
            inverse[feature] = 1.0 / (high - low)
    return inverse[0], inverse[1], inverse[2]


@compiled
def matches(attributes: Ids, row: int, ids: tuple[int, int, int, int]) -> bool:
    """Whether a row has every attribute that the template asks for."""
    return (
        (ids[0] == ANY or attributes[0, row] == ids[0])
        and (ids[1] == ANY or attributes[1, row] == ids[1])
        and (ids[2] == ANY or attributes[2, row] == ids[2])
        and (ids[3] == ANY or attributes[3, row] == ids[3])
    )


@compiled
def distance(
    numbers: Floats,
    row: int,
    features: Features,
    inverse: Features,
) -> float:
    """Squared distance of a job to a row: each feature adds at most 1, and 1 where unknown."""
    total = 0.0
    for feature in range(FEATURES):
        difference = (numbers[feature, row] - features[feature]) * inverse[feature]
        square = difference * difference
        total += square if square <= 1.0 else 1.0
    return total


@compiled
def admit_all(columns: Columns, rows: tuple[int, int], job: Job, kept: Kept) -> int:
    """Keep the nearest of the rows that match, and return their number."""
    first, stop = rows
    ids, features, inverse = job
    distances, runtimes = kept
    numbers, attributes, _ = columns
    found = 0
    for row in range(stop - 1, first - 1, -1):
        if matches(attributes, row, ids):
            candidate = (distance(numbers, row, features, inverse), numbers[RUNTIME, row])
            found = admit(distances, runtimes, found, candidate)
    return found


@compiled
def admit_linked(columns: Columns, rows: tuple[int, int], job: Job, kept: Kept, newest: int) -> int:
    """Do as ``admit_all``, but visit only the linked rows of one user, whose last is ``newest``."""
    first, stop = rows
    ids, features, inverse = job
    distances, runtimes = kept
    numbers, attributes, _ = columns
    found = 0
    row = newest
    while row >= first:
        if row < stop and matches(attributes, row, ids):
            candidate = (distance(numbers, row, features, inverse), numbers[RUNTIME, row])
            found = admit(distances, runtimes, found, candidate)
        row = attributes[PREVIOUS, row]
    return found


@compiled
def mean_and_deviation(runtimes: Floats, count: int) -> tuple[float, float]:
    """Mean and population standard deviation of the first ``count`` runtimes."""
    total = 0.0
    for index in range(count):
        total += runtimes[index]
    mean = total / count
    squares = 0.0
    for index in range(count):
        squares += (runtimes[index] - mean) ** 2
    return mean, np.sqrt(squares / count)


@compiled
def nearest(
    columns: Columns,
    window: tuple[int, int, float, int],
    sizes: tuple[int, int, int],
    ids: tuple[int, int, int, int],
    features: Features,
) -> tuple[int, float, float]:
    """The number of neighbours of a job, and the mean and deviation of their runtimes.

    Args:
        columns: the jobs.
        window: first row, end of the rows, and the time by which a job must have ended.
        sizes: N, K, and the number of jobs over which the features are scaled.
        ids: attributes that must match; ANY where the template leaves one out.
        features: processors, request and memory of the job, NaN where unknown.
    """
    first, stop, time, newest = window
    history, neighbours, scaling = sizes
    numbers, _, bounds = columns
    stop = rows_until(numbers[END], first, stop, time)
    inverse = inverse_ranges(numbers, bounds, max(first, stop - scaling), stop)
    distances = np.empty(neighbours)
    runtimes = np.empty(neighbours)
    rows = (max(first, stop - history), stop)
    job = (ids, features, inverse)
    if ids[0] == ANY:
        found = admit_all(columns, rows, job, (distances, runtimes))
    else:
        found = admit_linked(columns, rows, job, (distances, runtimes), newest)
    if found == 0:
        return 0, 0.0, 0.0
    mean, deviation = mean_and_deviation(runtimes, found)
    return found, mean, deviation
