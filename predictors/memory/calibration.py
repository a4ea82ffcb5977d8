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

How far a distribution can be trusted depends on how much was known of the user: nothing, little or
much. Last runs of whose users as much was known tell more than others do, and together with them
some of all runs (Mondrian conformal prediction, damped).

Ranks are no state of their own. The rank of a run follows from the runs before it in the table,
those alone that had ended when it was submitted, among those that the method keeps. So it is found
when it is asked for, and it is the same in every process, in any order, after any restart.
A job that has not ended yet is not in the table, even if it has outlived its prediction: that is
seen when it ends.
"""

from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.jobs import Submission
from predictors.memory.columns import (
    END,
    KNOWN,
    LEVEL,
    PREVIOUS,
    SPREAD,
    SUBMIT,
    Columns,
    Floats,
    Window,
    rows_until,
)
from predictors.memory.job_table import LATE_JOBS, UNCHANGED, JobTable

WINDOWS = (2_000, 8_000)
"""How many of the last runs tell how the levels are to be corrected, in each of two windows."""

LONGEST_WINDOW = WINDOWS[-1]

ENOUGH = 200
"""With fewer ranked runs nothing is corrected, and an interval is as wide as it can be."""

MUCH = 10
"""With as many runs of its user before it, much is known of a job; with none, nothing."""

BORROWED = 1_000
"""Runs of all kinds that count beside those of whose users as much was known: few such runs alone
would tell little."""

_BINS, _STEP = 4_096, 16
_LAYERS = ((_BINS + _BINS // _STEP, 256), (_BINS, 16), (0, 1))
"""Where the bins of each layer begin, and how many of the finest each of them holds."""

_PLACES = _BINS + _BINS // _STEP + _STEP
_KINDS = (LEVEL, SPREAD)
_ROUNDING = 1e-12
MUCH_KNOWN = 2
"""What ``known`` says of a user of whom much is known."""

_ALL = 3
"""The group of all runs, behind those of whose users nothing, little or much was known."""

Bins = NDArray[np.int16]
"""Ranked runs by group, kind of rank, window and bin; behind the bins they are counted once more
in coarser ones, and once more in the coarsest."""

Counted = tuple[tuple[int, int], tuple[int, int]]
"""First and end of the runs that are counted, by window."""

_UNCOUNTED: Counted = ((0, 0), (0, 0))

Counts = tuple[Bins, int]
"""Of the last windows, and the group of the job that is asked about."""

Shares = tuple[float, float, float, float, float]
"""What ``shares_of`` answers."""

NOTHING: Bins = np.zeros((_ALL + 1, len(_KINDS), len(WINDOWS), _PLACES), np.int16)
"""Nothing was counted; shared, and never written to."""

Rank = Callable[[int, int], None]
"""Ranks the rows from the first on and before the second: writes LEVEL and SPREAD, -1 where
nothing was predicted."""


class Calibration:
    """What a table's ranks say about a method's levels.

    Args:
        recent: the runs, LONGEST_WINDOW and twice LATE_JOBS more than the method looks at for one
            job. Nobody else may watch the table.
        rank: of the method.

    Attributes:
        history: how many rows before a run tell how much was known of its user.
    """

    def __init__(self, recent: JobTable, rank: Rank) -> None:
        self._recent = recent
        self._rank = rank
        self.history = recent.kept - LONGEST_WINDOW - 2 * LATE_JOBS
        self._ranked = (0, 0)
        self._counted = _UNCOUNTED
        self._counts: Bins = NOTHING
        self._is_asked = False
        self._newest = inf

    def ranked_by(self, rank: Rank) -> "Calibration":
        """The same, which from now on ranks runs by another method on the same table."""
        self._rank = rank
        return self

    def at(self, submission: Submission) -> Counts:
        """How the runs that had ended when a job was submitted are spread over the levels."""
        window = self._recent.window(submission)
        bins = self.bins(window)
        return bins, known_at(self._recent.columns, window, self.history)

    def bins(self, window: Window) -> Bins:
        """The runs that had ended in time, counted by their ranks.

        Of a cluster with fewer runs than would correct anything nothing is counted: a count takes
        more room than all of its runs.

        Args:
            window: first row, end of the rows, and the time by which a run must have ended.
        """
        first, stop, time, _ = window
        if time < self._newest or self._recent.changed_from != UNCHANGED:
            if stop - first < ENOUGH:
                return NOTHING
            ends = self._recent.columns[0][END]
            self._count(first, rows_until(ends, first, stop, time))
        self._is_asked = True
        return self._counts

    def observed(self) -> None:
        """Rank the run that has just been put into the table, before anybody asks.

        A run that follows others about which nobody asked waits with them until somebody does.
        """
        if self._is_asked:
            self._is_asked = False
            self._count(self._recent.first, self._recent.first + len(self._recent))

    def _count(self, first: int, stop: int) -> None:
        """Rank and count the rows from ``first`` on and before ``stop``."""
        if self._counts is NOTHING:
            self._counts = NOTHING.copy()
        self._forget_changes()
        table = self._recent
        self._rank_rows(max(first, stop - LONGEST_WINDOW), stop)
        before, moved = self._counted, table.moved
        self._counted = recount(self._counts, table.columns[0], before, (first, stop, moved))
        is_whole = stop == table.first + len(table)
        self._newest = float(table.columns[0][END, stop - 1]) if is_whole else inf

    def _forget_changes(self) -> None:
        """Take back what a run that was put before others has made wrong."""
        changed, self._recent.changed_from = self._recent.changed_from, UNCHANGED
        low, high = self._ranked
        self._ranked = (low, min(high, changed)) if changed > low else (0, 0)
        if changed < self._counted[0][1]:
            self._counts[:] = 0
            self._counted = _UNCOUNTED

    def _rank_rows(self, first: int, stop: int) -> None:
        """Rank those of the rows that are not ranked yet."""
        moved = self._recent.moved
        low, high = (place - moved for place in self._ranked)
        if first > high or stop < low or low == high:
            low = high = first
        for begin, end in ((first, low), (high, stop)):
            if begin < end:
                self._rank(begin, end)
                note_known(self._recent.columns, (self._recent.first, begin, end), self.history)
        self._ranked = (min(first, low) + moved, max(stop, high) + moved)


@compiled
def known_at(columns: Columns, window: Window, history: int) -> int:
    """How much the last ``history`` rows that had ended in time say of the window's user."""
    first, stop, time, newest = window
    stop = rows_until(columns[0][END], first, stop, time)
    return known(columns, (max(first, stop - history), stop), newest)


