"""Past runs in flat columns, and the machine code that keeps the columns in order.

Rows are in order of (end time, observation), so a scan from the newest to the oldest meets
runs in the order in which ties are decided: newest end first, then latest observed.
"""

# ruff: noqa: PLR1730 - min and max answer NaN for NaN; comparisons leave it out

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled

Floats = NDArray[np.float64]
Ids = NDArray[np.int32]
Columns = tuple[Floats, Ids, Floats]
"""The jobs: numbers and ids by row, bounds of the features by block of rows."""

Features = tuple[float, float, float]
"""Processors, request and memory of a job, NaN where unknown."""

PROCESSORS, REQUEST, MEMORY, RUNTIME, END, SUBMIT, TOTAL = range(7)
"""Rows of the matrix of numbers; NaN is unknown. The last has the whole seconds of all runtimes up
to the row, from anywhere on: of use are differences, which are exact."""

FEATURES = 3
"""The first of these rows are what jobs are compared by."""

USER, GROUP, QUEUE, APPLICATION, PREVIOUS = range(5)
"""Rows of the matrix of ids: interned attributes, -1 is unknown; and where the previous run of the
same user is, before all rows if there is none."""

ATTRIBUTES = 4
"""The first of these rows are interned attributes."""

ANY = -1
"""A template leaves this attribute out."""

BLOCK = 64
"""Rows that share one entry of smallest and largest features."""


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
        if attributes[USER, row] >= 0:
            newest[attributes[USER, row]] = attributes[PREVIOUS, row]


@compiled
def link(attributes: Ids, newest: Ids, first: int, stop: int) -> None:
    """Put the rows ``first:stop`` at the ends of the chains of their users."""
    for row in range(first, stop):
        if attributes[USER, row] >= 0:
            attributes[PREVIOUS, row] = newest[attributes[USER, row]]
            newest[attributes[USER, row]] = row


@compiled
def insert(
    columns: Columns,
    window: tuple[int, int],
    row: tuple[float, float, float, float, float, float],
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
