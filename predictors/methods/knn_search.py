"""Machine code that finds the nearest of the most recent runs."""

# ruff: noqa: PLR1730 - min and max answer NaN for NaN; comparisons leave it out

import numpy as np

from predictors.compiled import compiled
from predictors.memory import calibration
from predictors.memory.calibration import Bins
from predictors.memory.columns import (
    ANY,
    APPLICATION,
    BLOCK,
    END,
    FEATURES,
    GROUP,
    LEVEL,
    MEMORY,
    PREVIOUS,
    PROCESSORS,
    QUEUE,
    REQUEST,
    RUNTIME,
    SPREAD,
    SUBMIT,
    USER,
    Columns,
    Features,
    Floats,
    Ids,
    Window,
    admit,
    rows_until,
)
from predictors.uncertainty import NO_PRICE, Bounds, Wanted, bounds, rank_row

Metric = tuple[bool, Features]
"""Whether differences count as they are or squared, and the weight of each feature."""

Job = tuple[tuple[int, int, int, int], Features, Features, Metric]
"""What neighbours are sought for: ids that must match, features, one over their ranges, and how
they are compared."""

Kept = tuple[Floats, Floats]
"""Distances and rows of the nearest so far, in order."""

Sizes = tuple[int, int, int]
"""N, K, and the number of jobs over which the features are scaled."""


About = tuple[Columns, Window, Sizes, tuple[int, int, int, int], tuple[Features, Metric]]
"""The arguments of ``nearest``."""