@compiled
def known(columns: Columns, rows: tuple[int, int], newest: int) -> int:
    """How much rows say of the user whose rows are linked backwards from ``newest``: 0, 1 or 2."""
    first, stop = rows
    found, row = 0, newest
    while row >= first and found < MUCH:
        found += row < stop
        row = columns[1][PREVIOUS, row]
    return 0 if found == 0 else 1 if found < MUCH else MUCH_KNOWN


@compiled
def note_known(columns: Columns, rows: tuple[int, int, int], history: int) -> None:
    """Note for each of the rows how much was known of its user when it was submitted.

    Args:
        columns: the runs.
        rows: the first of all, and those to note it for: from one on and before another.
        history: how many rows before a row are looked at.
    """
    oldest, begin, end = rows
    numbers, attributes, _ = columns
    for row in range(begin, end):
        first = max(oldest, row - history)
        stop = rows_until(numbers[END], first, row, numbers[SUBMIT, row])
        numbers[KNOWN, row] = known(columns, (first, stop), attributes[PREVIOUS, row])


@compiled
def recount(bins: Bins, numbers: Floats, before: Counted, now: tuple[int, int, int]) -> Counted:
    """Count the last rows in each window in place of those ``before``, and tell which they are.

    Args:
        bins: in which they are counted.
        numbers: of the runs.
        before: what is counted, in numbers that stay the same.
        now: the first row, the end of the rows, and by how much rows were moved.
    """
    first, stop, moved = now
    shorter = (max(first, stop - WINDOWS[0]), stop)
    longer = (max(first, stop - WINDOWS[1]), stop)
    count_in(bins[:, :, 0], numbers, (before[0][0] - moved, before[0][1] - moved), shorter)
    count_in(bins[:, :, 1], numbers, (before[1][0] - moved, before[1][1] - moved), longer)
    return (shorter[0] + moved, stop + moved), (longer[0] + moved, stop + moved)


