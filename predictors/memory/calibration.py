"""Corrects levels by where the runtimes of ended runs fell in what was predicted for them.

The weights of past runs say what is more likely than what; that 90% of all jobs end below the
quantile of 0.9 they do not say. So each ended run is ranked in the distribution that was
predicted for it, by two numbers: LEVEL, the lowest level whose quantile reached its runtime, and
SPREAD, the width of the narrowest central interval that held it. Of the last runs 90% have a LEVEL
up to some number: the quantile at that number is what 90% of jobs like them end below. An interval
with a coverage of 90% is in the same way as wide as 90% of the last runs needed. (Windowed split
conformal prediction: V. Vovk, A. Gammerman and G. Shafer, "Algorithmic learning in a random
world", 2005; of the windows the shorter follows the cluster, the longer rides out bursts of like
jobs, and each counts a half.)

Ranks are no state of their own. The rank of a run follows from the runs before it in the table,
those alone that had ended when it was submitted, among the method's last so many; so it is
found when it is asked for, and the same whoever finds it, in whatever order, after any restart.
A job that has not ended yet is not in the table, even if it has outlived its prediction: that is
seen when it ends.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.jobs import Submission
from predictors.memory.columns import END, LEVEL, SPREAD, Floats, rows_until
from predictors.memory.job_table import JobTable

WINDOWS = (2_000, 8_000)
"""How many of the last runs tell how the levels are to be corrected, in each of two windows."""

LONGEST_WINDOW = WINDOWS[-1]

ENOUGH = 200
"""With fewer ranked runs nothing is corrected, and an interval is as wide as it can be."""

_BINS, _COARSE = 4_096, 64
_FINE = _BINS // _COARSE
_KINDS = (LEVEL, SPREAD)

Counts = NDArray[np.int32]
"""Ranked runs of the last window, by kind of rank, window and bin; behind the bins they are
counted once more in coarser ones."""

Rank = Callable[[int, int], None]
"""Ranks the rows from the first on and before the second: writes LEVEL and SPREAD, -1 where
nothing was predicted."""


class Calibration:
    """What a table's ranks say about a method's levels.

    Args:
        recent: the runs. Nobody else may watch the table.
        rank: of the method.
    """

    def __init__(self, recent: JobTable, rank: Rank) -> None:
        self._recent = recent
        self._rank = rank
        self._ranked = (0, 0)
        self._counted = [(0, 0) for _ in WINDOWS]
        self._counts: Counts = np.zeros((len(_KINDS), len(WINDOWS), 0), np.int32)

    def ranked_by(self, rank: Rank) -> "Calibration":
        """The same, which from now on ranks runs by another method on the same table."""
        self._rank = rank
        return self

    def at(self, submission: Submission) -> Counts:
        """How the runs that had ended when a job was submitted are spread over the levels."""
        if not self._counts.shape[-1]:  # a cluster that is never asked about takes no room
            self._counts = np.zeros((*self._counts.shape[:2], _BINS + _COARSE), np.int32)
        self._forget_changes()
        table = self._recent
        first, stop, time, _ = table.window(submission)
        stop = rows_until(table.columns[0][END], first, stop, time)
        self._rank_rows(max(first, stop - LONGEST_WINDOW), stop)
        for window, length in enumerate(WINDOWS):
            wanted = (max(first, stop - length), stop)
            counted = self._counted[window]
            before = (counted[0] - table.moved, counted[1] - table.moved)
            if wanted != before:
                recount(self._counts[:, window], table.columns[0], before, wanted)
                self._counted[window] = (wanted[0] + table.moved, stop + table.moved)
        return self._counts

    def _forget_changes(self) -> None:
        """Take back what a run that was put before others has made wrong."""
        changed, self._recent.changed_from = self._recent.changed_from, 1 << 62
        low, high = self._ranked
        self._ranked = (low, min(high, changed)) if changed > low else (0, 0)
        for window, (_, stop) in enumerate(self._counted):
            if changed < stop:
                self._counts[:, window] = 0
                self._counted[window] = (0, 0)

    def _rank_rows(self, first: int, stop: int) -> None:
        """Rank those of the rows that are not ranked yet."""
        moved = self._recent.moved
        low, high = (place - moved for place in self._ranked)
        if first > high or stop < low or low == high:
            low = high = first
        if first < low:
            self._rank(first, low)
        if stop > high:
            self._rank(high, stop)
        self._ranked = (min(first, low) + moved, max(stop, high) + moved)


@compiled
def recount(
    counts: Counts, numbers: Floats, before: tuple[int, int], wanted: tuple[int, int]
) -> None:
    """Count the rows ``wanted`` in place of those ``before``."""
    first, stop = before
    if first >= stop or wanted[0] < first or wanted[1] < stop or wanted[0] > stop:
        counts[:] = 0
        first = stop = wanted[0]
    for row in range(first, wanted[0]):
        count(counts, numbers, row, -1)
    for row in range(stop, wanted[1]):
        count(counts, numbers, row, 1)


@compiled
def count(counts: Counts, numbers: Floats, row: int, change: int) -> None:
    """Count the ranks of a row once more, or once less."""
    for kind in range(len(_KINDS)):
        rank = numbers[_KINDS[kind], row]
        if rank >= 0:
            place = min(int(rank * _BINS), _BINS - 1)
            counts[kind, place] += change
            counts[kind, _BINS + place // _FINE] += change


@compiled
def ranked(counts: Counts, window: int) -> int:
    """How many runs of a window are ranked."""
    found = 0
    for place in range(_BINS, _BINS + _COARSE):
        found += counts[0, window, place]
    return found


@compiled
def corrected(counts: Counts, kind: int, share: float) -> float:
    """The level, or spread, up to which ``share`` of the last runs were ranked.

    Args:
        counts: at least ENOUGH runs are ranked.
        kind: 0 for levels, 1 for spreads.
        share: less than 1; of n runs and the next one it is the share (n + 1) / n.
    """
    whole = ranked(counts, len(WINDOWS) - 1)
    wanted = min(1.0 - 1e-9, share * (whole + 1) / whole)
    weights = np.empty(len(WINDOWS))
    for window in range(len(WINDOWS)):
        weights[window] = 1.0 / len(WINDOWS) / max(1, ranked(counts, window))
    passed, place = 0.0, 0
    for coarse in range(_COARSE):
        here = _weight(counts, kind, _BINS + coarse, weights)
        if passed + here >= wanted:
            break
        passed += here
        place += _FINE
    while place < _BINS:
        passed += _weight(counts, kind, place, weights)
        if passed >= wanted:
            break
        place += 1
    return min(1.0, (place + 1) / _BINS)


@compiled
def share_within(counts: Counts, level: float) -> float:
    """The share of the last runs whose LEVEL is up to ``level``."""
    weights = np.empty(len(WINDOWS))
    for window in range(len(WINDOWS)):
        weights[window] = 1.0 / len(WINDOWS) / max(1, ranked(counts, window))
    passed = 0.0
    for place in range(min(_BINS, int(level * _BINS))):
        passed += _weight(counts, 0, place, weights)
    return passed


@compiled
def _weight(counts: Counts, kind: int, place: int, weights: Floats) -> float:
    weight = 0.0
    for window in range(len(WINDOWS)):
        weight += weights[window] * counts[kind, window, place]
    return weight