@compiled
def inverse_ranges(
    numbers: Floats, bounds: Floats, first: int, stop: int
) -> tuple[float, float, float]:
    """One over the range of each feature among the rows ``first:stop``; 0 if the range is 0."""
    inverse = np.zeros(FEATURES)
    for feature in range(FEATURES):
        low, high = np.inf, -np.inf
        row = first
        while row < stop:
            if row % BLOCK == 0 and row + BLOCK <= stop:
                low = min(low, bounds[feature, row // BLOCK])
                high = max(high, bounds[FEATURES + feature, row // BLOCK])
                row += BLOCK
                continue
            value = numbers[feature, row]
            if value < low:
                low = value
            if value > high:
                high = value
            row += 1
        if high > low:
            inverse[feature] = 1.0 / (high - low)
    return inverse[0], inverse[1], inverse[2]


@compiled
def matches(attributes: Ids, row: int, ids: tuple[int, int, int, int]) -> bool:
    """Whether a row has every attribute that the template asks for."""
    return (
        (ids[0] == ANY or attributes[0, row] == ids[0])
        and (ids[1] == ANY or attributes[1, row] == ids[1])
        and (ids[2] == ANY or attributes[2, row] == ids[2])
        and (ids[3] == ANY or attributes[3, row] == ids[3])
    )


@compiled
def distance(
    numbers: Floats,
    row: int,
    features: Features,
    inverse: Features,
    metric: Metric,
) -> float:
    """How far a job is from a row: each feature adds at most its weight, and that where unknown.

    The sum of the scaled differences (Manhattan) or of their squares, which puts the rows in the
    order of the Euclidean distance without taking its root.
    """
    manhattan, weights = metric
    total = 0.0
    for feature in range(FEATURES):
        apart = abs(numbers[feature, row] - features[feature]) * inverse[feature]
        if not manhattan:
            apart *= apart
        total += weights[feature] * apart if apart <= 1.0 else weights[feature]
    return total


@compiled
def admit_all(columns: Columns, rows: tuple[int, int], job: Job, kept: Kept) -> int:
    """Keep the nearest of the rows that match, and return their number."""
    first, stop = rows
    ids, features, inverse, metric = job
    distances, nearest_rows = kept
    numbers, attributes, _ = columns
    found = 0
    for row in range(stop - 1, first - 1, -1):
        if matches(attributes, row, ids):
            candidate = (distance(numbers, row, features, inverse, metric), float(row))
            found = admit(distances, nearest_rows, found, candidate)
    return found


@compiled
def admit_linked(columns: Columns, rows: tuple[int, int], job: Job, kept: Kept, newest: int) -> int:
    """Do as ``admit_all``, but visit only the linked rows of one user, whose last is ``newest``."""
    first, stop = rows
    ids, features, inverse, metric = job
    distances, nearest_rows = kept
    numbers, attributes, _ = columns
    found = 0
    row = newest
    while row >= first:
        if row < stop and matches(attributes, row, ids):
            candidate = (distance(numbers, row, features, inverse, metric), float(row))
            found = admit(distances, nearest_rows, found, candidate)
        row = attributes[PREVIOUS, row]
    return found


@compiled
def mean_and_deviation(runtimes: Floats, count: int) -> tuple[float, float]:
    """Mean and population standard deviation of the first ``count`` runtimes."""
    total = 0.0
    for index in range(count):
        total += runtimes[index]
    mean = total / count
    squares = 0.0
    for index in range(count):
        squares += (runtimes[index] - mean) ** 2
    return mean, np.sqrt(squares / count)


@compiled
def summarised(numbers: Floats, rows: Floats) -> tuple[int, float, float]:
    """The number of rows, and mean and deviation of their runtimes, which take their place."""
    if not len(rows):
        return 0, 0.0, 0.0
    for place in range(len(rows)):
        rows[place] = numbers[RUNTIME, int(rows[place])]
    mean, deviation = mean_and_deviation(rows, len(rows))
    return len(rows), mean, deviation


@compiled
def nearest(
    columns: Columns,
    window: Window,
    sizes: Sizes,
    ids: tuple[int, int, int, int],
    compared: tuple[Features, Metric],
) -> tuple[int, float, float]:
    """The number of neighbours of a job, and the mean and deviation of their runtimes.

    Args:
        columns: the jobs.
        window: first row, end of the rows, and the time by which a job must have ended.
        sizes: N, K, and the number of jobs over which the features are scaled.
        ids: attributes that must match; ANY where the template leaves one out.
        compared: processors, request and memory of the job, NaN where unknown, and how they are
            compared.
    """
    first, stop, time, newest = window
    stop = rows_until(columns[0][END], first, stop, time)
    rows = neighbours(columns, (first, stop, newest), sizes, ids, compared)
    return summarised(columns[0], rows)


@compiled
def certain(
    about: About, levels: tuple[Bins, int], asked: Wanted
) -> tuple[int, float, float, Bounds]:
    """What ``nearest`` answers, and ``bounds`` whose prediction is for a rate only.

    Args:
        about: the arguments of ``nearest``.
        levels: bins of the calibration, and how many rows tell how much is known of a user.
        asked: as ``bounds`` takes it.
    """
    columns, window, sizes, ids, compared = about
    first, stop, time, newest = window
    stop = rows_until(columns[0][END], first, stop, time)
    rows = neighbours(columns, (first, stop, newest), sizes, ids, compared)
    request = compared[0][REQUEST]
    values, _ = in_order(columns[0], rows, request)
    known = calibration.known_at(columns, window, levels[1])
    weights = np.ones(len(values))
    found = bounds(values, weights, (request, NO_PRICE), (levels[0], known), asked)
    count, mean, deviation = summarised(columns[0], rows)
    return count, mean, deviation, found


@compiled
def neighbours(
    columns: Columns,
    rows: tuple[int, int, int],
    sizes: Sizes,
    ids: tuple[int, int, int, int],
    compared: tuple[Features, Metric],
) -> Floats:
    """The rows of the neighbours of a job, the nearest first.

    Args:
        columns: the jobs.
        rows: the first that may be one, the end of those that had ended, and one from which those
            of the user are linked backwards.
        sizes: as ``nearest`` takes them.
        ids: as ``nearest`` takes them.
        compared: as ``nearest`` takes it.
    """
    first, stop, newest = rows
    history, most, scaling = sizes
    features, metric = compared
    inverse = inverse_ranges(columns[0], columns[2], max(first, stop - scaling), stop)
    kept = (np.empty(most), np.empty(most))
    searched = (max(first, stop - history), stop)
    job = (ids, features, inverse, metric)
    if ids[0] == ANY:
        found = admit_all(columns, searched, job, kept)
    else:
        found = admit_linked(columns, searched, job, kept, newest)
    return kept[1][:found]


@compiled
def distribution(
    columns: Columns,
    window: Window,
    sizes: Sizes,
    ids: tuple[int, int, int, int],
    compared: tuple[Features, Metric],
) -> tuple[Floats, Floats]:
    """The neighbours' runtimes in order, up to the job's request, and their rows.

    Takes what ``nearest`` takes.
    """
    first, stop, time, newest = window
    stop = rows_until(columns[0][END], first, stop, time)
    rows = neighbours(columns, (first, stop, newest), sizes, ids, compared)
    return in_order(columns[0], rows, compared[0][REQUEST])


@compiled
def in_order(numbers: Floats, rows: Floats, request: float) -> tuple[Floats, Floats]:
    """Runtimes of rows in ascending order, up to the request, with their rows."""
    values, sources = np.empty(len(rows)), np.empty(len(rows))
    for found in range(len(rows)):
        runtime = min(numbers[RUNTIME, int(rows[found])], request)
        admit(values, sources, found, (runtime, rows[found]))
    return values, sources


@compiled
def rank(
    columns: Columns,
    rows: tuple[int, int, int],
    history: int,
    sizes: Sizes,
    likeness: tuple[tuple[bool, bool, bool, bool], Metric],
) -> None:
    """Rank each of the rows among the neighbours that it had at its submission.

    Args:
        columns: the runs.
        rows: the first of all, and those to rank: from one on and before another.
        history: how many rows before a row are looked at.
        sizes: as ``nearest`` takes them.
        likeness: of which attributes the template consists, and how features are compared.
    """
    oldest, begin, end = rows
    template, metric = likeness
    numbers, attributes, _ = columns
    for row in range(begin, end):
        numbers[LEVEL, row] = numbers[SPREAD, row] = -1.0
        ids, is_known = wanted_of(attributes, row, template)
        if not is_known:
            continue
        first = max(oldest, row - history)
        stop = rows_until(numbers[END], first, row, numbers[SUBMIT, row])
        features = (numbers[PROCESSORS, row], numbers[REQUEST, row], numbers[MEMORY, row])
        before = (first, stop, attributes[PREVIOUS, row])
        found = neighbours(columns, before, sizes, ids, (features, metric))
        if len(found):
            values, _ = in_order(numbers, found, numbers[REQUEST, row])
            rank_row(numbers, row, values, np.ones(len(values)))


@compiled
def wanted_of(
    attributes: Ids, row: int, template: tuple[bool, bool, bool, bool]
) -> tuple[tuple[int, int, int, int], bool]:
    """The ids that the neighbours of a row must have, and whether the row has them all."""
    user = attributes[USER, row] if template[0] else ANY
    group = attributes[GROUP, row] if template[1] else ANY
    queue = attributes[QUEUE, row] if template[2] else ANY
    application = attributes[APPLICATION, row] if template[3] else ANY
    is_known = (
        (not template[0] or user >= 0)
        and (not template[1] or group >= 0)
        and (not template[2] or queue >= 0)
        and (not template[3] or application >= 0)
    )
    return (user, group, queue, application), is_known
