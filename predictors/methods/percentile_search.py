"""Machine code that finds the past runs of a key, as a distribution of equal weights."""

import numpy as np

from predictors.compiled import compiled
from predictors.memory import calibration
from predictors.memory.calibration import Bins
from predictors.memory.columns import (
    END,
    GROUP,
    LEVEL,
    PREVIOUS,
    REQUEST,
    RUNTIME,
    SPREAD,
    SUBMIT,
    USER,
    Columns,
    Floats,
    Window,
    rows_until,
    usage,
)
from predictors.uncertainty import NO_PRICE, Bounds, Wanted, bounds, rank_row

MOST = 256
"""Most runs that stand for a key: the latest."""

Key = tuple[bool, bool, bool]
"""Whether user, project and requested walltime belong to it. Projects are kept as groups."""

Sought = tuple[int, float, float]
"""Project and request of the job, and since when its runs may have ended."""

About = tuple[Columns, Window, int, Key, Sought]
"""The arguments of ``distribution``."""


@compiled
def distribution(
    columns: Columns, window: Window, history: int, key: Key, job: Sought
) -> tuple[Floats, Floats]:
    """The runs of a job's key in order of their usages, times its request, and their rows.

    Args:
        columns: the runs.
        window: first row, end of the rows, the time by which a run must have ended, and the last
            row of the user.
        history: among how many of the last rows they are sought.
        key: what a run must share with the job.
        job: to which it belongs.
    """
    first, stop, time, newest = window
    stop = rows_until(columns[0][END], first, stop, time)
    values, sources = eligible(columns, (max(first, stop - history), stop, newest), key, job)
    order = np.argsort(values, kind="mergesort")
    return values[order], sources[order]


@compiled
def certain(about: About, levels: tuple[Bins, int], asked: Wanted) -> tuple[int, Bounds]:
    """How many runs ``distribution`` finds, and ``bounds`` whose prediction is for a rate only.

    Args:
        about: the arguments of ``distribution``.
        levels: bins of the calibration, and how many rows tell how much is known of a user.
        asked: as ``bounds`` takes it.
    """
    columns, window, history, key, job = about
    first, stop, time, newest = window
    stop = rows_until(columns[0][END], first, stop, time)
    values, _ = eligible(columns, (max(first, stop - history), stop, newest), key, job)
    values = values[np.argsort(values, kind="mergesort")]
    known = calibration.known_at(columns, window, levels[1])
    weights = np.ones(len(values))
    return len(values), bounds(values, weights, (job[1], NO_PRICE), (levels[0], known), asked)


@compiled
def certain_of(usages: Floats, request: float, bins: Bins, asked: Wanted) -> Bounds:
    """The same by usages in order, where they are at hand, of a user of whom much is known."""
    weights = np.ones(len(usages))
    return bounds(
        usages * request, weights, (request, NO_PRICE), (bins, calibration.MUCH_KNOWN), asked
    )


@compiled
def eligible(
    columns: Columns, rows: tuple[int, int, int], key: Key, job: Sought
) -> tuple[Floats, Floats]:
    """What ``distribution`` finds before the end of the rows that had ended in time, newest first.

    Args:
        columns: the runs.
        rows: the first that counts, the end of those that count, and one from which the user's
            are linked backwards.
        key: what a run must share with the job.
        job: to which it belongs.
    """
    first, stop, newest = rows
    by_user, by_project, by_request = key
    project, request, since = job
    numbers, attributes, _ = columns
    values, sources = np.empty(MOST), np.empty(MOST)
    found = 0
    row = newest if by_user else stop - 1
    while row >= first and found < MOST and numbers[END, row] >= since:
        is_alike = (not by_project or attributes[GROUP, row] == project) and (
            not by_request or numbers[REQUEST, row] == request
        )
        if row < stop and is_alike:
            values[found] = usage(numbers[RUNTIME, row], numbers[REQUEST, row]) * request
            sources[found] = row
            found += 1
        row = attributes[PREVIOUS, row] if by_user else row - 1
    return values[:found], sources[:found]


@compiled
def rank(
    columns: Columns,
    rows: tuple[int, int, int],
    sizes: tuple[int, int],
    key: Key,
    window_seconds: float,
) -> None:
    """Rank each of the rows among the runs of its key at its submission.

    Args:
        columns: the runs.
        rows: the first of all, and those to rank: from one on and before another.
        sizes: how many rows before a row are looked at, and fewest runs of a distribution.
        key: what a run must share with the job.
        window_seconds: how long before the submission a run may have ended.
    """
    oldest, begin, end = rows
    history, fewest = sizes
    numbers, attributes, _ = columns
    for row in range(begin, end):
        numbers[LEVEL, row] = numbers[SPREAD, row] = -1.0
        if attributes[USER if key[0] else GROUP, row] < 0:
            continue
        submit = numbers[SUBMIT, row]
        first = max(oldest, row - history)
        stop = rows_until(numbers[END], first, row, submit)
        job = (attributes[GROUP, row], numbers[REQUEST, row], submit - window_seconds)
        values, _ = eligible(columns, (first, stop, attributes[PREVIOUS, row]), key, job)
        if len(values) >= fewest:
            values = values[np.argsort(values, kind="mergesort")]
            rank_row(numbers, row, values, np.ones(len(values)))
