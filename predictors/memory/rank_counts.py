"""Counts the ranks of the last runs in bins, and finds the rank up to which a share of them were.

There are two windows, of which the shorter follows the cluster, while the longer rides out bursts
of like jobs; each counts a half. Runs of whose users as much was known as of the job's count
beside runs of all kinds.
"""

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.memory.columns import KNOWN, LEVEL, SPREAD, Floats

WINDOWS = (2_000, 8_000)
"""How many of the last runs tell how the levels are to be corrected, in each of two windows."""

LONGEST_WINDOW = WINDOWS[-1]

ENOUGH = 200
"""With fewer ranked runs nothing is corrected, and an interval is as wide as it can be."""

BORROWED = 1_000
"""Runs of all kinds that count beside those of whose users as much was known: few such runs alone
would tell little."""

BINS, STEP = 4_096, 16
LAYERS = ((BINS + BINS // STEP, 256), (BINS, 16), (0, 1))
"""Where the bins of each layer begin, and how many of the finest each of them holds."""

PLACES = BINS + BINS // STEP + STEP
KINDS = (LEVEL, SPREAD)
ROUNDING = 1e-12

ALL = 3
"""The group of all runs, behind those of whose users nothing, little or much was known."""

Ranks = NDArray[np.int16]
"""Ranked runs by group, kind of rank, window and bin; behind the bins they are counted once more
in coarser ones, and once more in the coarsest."""

Counted = tuple[tuple[int, int], tuple[int, int]]
"""First and end of the runs that are counted, by window."""

RankCounts = tuple[Ranks, int]
"""Of the last windows, and the group of the job that is asked about."""

Shares = tuple[float, float, float, float, float]
"""What ``shares_of`` answers."""


def no_ranks() -> Ranks:
    """Bins in which nothing was counted."""
    return np.zeros((ALL + 1, len(KINDS), len(WINDOWS), PLACES), np.int16)


@compiled
def recount(bins: Ranks, numbers: Floats, before: Counted, now: tuple[int, int, int]) -> Counted:
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
    counts: Ranks, numbers: Floats, before: tuple[int, int], wanted: tuple[int, int]
) -> None:
    """Count the rows ``wanted`` in place of those ``before``, in one window."""
    first, stop = still_counted(before, wanted)
    if first == stop:
        counts[:] = 0
    for row in range(first, wanted[0]):
        count(counts, numbers, row, -1)
    for row in range(stop, wanted[1]):
        count(counts, numbers, row, 1)


@compiled
def still_counted(before: tuple[int, int], wanted: tuple[int, int]) -> tuple[int, int]:
    """The rows ``before``, from which to go on counting, or no rows where to count all anew."""
    first, stop = before
    is_near = 0 <= first <= wanted[0] <= stop <= wanted[1]
    return (first, stop) if is_near and first < stop else (wanted[0], wanted[0])


@compiled
def count(counts: Ranks, numbers: Floats, row: int, change: int) -> None:
    """Count the ranks of a row once more, or once less."""
    for kind in range(len(KINDS)):
        rank = numbers[KINDS[kind], row]
        if rank >= 0:
            place = bin_of(rank)
            for group in (int(numbers[KNOWN, row]), ALL):
                for begin, width in LAYERS:
                    counts[group, kind, begin + place // width] += change


@compiled
def bin_of(rank: float) -> int:
    """The bin that a rank from 0 to 1 is counted in."""
    return min(int(rank * BINS), BINS - 1)


@compiled
def ranked_in(bins: Ranks, group: int, window: int) -> int:
    """How many runs of a group are ranked."""
    found = 0
    for place in range(LAYERS[0][0], PLACES):
        found += bins[group, 0, window, place]
    return found


@compiled
def rank_of(counts: RankCounts, shares: Shares, kind: int, share: float) -> float:
    """The level, or spread, up to which ``share`` of the last runs were ranked.

    Args:
        counts: at least ENOUGH runs are ranked.
        shares: what ``shares_of`` says of them.
        kind: 0 for levels, 1 for spreads.
        share: less than 1; of n runs and the next one it is the share (n + 1) / n.
    """
    whole = shares[0]
    wanted = min(1.0 - 1e-9, share * (whole + 1.0) / whole)
    level, place = 0.0, 0
    for begin, _ in LAYERS:
        place *= STEP
        for _ in range(STEP - 1):
            here = _share_in(counts, shares, kind, begin + place)
            if level + here >= wanted - ROUNDING:
                break
            level += here
            place += 1
    return (place + 1) / BINS


@compiled
def share_up_to(counts: RankCounts, level: float) -> float:
    """The share of the last runs whose LEVEL is up to ``level``."""
    end = min(BINS, int(level * BINS))
    shares = shares_of(counts)
    found, done = 0.0, 0
    for begin, width in LAYERS:
        while done + width <= end:
            found += _share_in(counts, shares, 0, begin + done // width)
            done += width
    return found


@compiled
def shares_of(counts: RankCounts) -> Shares:
    """How many runs are ranked; then what a run of the job's group, and any run, counts for.

    Once for the shorter window, and once for the longer.
    """
    bins, group = counts
    everybody = (ranked_in(bins, ALL, 0), ranked_in(bins, ALL, 1))
    shorter = weights_of(ranked_in(bins, group, 0), everybody[0])
    longer = weights_of(ranked_in(bins, group, 1), everybody[1])
    return float(everybody[1]), shorter[0], shorter[1], longer[0], longer[1]


@compiled
def weights_of(alike: int, everybody: int) -> tuple[float, float]:
    """What a run of the job's group, and any run, counts for, of as many as are in a window."""
    weight = 0.5 / (alike + BORROWED)
    return weight, weight * BORROWED / max(1, everybody)


@compiled
def _share_in(counts: RankCounts, shares: Shares, kind: int, place: int) -> float:
    bins, group = counts
    _, shorter, shorter_of_all, longer, longer_of_all = shares
    found: float = (
        shorter * bins[group, kind, 0, place]
        + shorter_of_all * bins[ALL, kind, 0, place]
        + longer * bins[group, kind, 1, place]
        + longer_of_all * bins[ALL, kind, 1, place]
    )
    return found
