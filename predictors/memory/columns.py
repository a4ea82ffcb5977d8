"""Past runs in flat columns, and the machine code that keeps the columns in order.

Rows are in order of end time, and among equal end times in order of observation. So a scan from
the newest row to the oldest meets runs in the order in which ties are decided: the run that ended
last first, and among equal ends the run that was observed last.
"""

# ruff: noqa: PLR1730 - min and max answer NaN for NaN; comparisons leave it out

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.base import limited
from predictors.compiled import compiled
from predictors.jobs import usage_of

Floats = NDArray[np.float64]
Ids = NDArray[np.int32]
RowIds = NDArray[np.int64]
"""Rows of runs."""

Running = NDArray[np.float32]
"""Like jobs that run: their number, how many have ended meanwhile, and elapsed times in seconds,
ascending; of more than ``MOST_ELAPSED`` jobs evenly spaced ones."""

Columns = tuple[Floats, Ids, Floats]
"""Numbers by row, ids by row, and the bounds of the features by block of rows."""


class RowWindow(NamedTuple):
    """Rows that may count for a job.

    Attributes:
        time: Unix seconds; only runs that had ended by then count.
        newest: the last row of the job's user; NOWHERE without any.
        ordinal: least ORDINAL of runs of the user that count although they lie before ``first``.
    """

    first: int
    stop: int
    time: float
    newest: int
    ordinal: int


class JobQuery(NamedTuple):
    """A submitted job as methods compare it with past runs.

    Attributes:
        user: interned id, as in the columns; UNKNOWN without, NEW if no stored run has it.
        request: requested walltime in seconds.
        processors: 1 where unknown.
        memory: KiB per processor, NaN where unknown.
    """

    user: int
    group: int
    queue: int
    application: int
    request: float
    processors: float
    memory: float
    submit: float


UNKNOWN = -1
"""Id of an attribute that a job does not have."""

NEW = -2
"""Id of an attribute that no stored run has."""

Features = tuple[float, float, float]
"""Processors, requested walltime and memory of a job, NaN where unknown."""

PROCESSORS, REQUEST, MEMORY, RUNTIME, END, SUBMIT = range(6)
PIT, NONCONFORMITY, FAMILIARITY, PIT_PLACE, NONCONFORMITY_PLACE, UNIT, UNIT_ROWS = range(6, 13)
WEIGHT, COST, FIRST, SECOND, THIRD, FOURTH, FIFTH = range(13, 20)
"""Rows of the matrix of numbers; NaN is unknown.

Those behind the first line are derived from it: see ``calibration``, ``recalibration`` for the
places of a run's PIT value and nonconformity score among earlier ones, ``last_runs`` for the unit
of the price after the run and for the rows that it rests on, and ``choice`` for the costs of
candidates.
"""

NUMBERS, NUMBERS_WITH_COSTS = 13, 20
"""Number of rows of the matrix of numbers, without and with the costs of candidates."""

FEATURES = 3
"""Number of rows, from the first, that are the features by which jobs are compared."""

USER, GROUP, QUEUE, APPLICATION, PREVIOUS, ORDINAL, OF_ANOTHER = range(7)
"""Rows of the matrix of ids. The first are interned attributes. PREVIOUS is the row of the previous
run of the same user; it lies before all rows if there is none. ORDINAL numbers the runs of a user
in their order; only differences are meaningful. OF_ANOTHER is the last row before of another user,
NOWHERE if there is none."""

IDS = OF_ANOTHER + 1
"""Number of rows of the matrix of ids."""

NONE_KEPT = 1 << 31
"""Ordinal that no run reaches."""

NOWHERE = -1
"""Row of a previous run where there is none, and of a run without a user."""

RUNNING, ENDED, ELAPSED = range(3)
"""Places in ``Running``: the number of running jobs, the number of like jobs that have started with
or after the first of them and have ended, and the first elapsed time."""

MOST_ELAPSED = 8
"""Most elapsed times of like jobs that run."""

