"""Finds the cluster's last runs, of which each user has a bounded number.

What describes the cluster rests on its last runs. A job array may be all of them. So a user's
older runs are passed over once enough of the user's are found, and the runs of others from before
the array stand for them. Where one user's runs follow each other, links lead past all of them: an
array of any length is passed in one step.
"""

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import (
    NONE_KEPT,
    OF_ANOTHER,
    RUNTIME,
    UNIT,
    UNIT_ROWS,
    USER,
    Columns,
    RowIds,
    RowWindow,
)

IN_UNIT = (1_000, 20)
"""Number of runs whose mean runtime is the unit of the price, and most of these of one user."""

MOST_STEPS = 4_096
"""Most rows that are looked at, beside those that a table keeps of users without newer runs."""

_ALL = np.inf
"""Number of rows that a unit rests on where older rows, if they counted, would change it."""


@compiled
def last_runs(
    columns: Columns, window: RowWindow, rows: tuple[int, int], most: tuple[int, int]
) -> RowIds:
    """Return the rows of the last runs, the newest first.

    Args:
        window: the rows that may count for a job; kept ones count where it says so.
        rows: first and end of those that had ended in time and are searched.
        most: number of runs, and of those of one user.
    """
    return _search(columns, window, rows, most)[0]


@compiled
def _search(
    columns: Columns, window: RowWindow, rows: tuple[int, int], most: tuple[int, int]
) -> tuple[RowIds, float]:
    """Return what ``last_runs`` does, and the number of last rows that this rests on."""
    found, per_user = np.empty(most[0], np.int64), np.zeros(64, np.int64)
    attributes, (first, stop) = columns[1], rows
    lowest = first if window.ordinal == NONE_KEPT else 0
    count, steps, row = 0, 0, stop - 1
    while row >= lowest and count < most[0] and (row < first or steps < MOST_STEPS):
        user = attributes[USER, row] + 1
        if user >= len(per_user):
            per_user = _longer(per_user, 2 * user)
        if per_user[user] < most[1] and (user > 0 or row >= window.first):
            per_user[user] += 1
            found[count] = row
            count += 1
            row -= 1
        else:
            row = int(np.int64(attributes[OF_ANOTHER, row]))
        steps += 1
    return found[:count], _ALL if row < lowest and count < most[0] else stop - 1.0 - row


@compiled
def _longer(per_user: RowIds, length: int) -> RowIds:
    """Return the numbers of runs by user with room for more users."""
    longer = np.zeros(length, np.int64)
    longer[: len(per_user)] = per_user
    return longer


@compiled
def unit_of(columns: Columns, window: RowWindow, rows: tuple[int, int]) -> float:
    """Return the unit of the price: the mean of the last runs' whole seconds; 0 without any.

    It is noted with the last of the runs, for the next job, and with the number of rows that it
    rests on, for jobs to which fewer rows count.

    Args:
        window: the rows that may count for a job.
        rows: first and end of those that had ended in time and are searched.
    """
    numbers, row, is_asked = columns[0], rows[1] - 1, window.ordinal != NONE_KEPT
    if row < rows[0]:
        is_asked = False
    elif not np.isnan(numbers[UNIT, row]) and (
        is_asked or numbers[UNIT_ROWS, row] <= rows[1] - rows[0]
    ):
        return float(numbers[UNIT, row])
    found, looked_at = _search(columns, window, rows, IN_UNIT)
    seconds = 0.0
    for each in found:
        seconds += np.floor(numbers[RUNTIME, each])
    unit = seconds / max(1, len(found))
    if is_asked or looked_at <= rows[1] - rows[0]:
        numbers[UNIT, row], numbers[UNIT_ROWS, row] = unit, looked_at
    return unit
