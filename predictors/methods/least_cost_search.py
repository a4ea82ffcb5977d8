"""Machine code that weighs past runs by hand-chosen likeness."""

import numpy as np
from numpy.typing import NDArray

from predictors.answers import Bounds, Wanted, bounds, rank_row
from predictors.compiled import compiled, compiled_for_threads
from predictors.distribution import cheapest
from predictors.memory import calibration
from predictors.memory.calibration import Bins
from predictors.memory.columns import (
    APPLICATION,
    END,
    LEVEL,
    PREVIOUS,
    QUEUE,
    REQUEST,
    RUNTIME,
    SPREAD,
    SUBMIT,
    TOTAL,
    USER,
    Columns,
    Floats,
    Window,
    admit,
    rows_until,
    usage,
    width,
)

SCALING = 1000
"""Number of the cluster's last runs whose mean runtime is the unit of the price."""

OTHERS = 16
"""Number of the cluster's last runs that stand for all users; with fewer, none are used."""

_AGEING = 0.96
_OTHER_QUEUE = 0.75
_OTHER_APPLICATION = 0.25
_WEIGHT_OF_OTHERS = 0.1

Rows = NDArray[np.int64]
Sorted = tuple[Floats, Floats]
Job = tuple[Columns, Window, tuple[int, int], tuple[float, float]]
"""The first arguments of the functions that ask about a job."""


@compiled
def least_cost(
    columns: Columns,
    window: Window,
    alike: tuple[int, int],
    job: tuple[float, float],
    settings: tuple[float, int, int],
) -> tuple[int, int, float]:
    """The number of runs of the user, the number of runs of all users, and the estimate in seconds.

    Args:
        columns: the runs.
        window: first row, end of the rows, the time by which a run must have ended, and the last
            row of the user.
        alike: ids of the job's queue and application.
        job: request and processors.
        settings: price, most runs of the user, and number of the cluster's last runs to search.
    """
    price, most, history = settings
    first, stop, row = known(columns, window, history)
    room = (np.empty(most + OTHERS), np.empty(most + OTHERS))
    own, others = weigh(columns, (first, stop, row), alike, job, (most, room))
    scale = mean_seconds(columns[0], max(first, stop - SCALING), stop)
    return own, others, cheapest(room[0], room[1], own + others, job[0], price * scale)


@compiled
def certain(
    about: Job, settings: tuple[float, int, int], bins: Bins, asked: Wanted
) -> tuple[int, int, Bounds]:
    """What ``least_cost`` answers, with ``bounds`` in place of the estimate.

    Args:
        about: the other arguments of ``least_cost``.
        settings: as ``least_cost`` takes them.
        bins: of the calibration.
        asked: as ``bounds`` takes it.
    """
    columns, window, alike, job = about
    price, most, history = settings
    first, stop, row = known(columns, window, history)
    room = (np.empty(most + OTHERS), np.empty(most + OTHERS))
    own, others = weigh(columns, (first, stop, row), alike, job, (most, room))
    values, weights = room[0][: own + others], room[1][: own + others]
    scale = mean_seconds(columns[0], max(first, stop - SCALING), stop)
    counts = (bins, calibration.known(columns, (first, stop), row))
    return own, others, bounds(values, weights, (job[0], price * scale), counts, asked)


@compiled
def distribution(
    columns: Columns,
    window: Window,
    alike: tuple[int, int],
    job: tuple[float, float],
    settings: tuple[int, int],
) -> tuple[int, Floats, Floats, float]:
    """How many runs of the user there are; runtimes in order, with weights; mean of the cluster.

    Takes what ``least_cost`` takes, but no price.
    """
    most, history = settings
    first, stop, row = known(columns, window, history)
    room = (np.empty(most + OTHERS), np.empty(most + OTHERS))
    own, others = weigh(columns, (first, stop, row), alike, job, (most, room))
    scale = mean_seconds(columns[0], max(first, stop - SCALING), stop)
    return own, room[0][: own + others], room[1][: own + others], scale


@compiled
def known(columns: Columns, window: Window, history: int) -> tuple[int, int, int]:
    """The rows of ``window`` that had ended in time, the last ``history`` of them; and the last."""
    first, stop, time, row = window
    stop = rows_until(columns[0][END], first, stop, time)
    return max(first, stop - history), stop, row


