"""Machine code that finds the nearest of the most recent jobs in flat columns.

Rows are in order of (end time, observation), so a scan from the newest to the oldest meets
equally near jobs in the order in which ties are decided: newest end first, then latest observed.
"""

# ruff: noqa: FURB136, PLR1730 - min and max answer NaN for NaN; comparisons leave it out

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled

Floats = NDArray[np.float64]
Ids = NDArray[np.int32]
Columns = tuple[Floats, Ids, Floats]
"""The jobs: numbers and ids by row, bounds of the features by block of rows."""

Features = tuple[float, float, float]
Job = tuple[tuple[int, int, int, int], Features, Features]
"""What neighbours are sought for: ids that must match, features, and one over their ranges."""

Kept = tuple[Floats, Floats]
"""Distances and runtimes of the nearest so far, in order."""

PROCESSORS, REQUEST, MEMORY, RUNTIME, END, TOTAL = range(6)
"""Rows of the matrix of numbers; NaN is unknown. The last has the whole seconds of all runtimes up
to the row, from anywhere on: of use are differences, which are exact."""

FEATURES = 3
"""The first of these rows are what jobs are compared by."""

ATTRIBUTES = 4
"""Rows of the matrix of ids: interned attributes, -1 is unknown. The first is the user's."""

PREVIOUS = 4
"""The row after them: where the user's previous job is, before all rows if there is none."""

BLOCK = 64
"""Rows that share one entry of smallest and largest features."""

ANY = -1
"""A template leaves this attribute out."""


@compiled
def rows_until(ends: Floats, first: int, stop: int, time: float) -> int:
    """End of those rows of ``first:stop`` whose jobs had ended at ``time``."""
    if stop > first and ends[stop - 1] <= time:
        return stop
    while first < stop:
        middle = (first + stop) // 2
        if ends[middle] <= time:
            first = middle + 1
        else:
            stop = middle
    return first


@compiled
def summarise(numbers: Floats, bounds: Floats, first: int, stop: int) -> None:
    """Renew the smallest and largest features of the blocks that hold the rows ``first:stop``."""
    for block in range(first // BLOCK, (stop + BLOCK - 1) // BLOCK):
        bounds[:FEATURES, block] = np.inf
        bounds[FEATURES:, block] = -np.inf
        for row in range(block * BLOCK, min(block * BLOCK + BLOCK, stop)):
            widen(numbers, bounds, row)


@compiled
def widen(numbers: Floats, bounds: Floats, row: int) -> None:
    """Make room for the features of ``row`` in the bounds of its block; NaN needs none."""
    block = row // BLOCK
    for feature in range(FEATURES):
        value = numbers[feature, row]
        if value < bounds[feature, block]:
            bounds[feature, block] = value
        if value > bounds[FEATURES + feature, block]:
            bounds[FEATURES + feature, block] = value


@compiled
def unlink(attributes: Ids, newest: Ids, first: int, stop: int) -> None:
    """Take the last rows, ``first:stop``, out of the chains of their users."""
    for row in range(stop - 1, first - 1, -1):
        if attributes[0, row] >= 0:
            newest[attributes[0, row]] = attributes[PREVIOUS, row]


@compiled
def link(attributes: Ids, newest: Ids, first: int, stop: int) -> None:
    """Put the rows ``first:stop`` at the ends of the chains of their users."""
    for row in range(first, stop):
        if attributes[0, row] >= 0:
            attributes[PREVIOUS, row] = newest[attributes[0, row]]
            newest[attributes[0, row]] = row


@compiled
def insert(
    columns: Columns,
    window: tuple[int, int],
    row: tuple[float, float, float, float, float],
    ids: tuple[int, int, int, int],
    newest: Ids,
) -> None:
    """Put one job where its end time belongs among the rows of the window, after its equals.

    ``newest`` tells, and is told, each user's last row.
    """
    first, stop = window
    numbers, attributes, bounds = columns
    place = rows_until(numbers[END], first, stop, row[END])
    unlink(attributes, newest, place, stop)
    for column in range(len(row)):
        for index in range(stop, place, -1):
            numbers[column, index] = numbers[column, index - 1]
        numbers[column, place] = row[column]
    for column in range(len(ids)):
        for index in range(stop, place, -1):
            attributes[column, index] = attributes[column, index - 1]
        attributes[column, place] = ids[column]
    link(attributes, newest, place, stop + 1)
    for index in range(place, stop + 1):
        before = numbers[TOTAL, index - 1] if index > first else 0.0
        numbers[TOTAL, index] = before + np.floor(numbers[RUNTIME, index])
    if place < stop or place % BLOCK == 0:
        summarise(numbers, bounds, place, stop + 1)
    else:
        widen(numbers, bounds, place)


@compiled
def inverse_ranges(
    numbers: Floats, bounds: Floats, first: int, stop: int
) -> tuple[float, float, float]:
    """One over the spread of each feature among the rows ``first:stop``, 0 where it has none."""
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
def admit(keys: Floats, values: Floats, found: int, candidate: tuple[float, float]) -> int:
    """Keep a candidate (key, value) among ``found`` in ascending order of their keys.

    A candidate goes behind its equals: they were met first, so they win the tie. Where the arrays
    are full it replaces the last, if its key is smaller.

    Returns:
        How many there are.
    """
    key, value = candidate
    if found == len(keys):
        if key >= keys[found - 1]:
            return found
        found -= 1
    place = found
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        values[place] = values[place - 1]
        place -= 1
    keys[place] = key
    values[place] = value
    return found + 1


@compiled
def admit_all(columns: Columns, rows: tuple[int, int], job: Job, kept: Kept) -> int:
    """Keep the nearest of the rows that match; answer how many they are."""
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
    """The same for a job whose user's rows are linked, the last of them being ``newest``."""
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
    """How many neighbours a job has, and mean and deviation of their runtimes.

    Args:
        columns: the jobs.
        window: first row, end of the rows, and the time by which a job must have ended.
        sizes: N, K, and how many jobs the features are scaled over.
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