@compiled
def count_in(
    counts: Bins, numbers: Floats, before: tuple[int, int], wanted: tuple[int, int]
) -> None:
    """Count the rows ``wanted`` in place of those ``before``, in one window."""
    first, stop = before
    is_near = 0 <= first <= wanted[0] <= stop <= wanted[1]
    if not is_near or first == stop:
        counts[:] = 0
        first = stop = wanted[0]
    for row in range(first, wanted[0]):
        count(counts, numbers, row, -1)
    for row in range(stop, wanted[1]):
        count(counts, numbers, row, 1)


@compiled
def count(counts: Bins, numbers: Floats, row: int, change: int) -> None:
    """Count the ranks of a row once more, or once less."""
    for kind in range(len(_KINDS)):
        rank = numbers[_KINDS[kind], row]
        if rank >= 0:
            place = min(int(rank * _BINS), _BINS - 1)
            for group in (int(numbers[KNOWN, row]), _ALL):
                for begin, width in _LAYERS:
                    counts[group, kind, begin + place // width] += change


@compiled
def ranked(counts: Counts) -> int:
    """How many runs are ranked."""
    return _ranked_in(counts[0], _ALL, len(WINDOWS) - 1)


@compiled
def _ranked_in(bins: Bins, group: int, window: int) -> int:
    found = 0
    for place in range(_LAYERS[0][0], _PLACES):
        found += bins[group, 0, window, place]
    return found


@compiled
def corrected(counts: Counts, kind: int, share: float) -> float:
    """The level, or spread, up to which ``share`` of the last runs were ranked.

    Args:
        counts: at least ENOUGH runs are ranked.
        kind: 0 for levels, 1 for spreads.
        share: less than 1; of n runs and the next one it is the share (n + 1) / n.
    """
    return corrected_by(counts, shares_of(counts), kind, share)


@compiled
def corrected_by(counts: Counts, shares: Shares, kind: int, share: float) -> float:
    """The same, where ``shares_of`` the counts are at hand."""
    whole = shares[0]
    wanted = min(1.0 - 1e-9, share * (whole + 1.0) / whole)
    level, place = 0.0, 0
    for begin, _ in _LAYERS:
        place *= _STEP
        for _ in range(_STEP - 1):
            here = _share_in(counts, shares, kind, begin + place)
            if level + here >= wanted - _ROUNDING:
                break
            level += here
            place += 1
    return (place + 1) / _BINS


@compiled
def share_within(counts: Counts, level: float) -> float:
    """The share of the last runs whose LEVEL is up to ``level``."""
    end = min(_BINS, int(level * _BINS))
    shares = shares_of(counts)
    found, done = 0.0, 0
    for begin, width in _LAYERS:
        while done + width <= end:
            found += _share_in(counts, shares, 0, begin + done // width)
            done += width
    return found


@compiled
def shares_of(counts: Counts) -> Shares:
    """How many runs are ranked; then what a run of the job's group, and any run, counts for.

    Once for the shorter window, and once for the longer.
    """
    bins, group = counts
    everybody = (_ranked_in(bins, _ALL, 0), _ranked_in(bins, _ALL, 1))
    shorter = 0.5 / (_ranked_in(bins, group, 0) + BORROWED)
    longer = 0.5 / (_ranked_in(bins, group, 1) + BORROWED)
    return (
        float(everybody[1]),
        shorter,
        shorter * BORROWED / max(1, everybody[0]),
        longer,
        longer * BORROWED / max(1, everybody[1]),
    )


@compiled
def _share_in(counts: Counts, shares: Shares, kind: int, place: int) -> float:
    bins, group = counts
    _, shorter, shorter_of_all, longer, longer_of_all = shares
    found: float = (
        shorter * bins[group, kind, 0, place]
        + shorter_of_all * bins[_ALL, kind, 0, place]
        + longer * bins[group, kind, 1, place]
        + longer_of_all * bins[_ALL, kind, 1, place]
    )
    return found
