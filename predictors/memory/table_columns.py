"""The table of recent jobs for a log whose jobs are columns, kept in machine code."""

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import (
    ATTRIBUTES,
    BLOCK,
    END,
    FEATURES,
    MEMORY,
    NUMBERS,
    PREVIOUS,
    PROCESSORS,
    REQUEST,
    RUNTIME,
    SUBMIT,
    USER,
    Columns,
    Ids,
    Window,
    insert,
    summarise,
)
from predictors.memory.job_columns import JobColumns, Log, Rows, end_of, users_of
from predictors.memory.job_table import UNKNOWN

Table = tuple[Columns, Ids, Rows]
"""The columns, the last row of each user, and the first row and the end of the rows."""


def table_columns(jobs: JobColumns, kept: int) -> Table:
    """Room for the ``kept`` jobs that ended last, as in ``JobTable``."""
    rows = min(jobs[0].shape[1], 2 * kept) + 1
    columns = (
        np.full((NUMBERS, rows), np.nan, order="F"),
        np.full((ATTRIBUTES + 1, rows), UNKNOWN, np.int32, order="F"),
        np.full((2 * FEATURES, rows // BLOCK + 1), np.nan),
    )
    return columns, np.full(users_of(jobs), UNKNOWN, np.int32), np.zeros(2, np.int64)


@compiled
def keep(table: Table, kept: int, log: Log, place: int) -> None:
    """What ``JobTable.add`` does, with the job that ended at a place of the log."""
    columns, newest, used = table
    numbers, ids = log[0]
    job, end = end_of(log, place)
    if used[1] - used[0] == kept:
        if end < columns[0][END, used[0]]:
            return
        used[0] += 1
    if used[1] == columns[0].shape[1]:
        move_back(table)
    row = (
        numbers[PROCESSORS, job],
        numbers[REQUEST, job],
        numbers[MEMORY, job],
        numbers[RUNTIME, job],
        end,
        numbers[SUBMIT, job],
    )
    names = (ids[0, job], ids[1, job], ids[2, job], ids[3, job])
    insert(columns, (used[0], used[1]), row, names, newest)
    used[1] += 1


@compiled
def move_back(table: Table) -> None:
    """Move the rows to the beginning of the arrays."""
    (numbers, attributes, bounds), newest, used = table
    first, count = used[0], used[1] - used[0]
    for row in range(count):
        numbers[:, row] = numbers[:, first + row]
        attributes[:, row] = attributes[:, first + row]
        attributes[PREVIOUS, row] = max(attributes[PREVIOUS, row] - first, UNKNOWN)
    for user in range(len(newest)):
        newest[user] = max(newest[user] - first, UNKNOWN)
    used[0], used[1] = 0, count
    summarise(numbers, bounds, 0, count)


@compiled
def window_of(table: Table, log: Log, job: int) -> Window:
    """What ``JobTable.window`` answers of a job whose user is known."""
    _, newest, used = table
    numbers, ids = log[0]
    return used[0], used[1], numbers[SUBMIT, job], newest[ids[USER, job]]
