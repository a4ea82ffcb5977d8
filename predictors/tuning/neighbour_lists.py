"""Machine code that finds all neighbours that a job can have for any N, K and template.

A past job is among the K nearest of the N most recent jobs for some N if and only if fewer than K
more recent jobs are at least as near. Of thousands of past jobs a few hundred at most qualify.
Sorted by distance, they answer every N and K by a short walk. The order of neighbours does not
depend on N, because the features are scaled over a fixed number of jobs.
"""

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.memory.columns import ATTRIBUTES, END, Columns, Floats, Ids, rows_until
from predictors.methods.knn_search import distance, inverse_ranges, mean_and_deviation

TEMPLATES = 1 << ATTRIBUTES
"""Number of templates. Bit c of a template's number says that attribute column c must match."""

Lists = tuple[Ids, NDArray[np.int64], NDArray[np.int64]]
"""Three arrays: the rows by distance, list after list; the place where the list of each job and
template begins, and where the job's last list ends; and for each job the row before which jobs had
ended at its submission."""


@compiled
def shared_attributes(attributes: Ids, row: int, ids: Ids) -> int:
    """Return the largest template that a row matches."""
    mask = 0
    for column in range(ATTRIBUTES):
        if ids[column] >= 0 and ids[column] == attributes[column, row]:
            mask |= 1 << column
    return mask


@compiled
def insert_sorted(
    distances: Floats, rows: Ids, size: int, neighbours: int, candidate: tuple[float, int]
) -> int:
    """Insert ``candidate`` (distance, row) into a sorted list unless ``neighbours`` are as near."""
    apart, row = candidate
    if size >= neighbours and distances[neighbours - 1] <= apart:
        return size
    place = size
    while place > 0 and distances[place - 1] > apart:
        distances[place] = distances[place - 1]
        rows[place] = rows[place - 1]
        place -= 1
    distances[place] = apart
    rows[place] = row
    return size + 1


@compiled
def extended(rows: Ids, needed: int) -> Ids:
    """Return ``rows``, or a copy with room for ``needed`` rows."""
    if needed <= len(rows):
        return rows
    longer = np.empty(max(needed, 2 * len(rows)), dtype=np.int32)
    longer[: len(rows)] = rows
    return longer


@compiled
def build_lists(
    columns: Columns,
    stop: int,
    sizes: tuple[int, int, int],
    queries: tuple[Floats, Floats, Ids],
    usable: int,
) -> Lists:
    """Return the neighbour lists of every job and template.

    Args:
        columns: the past jobs, in order of their end.
        sizes: largest N, largest K, and number of jobs that the features are scaled over.
        queries: submit time, features and attributes of the jobs, each job a row.
        usable: attributes that templates may use, as a template.
    """
    numbers, attributes, bounds = columns
    history, neighbours, scaling = sizes
    times, features, ids = queries
    rows = np.empty(len(times) * neighbours, dtype=np.int32)
    begins = np.empty((len(times), TEMPLATES + 1), dtype=np.int64)
    stops = np.empty(len(times), dtype=np.int64)
    distances = np.empty((TEMPLATES, history + 1))
    nearby = np.empty((TEMPLATES, history + 1), dtype=np.int32)
    size = np.empty(TEMPLATES, dtype=np.int64)
    used = 0
    for job in range(len(times)):
        ended = rows_until(numbers[END], 0, stop, times[job])
        stops[job] = ended
        inverse = inverse_ranges(numbers, bounds, max(0, ended - scaling), ended)
        feature = (features[job, 0], features[job, 1], features[job, 2])
        size[:] = 0
        for row in range(ended - 1, max(0, ended - history) - 1, -1):
            candidate = (distance(numbers, row, feature, inverse), row)
            shared = shared_attributes(attributes, row, ids[job]) & usable
            template = shared
            while True:
                size[template] = insert_sorted(
                    distances[template], nearby[template], size[template], neighbours, candidate
                )
                if template == 0:
                    break
                template = (template - 1) & shared
        rows = extended(rows, used + size.sum())
        for template in range(TEMPLATES):
            begins[job, template] = used
            rows[used : used + size[template]] = nearby[template, : size[template]]
            used += size[template]
        begins[job, TEMPLATES] = used
    return rows[:used].copy(), begins, stops


@compiled
def statistics(
    lists: Lists, runtimes: Floats, template: int, history: int, ladder: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return mean and deviation of the neighbours' runtimes, by K and by job.

    Args:
        lists: the answer of build_lists.
        template: number of the template, which says what attributes must match.
        history: N.
        ladder: the values of K, increasing.

    The mean of a job without neighbours is infinite, so that the request caps it.
    """
    rows, begins, stops = lists
    means = np.full((len(ladder), len(stops)), np.inf)
    deviations = np.zeros((len(ladder), len(stops)))
    chosen = np.empty(ladder[-1])
    for job in range(len(stops)):
        oldest = stops[job] - history
        found = 0
        for index in range(begins[job, template], begins[job, template + 1]):
            row = rows[index]
            if row >= oldest:
                chosen[found] = runtimes[row]
                found += 1
                if found == ladder[-1]:
                    break
        for step in range(len(ladder)):
            count = min(found, ladder[step])
            if count > 0:
                mean, deviation = mean_and_deviation(chosen, count)
                means[step, job] = mean
                deviations[step, job] = deviation
                if ladder[step] >= found:
                    means[step:, job] = mean
                    deviations[step:, job] = deviation
                    break
    return means, deviations
