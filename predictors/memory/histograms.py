"""Histograms of PIT values, scores and places over sliding windows of the last runs.

A PIT value, a nonconformity score and a place are numbers from 0 to 1 (see ``calibration`` and
``recalibration``). Each is counted in three windows: the last 2,000 and the last 8,000 runs for PIT
values and scores, and the last runs that a method recalibrates with for places. Of the first two
windows the shorter follows the cluster, and the longer rides out bursts of like jobs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled, compiled_for_threads
from predictors.memory.columns import (
    FAMILIARITY,
    NONCONFORMITY,
    NONCONFORMITY_PLACE,
    PIT,
    PIT_PLACE,
    Floats,
)

WINDOWS = (2_000, 8_000)
"""Number of last runs in each of the two windows of PIT values and scores."""

LONGEST_WINDOW = WINDOWS[-1]

ENOUGH = 200
"""Fewest runs that levels are corrected with."""

ALL = 3
"""The group of all runs, behind the three familiarity groups."""

KINDS = (PIT, NONCONFORMITY)
PLACES = (PIT_PLACE, NONCONFORMITY_PLACE)

GROUPED = (ALL + 1) * len(KINDS)
"""Number of histograms of a window: one by group and kind; those of places have no groups."""

OF_PLACES = len(WINDOWS) * GROUPED
"""Histogram of the places of PIT values; behind it that of the places of scores."""

BINS, STEP = 4_096, 16
LAYERS = ((BINS + BINS // STEP, 256), (BINS, 16), (0, 1))
"""By layer, coarsest first: offset of its cells, and number of bins per cell."""

CELLS = BINS + BINS // STEP + STEP
ROUNDING = 1e-12

Histograms = NDArray[np.int16]
"""Counts by histogram and cell. Runs are counted in bins, and again in both coarser layers."""

RowSpan = tuple[int, int]
"""First row and end of rows."""

Ranges = tuple[RowSpan, RowSpan, RowSpan]
"""Rows that are counted, by window."""


class Mixture(NamedTuple):
    """A distribution on [0, 1]: a weighted sum of histograms and the uniform distribution.

    Attributes:
        histograms: indices.
        weights: weight of one run in each of them.
        uniform: weight of the uniform distribution.
    """

    histograms: tuple[int, int, int, int]
    weights: tuple[float, float, float, float]
    uniform: float


def no_histograms() -> Histograms:
    """Return empty histograms."""
    return np.zeros((OF_PLACES + len(PLACES), CELLS), np.int16)


@compiled
def bin_of(value: float) -> int:
    """Return the bin of a number from 0 to 1."""
    return min(int(value * BINS), BINS - 1)


@compiled
def add(histograms: Histograms, index: int, value: float, change: int) -> None:
    """Add ``change`` runs with a value to one of the histograms."""
    cell = bin_of(value)
    for offset, width in LAYERS:
        histograms[index, offset + cell // width] += change


@compiled
def runs_in(histograms: Histograms, index: int) -> int:
    """Return the number of runs in a histogram."""
    found = 0
    for cell in range(LAYERS[0][0], CELLS):
        found += histograms[index, cell]
    return found


@compiled
def quantile(histograms: Histograms, mixture: Mixture, share: float) -> float:
    """Return the upper end of the first bin up to which ``share`` of a mixture lies."""
    reached, cell = 0.0, 0
    for offset, width in LAYERS:
        cell *= STEP
        for _ in range(STEP - 1):
            here = _mass(histograms, mixture, offset + cell, width)
            if reached + here >= share - ROUNDING:
                break
            reached += here
            cell += 1
    return (cell + 1) / BINS


@compiled
def cdf(histograms: Histograms, mixture: Mixture, value: float) -> float:
    """Return the share of a mixture in the bins up to ``value``."""
    end = min(BINS, int(value * BINS))
    reached, done = 0.0, 0
    for offset, width in LAYERS:
        while done + width <= end:
            reached += _mass(histograms, mixture, offset + done // width, width)
            done += width
    return reached


@compiled
def _mass(histograms: Histograms, mixture: Mixture, cell: int, width: int) -> float:
    """Return the mass of a mixture in a cell of ``width`` bins."""
    first, second, third, fourth = mixture.histograms
    weights = mixture.weights
    mass: float = (
        weights[0] * histograms[first, cell]
        + weights[1] * histograms[second, cell]
        + weights[2] * histograms[third, cell]
        + weights[3] * histograms[fourth, cell]
        + mixture.uniform * width / BINS
    )
    return mass


@compiled_for_threads
def recount(
    histograms: Histograms, numbers: Floats, before: Ranges, now: tuple[int, int, int, int]
) -> Ranges:
    """Slide all windows to the last rows.

    Args:
        before: the rows that are counted, plus the number of rows moved.
        now: first row of all, first row whose place counts, end of the rows, number of rows moved.

    Returns:
        The rows that are counted now, plus the number of rows moved.
    """
    first, placed, stop, moved = now
    shorter, longer = max(first, stop - WINDOWS[0]), max(first, stop - WINDOWS[1])
    _slide(histograms, numbers, 0, (before[0][0] - moved, before[0][1] - moved), (shorter, stop))
    _slide(histograms, numbers, 1, (before[1][0] - moved, before[1][1] - moved), (longer, stop))
    _slide(histograms, numbers, 2, (before[2][0] - moved, before[2][1] - moved), (placed, stop))
    end = stop + moved
    return (shorter + moved, end), (longer + moved, end), (placed + moved, end)


@compiled
def _slide(
    histograms: Histograms, numbers: Floats, window: int, before: RowSpan, after: RowSpan
) -> None:
    """Count the rows ``after`` in one window in place of the rows ``before``."""
    first, stop = before
    begin, end = after
    if not 0 <= first <= begin <= stop <= end or first == stop:
        first = stop = begin
        histograms[window * GROUPED : (window + 1) * GROUPED] = 0
    for row in range(first, begin):
        _count(histograms, numbers, window, row, -1)
    for row in range(stop, end):
        _count(histograms, numbers, window, row, 1)


@compiled
def _count(histograms: Histograms, numbers: Floats, window: int, row: int, change: int) -> None:
    """Count a row once more in a window, or once less; a number below 0 is not counted."""
    for kind in range(len(KINDS)):
        if window == len(WINDOWS):
            if numbers[PLACES[kind], row] >= 0:
                add(histograms, OF_PLACES + kind, numbers[PLACES[kind], row], change)
        elif numbers[KINDS[kind], row] >= 0:
            group = int(numbers[FAMILIARITY, row])
            value = numbers[KINDS[kind], row]
            add(histograms, histogram_of(window, group, kind), value, change)
            add(histograms, histogram_of(window, ALL, kind), value, change)


@compiled
def histogram_of(window: int, group: int, kind: int) -> int:
    """Return the index of a histogram of PIT values (kind 0) or scores (kind 1)."""
    return window * GROUPED + group * len(KINDS) + kind
