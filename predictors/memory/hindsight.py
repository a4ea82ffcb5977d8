"""Corrects the shares that are asked for by what became of those of earlier runs.

What is corrected by the runs that have ended is right for jobs like these. Jobs that are submitted
now may differ: where many wait, those of the last jobs that have ended are the short ones, and of
a burst of like jobs none has. So each ended run is looked at as it was seen at its submission: its
LEVEL_PLACE is the share of the runs known by then that had a LEVEL up to its own. If levels had
been right, 90% of the last runs would have a place up to 0.9. If 90% of them have one up to 0.95,
that is the share to ask for. It is believed by half: the share that is asked for is a quantile of
a distribution, half of it the places of the last runs, half the even one. SPREAD_PLACE is the same
of the SPREAD.

That places of what came in what was predicted are even, and correct later predictions, is the
recalibration of A. P. Dawid, "Statistical theory: the prequential approach", J. Royal Statistical
Society A 147(2), 1984, and V. Kuleshov, N. Fenner and S. Ermon, "Accurate uncertainties for deep
learning using calibrated regression", ICML 2018.

The place of a run follows from the ranks of the LONGEST_WINDOW runs before it in the table, so it
is the same in every process, as these are.
"""

from math import inf

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled, compiled_for_threads
from predictors.memory.columns import (
    END,
    KNOWN,
    LEVEL,
    LEVEL_PLACE,
    SPREAD,
    SPREAD_PLACE,
    SUBMIT,
    Floats,
    rows_until,
)
from predictors.memory.rank_counts import (
    BINS,
    ENOUGH,
    LAYERS,
    LONGEST_WINDOW,
    PLACES,
    ROUNDING,
    STEP,
    WINDOWS,
    bin_of,
    still_counted,
    weights_of,
)

LOOKED_BACK = 10_000
"""How many of the last runs' places tell which share to ask for. From 8,000 to 20,000 it does not
matter much how many they are."""

BELIEVED = 0.5
"""By how much they are believed."""

_KINDS = (LEVEL_PLACE, SPREAD_PLACE)

Places = NDArray[np.int16]
"""Placed runs by kind of rank and bin, counted in bins as ranks are."""


def no_places() -> Places:
    """Bins in which nothing was counted."""
    return np.zeros((len(_KINDS), PLACES), np.int16)


@compiled_for_threads
def note_places(numbers: Floats, rows: tuple[int, int, int]) -> None:
    """Note for each of the rows which shares of the runs known at its submission were up to it.

    Args:
        numbers: of the runs; the LONGEST_WINDOW rows before each are ranked.
        rows: the first of all, and those to note it for: from one on and before another.
    """
    oldest, begin, end = rows
    for row in range(begin, end):
        numbers[LEVEL_PLACE, row] = numbers[SPREAD_PLACE, row] = -1.0
        if numbers[LEVEL, row] < 0:
            continue
        first = max(oldest, row - LONGEST_WINDOW)
        stop = rows_until(numbers[END], first, row, numbers[SUBMIT, row])
        middle = max(first, stop - WINDOWS[0])
        latest = _up_to(numbers, (middle, stop), row)
        before = _up_to(numbers, (first, middle), row)
        if latest[0] + before[0] < ENOUGH:
            continue
        all_of = (latest[0] + before[0], latest[1] + before[1])
        shorter, longer = weights_of(latest[1], latest[0]), weights_of(all_of[1], all_of[0])
        for kind in range(len(_KINDS)):
            alike, everybody = latest[3 + 2 * kind], latest[2 + 2 * kind]
            place = shorter[0] * alike + shorter[1] * everybody
            alike, everybody = alike + before[3 + 2 * kind], everybody + before[2 + 2 * kind]
            numbers[_KINDS[kind], row] = place + longer[0] * alike + longer[1] * everybody


@compiled
def _up_to(
    numbers: Floats, among: tuple[int, int], row: int
) -> tuple[int, int, int, int, int, int]:
    """How many rows are ranked, how many have a LEVEL, and a SPREAD, up to that of a row.

    Each number is followed by that of rows of whose users as much was known.
    """
    level, spread = _end_of_bin(numbers[LEVEL, row]), _end_of_bin(numbers[SPREAD, row])
    known = numbers[KNOWN, row]
    everybody = alike = lower = lower_alike = narrower = narrower_alike = 0
    for other in range(among[0], among[1]):
        if numbers[LEVEL, other] < 0:
            continue
        is_alike = int(numbers[KNOWN, other] == known)
        is_lower = int(numbers[LEVEL, other] < level)
        is_narrower = int(numbers[SPREAD, other] < spread)
        everybody += 1
        alike += is_alike
        lower += is_lower
        lower_alike += is_lower & is_alike
        narrower += is_narrower
        narrower_alike += is_narrower & is_alike
    return everybody, alike, lower, lower_alike, narrower, narrower_alike


@compiled
def _end_of_bin(rank: float) -> float:
    """What ranks in the same bin, or in one before it, are less than."""
    place = bin_of(rank) + 1
    return place / BINS if place < BINS else inf


@compiled
def recount_places(
    places: Places, numbers: Floats, before: tuple[int, int], now: tuple[int, int, int]
) -> tuple[int, int]:
    """Count the rows from one on and before another in place of those ``before``.

    Args:
        places: in which they are counted.
        numbers: of the runs.
        before: what is counted, in numbers that stay the same.
        now: the first row and the end of those wanted, and by how much rows were moved.

    Returns:
        What is counted now.
    """
    begin, end, moved = now
    first, stop = still_counted((before[0] - moved, before[1] - moved), (begin, end))
    if first == stop:
        places[:] = 0
    for row in range(first, begin):
        _count(places, numbers, row, -1)
    for row in range(stop, end):
        _count(places, numbers, row, 1)
    return begin + moved, end + moved


@compiled
def _count(places: Places, numbers: Floats, row: int, change: int) -> None:
    for kind in range(len(_KINDS)):
        share = numbers[_KINDS[kind], row]
        if share >= 0:
            place = bin_of(share)
            for begin, width in LAYERS:
                places[kind, begin + place // width] += change


@compiled
def share_to_ask(places: Places, kind: int, share: float) -> float:
    """The share to ask for so that ``share`` of jobs are within; the same where too few are placed.

    Args:
        places: of the last runs.
        kind: 0 for levels, 1 for spreads.
        share: between 0 and 1.
    """
    placed = _placed(places)
    if placed < ENOUGH:
        return share
    found, place = 0.0, 0
    for begin, width in LAYERS:
        place *= STEP
        for _ in range(STEP - 1):
            here = _share_in(places[kind, begin + place], width, placed)
            if found + here >= share - ROUNDING:
                break
            found += here
            place += 1
    return (place + 1) / BINS


@compiled
def share_got(places: Places, share: float) -> float:
    """The share of jobs that are up to a level, where ``share`` was asked for."""
    placed = _placed(places)
    if placed < ENOUGH:
        return share
    end = int(share * BINS)
    found, done = 0.0, 0
    for begin, width in LAYERS:
        while done + width <= end:
            found += _share_in(places[0, begin + done // width], width, placed)
            done += width
    return found


@compiled
def _share_in(counted: int, width: int, placed: int) -> float:
    return BELIEVED * counted / placed + (1.0 - BELIEVED) * width / BINS


@compiled
def _placed(places: Places) -> int:
    found = 0
    for place in range(LAYERS[0][0], PLACES):
        found += places[0, place]
    return found
