"""Weighs past runs by a handcrafted kernel: equation 1 of docs/attention.md.

``least-cost`` predicts by this kernel alone, ``attention`` gives it a share of all weight.
"""

import numpy as np

from predictors.answers import Bounds, bounds_of, score_row
from predictors.candidates import Wanted
from predictors.compiled import compiled, compiled_for_threads, of_same_types
from predictors.distribution import NO_ROW, Evidence
from predictors.memory.calibration import Calibrated, counts_at
from predictors.memory.columns import (
    APPLICATION,
    END,
    GROUP,
    MEMORY,
    NONCONFORMITY,
    NONE_KEPT,
    PIT,
    PREVIOUS,
    QUEUE,
    REQUEST,
    RUNTIME,
    SUBMIT,
    USER,
    Columns,
    Floats,
    JobQuery,
    RowIds,
    RowWindow,
    Running,
    is_known,
    rows_until,
    usage,
    width,
)
from predictors.memory.fact_rows import JobFacts
from predictors.memory.last_runs import last_runs, unit_of

OTHERS = (16, 4)
"""Number of the cluster's last runs that stand for all users, and most of one user; with fewer runs
in all none are used."""

_AGEING = 0.96
_OTHER_QUEUE = 0.75
_OTHER_APPLICATION = 0.25
_WEIGHT_OF_OTHERS = 0.1


@compiled
def kernel(columns: Columns, row: int, job: JobQuery) -> float:
    """Return the weight of a run, but for its age."""
    numbers, attributes, _ = columns
    request, processors = numbers[REQUEST, row], width(numbers, row)
    ratio = request / job.request if request < job.request else job.request / request
    of_processors = min(processors, job.processors) / max(processors, job.processors)
    weight: float = ratio * ratio * ratio * ratio * of_processors
    if attributes[QUEUE, row] != job.queue:
        weight *= _OTHER_QUEUE
    if attributes[APPLICATION, row] != job.application:
        weight *= _OTHER_APPLICATION
    return weight


@compiled
def weigh_runs(
    columns: Columns, window: RowWindow, stop: int, job: JobQuery, most: int
) -> tuple[RowIds, Floats]:
    """Return the rows of the user's last runs, newest first, and their weights.

    Args:
        stop: end of the rows that had ended in time.
    """
    row = window.newest
    found, weights = np.empty(most, np.int64), np.empty(most)
    own, age = 0, 1.0
    while is_known(columns, window, row) and own < most:
        if row < stop:
            found[own], weights[own] = row, age * kernel(columns, row, job)
            age *= _AGEING
            own += 1
        row = columns[1][PREVIOUS, row]
    return found[:own], weights[:own]


@compiled
def weigh(
    columns: Columns, window: RowWindow, job: JobQuery, settings: tuple[int, int]
) -> Evidence:
    """Return the distribution of a job's runtime by the kernel alone.

    Args:
        settings: most runs of the user, and number of the cluster's last runs to search.
    """
    rows_of_runs = ended_rows(columns[0], window, settings[1])
    values, weights, rows, own, others = support(columns, window, job, settings[0], rows_of_runs)
    unit = unit_of(columns, window, rows_of_runs)
    return Evidence(values, weights, rows, own, others, unit)


@compiled
def support(
    columns: Columns, window: RowWindow, job: JobQuery, most: int, searched: tuple[int, int]
) -> tuple[Floats, Floats, RowIds, int, int]:
    """Return the support points, as in an ``Evidence``.

    Args:
        most: number of runs of the user.
        searched: first and end of the rows that had ended in time and are searched.
    """
    numbers, (first, stop) = columns[0], searched
    runs, weights_of_runs = weigh_runs(columns, window, stop, job, most)
    latest = last_runs(columns, window, (first, stop), OTHERS)
    own, others = len(runs), len(latest) if stop - first >= OTHERS[0] else 0
    values, weights = np.empty(own + others), np.empty(own + others)
    rows = np.full(own + others, NO_ROW, np.int64)
    for index in range(own):
        values[index] = min(numbers[RUNTIME, runs[index]], job.request)
        weights[index], rows[index] = weights_of_runs[index], runs[index]
    for index in range(others):
        row = latest[others - 1 - index]
        values[own + index] = usage(numbers[RUNTIME, row], numbers[REQUEST, row]) * job.request
        weights[own + index] = _WEIGHT_OF_OTHERS / OTHERS[0]
    order = np.argsort(values, kind="mergesort")
    return values[order], weights[order], rows[order], own, others


distribution = of_same_types(weigh)
"""``weigh`` for calls from Python."""


@of_same_types
@compiled
def bounds(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    window: RowWindow,
    job: JobQuery,
    settings: tuple[int, int],
    wanted: Wanted,
    calibrated: Calibrated,
    running: Running,
    facts: JobFacts,
) -> Bounds:
    """Return the prediction by ``weigh``, which takes the first arguments."""
    found = weigh(columns, window, job, settings)
    counts = counts_at(columns, window, calibrated)
    return bounds_of(found, job, wanted, (counts, calibrated[2]), running, facts)


@compiled_for_threads
def score_rows(columns: Columns, rows: tuple[int, int, int], settings: tuple[int, int]) -> None:
    """Write PIT value and score of each of the rows, by what was predicted at its submission.

    Only the ``history`` rows before a row are looked at, so that what is written never depends on
    runs that the table may have dropped.

    Args:
        rows: first row of all; begin and end of the rows to write.
        settings: most runs of the user, and ``history``.
    """
    oldest, begin, end = rows
    numbers, attributes, _ = columns
    for row in range(begin, end):
        numbers[PIT, row] = numbers[NONCONFORMITY, row] = -1.0
        if attributes[USER, row] >= 0:
            window = window_of(columns, row, max(oldest, row - settings[1]))
            job, searched = job_of(columns, row), ended_rows(numbers, window, settings[1])
            found = support(columns, window, job, settings[0], searched)
            score_row(numbers, row, found[0], found[1])


@compiled
def job_of(columns: Columns, row: int) -> JobQuery:
    """Return a run as the job that it was."""
    numbers, attributes, _ = columns
    return JobQuery(
        int(np.int64(attributes[USER, row])),  # ids of 32 bits would compile all once more
        int(np.int64(attributes[GROUP, row])),
        int(np.int64(attributes[QUEUE, row])),
        int(np.int64(attributes[APPLICATION, row])),
        numbers[REQUEST, row],
        width(numbers, row),
        numbers[MEMORY, row],
        numbers[SUBMIT, row],
    )


@compiled
def window_of(columns: Columns, row: int, first: int) -> RowWindow:
    """Return the rows from ``first`` on that may count for a run at its submission."""
    newest = int(np.int64(columns[1][PREVIOUS, row]))
    return RowWindow(first, row, columns[0][SUBMIT, row], newest, NONE_KEPT)


@compiled
def ended_rows(numbers: Floats, window: RowWindow, history: int) -> tuple[int, int]:
    """Return first and end of the last ``history`` rows of a window that had ended in time."""
    stop = rows_until(numbers[END], window.first, window.stop, window.time)
    return max(window.first, stop - history), stop
