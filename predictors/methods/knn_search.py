"""Machine code that finds the nearest of the most recent runs."""

# ruff: noqa: PLR1730 - min and max answer NaN for NaN; comparisons leave it out

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
    Window,
    admit,
    rows_until,
)

Metric = tuple[bool, Features]
"""Whether differences count as they are or squared, and the weight of each feature."""

Job = tuple[tuple[int, int, int, int], Features, Features, Metric]
"""What neighbours are sought for: ids that must match, features, one over their ranges, and how
they are compared."""

Kept = tuple[Floats, Floats]
"""Distances and rows of the nearest so far, in order."""

Sizes = tuple[int, int, int]
"""N, K, and the number of jobs over which the features are scaled."""


About = tuple[Columns, Window, Sizes, tuple[int, int, int, int], tuple[Features, Metric]]
"""The arguments of ``nearest``."""


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
    metric: Metric,
) -> float:
    """How far a job is from a row: each feature adds at most its weight, and that where unknown.

    The sum of the scaled differences (Manhattan) or of their squares, which puts the rows in the
    order of the Euclidean distance without taking its root.
    """
    manhattan, weights = metric
    total = 0.0
    for feature in range(FEATURES):
        apart = abs(numbers[feature, row] - features[feature]) * inverse[feature]
        if not manhattan:
            apart *= apart
        total += weights[feature] * apart if apart <= 1.0 else weights[feature]
    return total


@compiled
def admit_all(columns: Columns, rows: tuple[int, int], job: Job, kept: Kept) -> int:
    """Keep the nearest of the rows that match, and return their number."""
    first, stop = rows
    ids, features, inverse, metric = job
    distances, nearest_rows = kept
    numbers, attributes, _ = columns
    found = 0
    for row in range(stop - 1, first - 1, -1):
        if matches(attributes, row, ids):
            candidate = (distance(numbers, row, features, inverse, metric), float(row))
            found = admit(distances, nearest_rows, found, candidate)
    return found


@compiled
def admit_linked(columns: Columns, rows: tuple[int, int], job: Job, kept: Kept, newest: int) -> int:
    """Do as ``admit_all``, but visit only the linked rows of one user, whose last is ``newest``."""
    first, stop = rows
    ids, features, inverse, metric = job
    distances, nearest_rows = kept
    numbers, attributes, _ = columns
    found = 0
    row = newest
    while row >= first:
        if row < stop and matches(attributes, row, ids):
            candidate = (distance(numbers, row, features, inverse, metric), float(row))
            found = admit(distances, nearest_rows, found, candidate)
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
def summarised(numbers: Floats, rows: Floats) -> tuple[int, float, float]:
    """The number of rows, and mean and deviation of their runtimes, which take their place."""
    if not len(rows):
        return 0, 0.0, 0.0
    for place in range(len(rows)):
        rows[place] = numbers[RUNTIME, int(rows[place])]
    mean, deviation = mean_and_deviation(rows, len(rows))
    return len(rows), mean, deviation


@compiled
def nearest(
    columns: Columns,
    window: Window,
    sizes: Sizes,
    ids: tuple[int, int, int, int],
    compared: tuple[Features, Metric],
) -> tuple[int, float, float]:
    """The number of neighbours of a job, and the mean and deviation of their runtimes.

    Args:
        columns: the jobs.
        window: first row, end of the rows, and the time by which a job must have ended.
        sizes: N, K, and the number of jobs over which the features are scaled.
        ids: attributes that must match; ANY where the template leaves one out.
        compared: processors, request and memory of the job, NaN where unknown, and how they are
            compared.
    """
    stop = rows_until(columns[0][END], window.first, window.stop, window.time)
    rows = neighbours(columns, (window.first, stop, window.newest), sizes, ids, compared)
    return summarised(columns[0], rows)


@compiled
def neighbours(
    columns: Columns,
    rows: tuple[int, int, int],
    sizes: Sizes,
    ids: tuple[int, int, int, int],
    compared: tuple[Features, Metric],
) -> Floats:
    """The rows of the neighbours of a job, the nearest first.

    Args:
        columns: the jobs.
        rows: the first that may be one, the end of those that had ended, and one from which those
            of the user are linked backwards.
        sizes: as ``nearest`` takes them.
        ids: as ``nearest`` takes them.
        compared: as ``nearest`` takes it.
    """
    first, stop, newest = rows
    history, most, scaling = sizes
    features, metric = compared
    inverse = inverse_ranges(columns[0], columns[2], max(first, stop - scaling), stop)
    kept = (np.empty(most), np.empty(most))
    searched = (max(first, stop - history), stop)
    job = (ids, features, inverse, metric)
    if ids[0] == ANY:
        found = admit_all(columns, searched, job, kept)
    else:
        found = admit_linked(columns, searched, job, kept, newest)
    return kept[1][:found]