@compiled
def weigh(
    columns: Columns,
    rows: tuple[int, int, int],
    alike: tuple[int, int],
    job: tuple[float, float],
    wanted: tuple[int, Sorted],
) -> tuple[int, int]:
    """Put runtimes in order, with their weights; answer how many are of the user and of others.

    Args:
        columns: the runs.
        rows: the first that counts, the end of those that count, and one from which the user's
            are linked backwards.
        alike: ids of the job's queue and application.
        job: request and processors.
        wanted: most runs of the user, and room for runtimes and weights.
    """
    first, stop, row = rows
    most, (values, weights) = wanted
    request = job[0]
    numbers, attributes, _ = columns
    own = 0
    age = 1.0
    while row >= first and own < most:
        if row < stop:
            weight = age * likeness(columns, row, alike, job)
            own = admit(values, weights, own, (min(numbers[RUNTIME, row], request), weight))
            age *= _AGEING
        row = attributes[PREVIOUS, row]
    others = OTHERS if stop - first >= OTHERS else 0
    found = own
    for other in range(stop - others, stop):
        used = usage(numbers[RUNTIME, other], numbers[REQUEST, other]) * request
        found = admit(values, weights, found, (used, _WEIGHT_OF_OTHERS / OTHERS))
    return own, others


@compiled
def own_runs(
    columns: Columns,
    window: Window,
    alike: tuple[int, int],
    job: tuple[float, float],
    settings: tuple[int, int],
) -> tuple[Rows, Floats]:
    """The rows of the user's runs, newest first, and the weights that ``weigh`` gives them."""
    most, history = settings
    first, stop, row = known(columns, window, history)
    rows, weights = np.empty(most, np.int64), np.empty(most)
    own = 0
    age = 1.0
    while row >= first and own < most:
        if row < stop:
            rows[own], weights[own] = row, age * likeness(columns, row, alike, job)
            age *= _AGEING
            own += 1
        row = columns[1][PREVIOUS, row]
    return rows[:own], weights[:own]


@compiled_for_threads
def rank(columns: Columns, rows: tuple[int, int, int], settings: tuple[int, int]) -> None:
    """Rank each of the rows in the distribution that was predicted for it at its submission.

    Only the ``history`` rows before it are looked at, so that the rank never rests on more than
    is remembered.

    Args:
        columns: the runs.
        rows: the first of all, and those to rank: from one on and before another.
        settings: most runs of the user, and ``history``.
    """
    oldest, begin, end = rows
    most, history = settings
    numbers, attributes, _ = columns
    room = (np.empty(most + OTHERS), np.empty(most + OTHERS))
    for row in range(begin, end):
        numbers[LEVEL, row] = numbers[SPREAD, row] = -1.0
        if attributes[USER, row] < 0:
            continue
        first = max(oldest, row - history)
        stop = rows_until(numbers[END], first, row, numbers[SUBMIT, row])
        job = (numbers[REQUEST, row], width(numbers, row))
        alike = (attributes[QUEUE, row], attributes[APPLICATION, row])
        before = (first, stop, attributes[PREVIOUS, row])
        own, others = weigh(columns, before, alike, job, (most, room))
        found = own + others
        rank_row(numbers, row, room[0][:found], room[1][:found])


@compiled
def likeness(columns: Columns, row: int, alike: tuple[int, int], job: tuple[float, float]) -> float:
    """The ratio of the requests to the fourth, times that of the processors; both at most 1.

    Less if the run was in another queue or of another application.
    """
    numbers, attributes, _ = columns
    request, processors = numbers[REQUEST, row], width(numbers, row)
    ratio = request / job[0] if request < job[0] else job[0] / request
    of_processors = processors / job[1] if processors < job[1] else job[1] / processors
    weight: float = ratio * ratio * ratio * ratio * of_processors
    if attributes[QUEUE, row] != alike[0]:
        weight *= _OTHER_QUEUE
    if attributes[APPLICATION, row] != alike[1]:
        weight *= _OTHER_APPLICATION
    return weight


@compiled
def mean_seconds(numbers: Floats, first: int, stop: int) -> float:
    """The mean runtime of the rows ``first:stop``, each in whole seconds; 0 without rows."""
    if stop <= first:
        return 0.0
    first_seconds = np.floor(numbers[RUNTIME, first])
    seconds: float = numbers[TOTAL, stop - 1] - numbers[TOTAL, first] + first_seconds
    return seconds / (stop - first)
