"""Machine code that finds the past runs of a key, as a distribution of equal weights."""

import numpy as np

from predictors.compiled import compiled
from predictors.jobs import usage_of
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
    admit,
    rows_until,
)
from predictors.uncertainty import rank_row

MOST = 256
"""Most runs that stand for a key: the latest."""

Key = tuple[bool, bool, bool]
"""Whether user, project and requested walltime belong to it. Projects are kept as groups."""

Sought = tuple[int, float, float]
"""Project and request of the job, and since when its runs may have ended."""

usage = compiled(usage_of)


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
    return eligible(columns, (max(first, stop - history), stop, newest), key, job)


@compiled
def eligible(
    columns: Columns, rows: tuple[int, int, int], key: Key, job: Sought
) -> tuple[Floats, Floats]:
    """What ``distribution`` finds before the end of the rows that had ended in time.

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
            seconds = usage(numbers[RUNTIME, row], numbers[REQUEST, row]) * request
            found = admit(values, sources, found, (seconds, float(row)))
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
            rank_row(numbers, row, values, np.ones(len(values)))
