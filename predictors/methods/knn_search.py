"""Machine code that finds the nearest of the most recent runs."""

# ruff: noqa: PLR1730, FURB136 - min and max answer NaN for NaN; comparisons leave it out

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
    RowWindow,
    admit,
    rows_until,
)

KnnQuery = tuple[tuple[int, int, int, int], Features, Features]
"""A job: ids that must match, features, and one over their ranges."""

Nearest = tuple[Floats, Floats]
"""Distances and rows of the nearest runs so far, in order."""

Sizes = tuple[int, int, int]
"""N, K, and the number of jobs over which the features are scaled."""


@compiled
def inverse_ranges(
    numbers: Floats, bounds: Floats, first: int, stop: int
) -> tuple[float, float, float]:
    """Return one over the range of each feature among rows; 0 for a range of 0."""
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
    """Return whether a row has every attribute that must match."""
    return (
        (ids[0] == ANY or attributes[0, row] == ids[0])
        and (ids[1] == ANY or attributes[1, row] == ids[1])
        and (ids[2] == ANY or attributes[2, row] == ids[2])
        and (ids[3] == ANY or attributes[3, row] == ids[3])
    )


@compiled
def distance(numbers: Floats, row: int, features: Features, inverse: Features) -> float:
    """Return the squared Euclidean distance of a job from a row, in scaled features.

    A feature adds at most 1, and 1 if it is unknown.
    """
    total = 0.0
    for feature in range(FEATURES):
        apart = abs(numbers[feature, row] - features[feature]) * inverse[feature]
        apart *= apart
        total += apart if apart <= 1.0 else 1.0
    return total


@compiled
def admit_all(columns: Columns, rows: tuple[int, int], job: KnnQuery, best: Nearest) -> int:
    """Find the nearest of the rows that match, and return their number."""
    first, stop = rows
    ids, features, inverse = job
    distances, nearest_rows = best
    numbers, attributes, _ = columns
    found = 0
    for row in range(stop - 1, first - 1, -1):
        if matches(attributes, row, ids):
            candidate = (distance(numbers, row, features, inverse), float(row))
            found = admit(distances, nearest_rows, found, candidate)
    return found


@compiled
def admit_linked(
    columns: Columns, rows: tuple[int, int], job: KnnQuery, best: Nearest, newest: int
) -> int:
    """Like ``admit_all``, among the linked rows of one user, whose last is ``newest``."""
    first, stop = rows
    ids, features, inverse = job
    distances, nearest_rows = best
    numbers, attributes, _ = columns
    found = 0
    row = newest
    while row >= first:
        if row < stop and matches(attributes, row, ids):
            candidate = (distance(numbers, row, features, inverse), float(row))
            found = admit(distances, nearest_rows, found, candidate)
        row = attributes[PREVIOUS, row]
    return found


@compiled
def mean_and_deviation(runtimes: Floats, count: int) -> tuple[float, float]:
    """Return mean and population standard deviation of the first ``count`` runtimes."""
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
    window: RowWindow,
    sizes: Sizes,
    ids: tuple[int, int, int, int],
    features: Features,
) -> tuple[int, float, float]:
    """Return the number of neighbours of a job, and mean and deviation of their runtimes.

    Args:
        sizes: N, K, and the number of runs over which the features are scaled.
        ids: attributes that must match; ANY where the template leaves one out.
        features: of the job, NaN where unknown.
    """
    history, most, scaling = sizes
    numbers, first = columns[0], window.first
    stop = rows_until(numbers[END], first, window.stop, window.time)
    inverse = inverse_ranges(numbers, columns[2], max(first, stop - scaling), stop)
    distances, rows = np.empty(most), np.empty(most)
    searched = (max(first, stop - history), stop)
    job = (ids, features, inverse)
    if ids[0] == ANY:
        count = admit_all(columns, searched, job, (distances, rows))
    else:
        count = admit_linked(columns, searched, job, (distances, rows), window.newest)
    if not count:
        return 0, 0.0, 0.0
    runtimes = np.empty(count)
    for place in range(count):
        runtimes[place] = numbers[RUNTIME, int(rows[place])]
    mean, deviation = mean_and_deviation(runtimes, count)
    return count, mean, deviation