NOBODY: Running = np.zeros(ELAPSED + MOST_ELAPSED, np.float32)
"""No running jobs; never written to."""

ATTRIBUTES = 4
"""Number of rows, from the first, that are interned attributes."""

ANY = -1
"""Id of an attribute that a template leaves out."""

BLOCK = 64
"""Number of rows that share one entry of smallest and largest features."""


usage = compiled(usage_of)
within = compiled(limited)


@compiled
def width(numbers: Floats, row: int) -> float:
    """Return the processors of a run; 1 where unknown."""
    processors: float = numbers[PROCESSORS, row]
    return 1.0 if np.isnan(processors) else processors


@compiled
def rows_until(ends: Floats, first: int, stop: int, time: float) -> int:
    """Return the end of the rows within ``first:stop`` whose runs had ended at ``time``."""
    if stop > first and ends[stop - 1] <= time:
        return stop
    return first + int(np.searchsorted(ends[first:stop], time, side="right"))


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
    """Widen the bounds of a row's block so that they hold its features; NaN changes nothing."""
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
        attributes[PREVIOUS, row], attributes[ORDINAL, row] = NOWHERE, 0
        if attributes[USER, row] >= 0:
            before = newest[attributes[USER, row]]
            attributes[PREVIOUS, row] = before
            attributes[ORDINAL, row] = attributes[ORDINAL, before] + 1 if before >= 0 else 0
            newest[attributes[USER, row]] = row


@compiled
def link_others(attributes: Ids, first: int, stop: int) -> None:
    """Link each of the rows ``first:stop`` to the last row before of another user."""
    for row in range(first, stop):
        is_other = row == 0 or attributes[USER, row] != attributes[USER, row - 1]
        attributes[OF_ANOTHER, row] = row - 1 if is_other else attributes[OF_ANOTHER, row - 1]


@compiled
def insert(
    columns: Columns,
    window: tuple[int, int],
    row: tuple[float, float, float, float, float, float],
    ids: tuple[int, int, int, int],
    newest: Ids,
) -> int:
    """Insert one run by its end time among the rows of the window, after equal end times.

    Args:
        window: first row and end of the rows.
        row: the first numbers of the run, up to SUBMIT.
        ids: its attributes.
        newest: last row by user; updated.

    Returns:
        The row of the run. Later runs are one row further now, without derived numbers.
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
    link_others(attributes, place, stop + 1)
    if place < stop or place % BLOCK == 0:
        summarise(numbers, bounds, place, stop + 1)
    else:
        widen(numbers, bounds, place)
    for index in range(place, stop + 1):
        numbers[PIT:, index] = np.nan
    return place


@compiled
def is_known(columns: Columns, window: RowWindow, row: int) -> bool:
    """Return whether a run of the job's user is stored, and counts for the job."""
    return bool(row >= window.first or (row >= 0 and columns[1][ORDINAL, row] >= window.ordinal))


@compiled
def rows_to_keep(
    attributes: Ids, newest: Ids, rows: tuple[int, int], most: tuple[int, int]
) -> NDArray[np.bool_]:
    """Return which rows before the end of ``rows`` stay: these, and each user's last runs.

    Args:
        newest: last row by user.
        rows: first row and end.
        most: largest number of runs of a user, and of all, that stay before the first row.
    """
    (first, stop), (of_user, left) = rows, most
    stays = np.ones(stop, np.bool_)
    for row in range(first - 1, -1, -1):
        user = attributes[USER, row]
        stays[row] = user >= 0 and left > 0
        if stays[row]:
            age = attributes[ORDINAL, newest[user]] - attributes[ORDINAL, row]
            stays[row] = age < of_user
        left -= stays[row]
    return stays


@compiled
def admit(keys: Floats, values: Floats, found: int, candidate: tuple[float, float]) -> int:
    """Insert a candidate (key, value) into ``found`` ones in ascending order of keys.

    A candidate goes behind those with an equal key. If the arrays are full, it replaces the last
    one, provided that its key is smaller.

    Returns:
        The number of candidates.
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
