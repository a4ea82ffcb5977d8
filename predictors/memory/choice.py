"""Sums the costs of candidates by user and for the cluster, and chooses one: see docs/auto.md.

The candidates of ``auto`` are estimates that are taken from distributions of past runs. The cost
of an estimate p of a run of r seconds is ``|p - r|``, plus the price if p < r. Each ended run gets
the cost of the first candidate, and how much more each of the others would have cost, from what was
predicted for it at its submission. These numbers are summed over the last ``LONGEST_WINDOW`` runs,
for each user and for the cluster.

- A run of a burst of like jobs counts ``1 / sqrt(k)`` if it is the k-th of them: they say the same.
- A user counts in the sums of the cluster up to ``MOST_OF_USER`` runs.
- A difference counts up to ``MOST_MEANS`` mean runtimes, so that no single run decides.
- Runs of users without earlier runs have sums of their own.

Sums are whole numbers, so that they do not depend on where a window began to slide. Like PIT values
they are no state of their own: they follow from the runs in the table.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled, compiled_for_threads
from predictors.memory.columns import (
    APPLICATION,
    COST,
    FAMILIARITY,
    FIRST,
    PREVIOUS,
    PROCESSORS,
    REQUEST,
    SUBMIT,
    USER,
    WEIGHT,
    Columns,
    Floats,
)
from predictors.memory.histograms import RowSpan

MOST_MEANS = 20.0
"""Largest difference of two costs that counts, in mean runtimes of the cluster."""

MOST_OF_USER = 400
"""Largest weight of one user in the sums of the cluster, in runs."""

BURST_SECONDS = 600.0
"""Like jobs of a user that are submitted within this time are one burst."""

BURST_RUNS = 256
"""Number of a user's earlier runs among which those of a burst are looked for."""

SHRINKAGE = 100.0
"""Weight of the cluster's sums beside those of a user, and of the prior beside those of the
cluster, in runs."""

STRANGERS_ENOUGH = 100.0
"""Fewest runs of users without earlier runs, in weight, that decide how such users are answered."""

DIFFERENCES = 5
"""Number of candidates beside the first that a table has costs of."""

_RUNS, _SECONDS = 1_024.0, 16.0
"""Units of sums: parts of a run, and parts of a second."""

_FIELDS = 2 + DIFFERENCES
_MOST = int(MOST_OF_USER * _RUNS)

Sums = NDArray[np.int64]
"""By place: weight of the runs, cost of the first candidate, and differences of the others."""

KNOWN, STRANGERS = 0, 1
"""Rows of the sums of a cluster: runs of users with earlier runs, and of those without."""


class CostSums(NamedTuple):
    """Sums of costs over the last runs of a table.

    Attributes:
        cluster: of known users, each up to ``MOST_OF_USER`` runs, and of strangers.
    """

    users: Sums
    cluster: Sums


def no_sums(users: int = 1) -> CostSums:
    """Return empty sums with room for a number of users."""
    return CostSums(np.zeros((users, _FIELDS), np.int64), np.zeros((2, _FIELDS), np.int64))


def with_room(sums: CostSums, users: int) -> CostSums:
    """Return the sums with room for ids of users below ``users``."""
    if users <= len(sums.users):
        return sums
    longer = no_sums(users)
    longer.users[: len(sums.users)] = sums.users
    return longer._replace(cluster=sums.cluster)


Costs = tuple[float, float, float, float, float, float]
"""Costs of the first candidate of a distribution and of the others, in seconds."""


@compiled
def write_costs(numbers: Floats, row: int, costs: Costs, most: float) -> None:
    """Write the cost of the first candidate for a run, and the differences of the others.

    Args:
        costs: of the first candidate and of the others, in seconds.
        most: largest difference that counts, in seconds.
    """
    numbers[COST, row] = costs[0]
    for place in range(DIFFERENCES):
        difference = costs[1 + place] - costs[0]
        numbers[FIRST + place, row] = min(most, max(-most, difference))


@compiled_for_threads
def note_weights(columns: Columns, rows: tuple[int, int, int], history: int) -> None:
    """Note the weight of each of the rows: 1 / sqrt(k) for the k-th run of a burst.

    Args:
        rows: first row of all; begin and end of the rows to note.
        history: number of rows before a row that are looked at.
    """
    oldest, begin, end = rows
    for row in range(begin, end):
        before = burst_runs(columns, row, max(oldest, row - history))
        columns[0][WEIGHT, row] = 1.0 / sqrt(1.0 + before)


@compiled
def burst_runs(columns: Columns, row: int, first: int) -> int:
    """Return the number of earlier runs, from the row ``first`` on, in the burst of a run."""
    numbers, attributes, _ = columns
    found = looked = 0
    if attributes[USER, row] < 0:
        return 0
    other = attributes[PREVIOUS, row]
    while other >= first and looked < BURST_RUNS:
        is_like = (
            abs(numbers[SUBMIT, other] - numbers[SUBMIT, row]) <= BURST_SECONDS
            and attributes[APPLICATION, other] == attributes[APPLICATION, row]
            and numbers[REQUEST, other] == numbers[REQUEST, row]
        )
        widths = numbers[PROCESSORS, other], numbers[PROCESSORS, row]
        is_same_width = widths[0] == widths[1] or (np.isnan(widths[0]) and np.isnan(widths[1]))
        found += is_like and is_same_width
        looked += 1
        other = attributes[PREVIOUS, other]
    return found


@compiled_for_threads
def slide_costs(
    users: Sums, cluster: Sums, columns: Columns, before: RowSpan, after: RowSpan
) -> None:
    """Sum the rows ``after`` in place of the rows ``before``; both sums are updated."""
    first, stop = before
    begin, end = after
    if not 0 <= first <= begin <= stop <= end or first == stop:
        first = stop = begin
        users[:] = 0
        cluster[:] = 0
    for row in range(first, begin):
        _count(users, cluster, columns, row, -1)
    for row in range(stop, end):
        _count(users, cluster, columns, row, 1)


@compiled
def _count(users: Sums, cluster: Sums, columns: Columns, row: int, change: int) -> None:
    """Add a row to the sums, or take it out; a run without costs is not counted."""
    numbers, attributes, _ = columns
    if np.isnan(numbers[COST, row]):
        return
    if numbers[FAMILIARITY, row] == 0.0:
        _add(cluster[STRANGERS], numbers, row, change)
        return
    user = users[attributes[USER, row]]
    _add_bounded(cluster[KNOWN], user, -1)
    _add(user, numbers, row, change)
    _add_bounded(cluster[KNOWN], user, 1)


@compiled
def _add(sums: Sums, numbers: Floats, row: int, change: int) -> None:
    """Add a run to sums, or take it out."""
    weight = numbers[WEIGHT, row]
    sums[0] += change * int(np.rint(weight * _RUNS))
    for field in range(1, _FIELDS):
        sums[field] += change * int(np.rint(weight * numbers[WEIGHT + field, row] * _SECONDS))


@compiled
def _add_bounded(cluster: Sums, user: Sums, change: int) -> None:
    """Add the sums of a user to those of the cluster, or take them out, up to MOST_OF_USER runs."""
    share = 1.0 if user[0] <= _MOST else _MOST / user[0]
    for field in range(_FIELDS):
        cluster[field] += change * int(np.rint(user[field] * share))


Gains = tuple[float, float, float, float, float]
"""Differences of cost of the other candidates, in shares of the cost of the first."""

NO_GAINS: Gains = (0.0, 0.0, 0.0, 0.0, 0.0)


PRIOR: Gains = (0.05, 0.1, 0.3, 0.0, 0.0)
"""Differences of cost that are assumed before any run has ended: a candidate with more weight on
the request answers only where it has cost less."""


@compiled
def gains_of_user(user: Sums, cluster: Sums) -> Gains:
    """Return the differences of a user, shrunk to those of the cluster: equations 3 and 4."""
    gains = np.zeros(DIFFERENCES)
    for place in range(DIFFERENCES):
        gains[place] = _shrunk(user, place, _shrunk(cluster, place, PRIOR[place]))
    return gains[0], gains[1], gains[2], gains[3], gains[4]


@compiled
def _shrunk(sums: Sums, place: int, expected: float) -> float:
    """Return the difference of a candidate by sums, shrunk to the one that was expected."""
    if sums[1] <= 0:
        return expected
    runs = sums[0] / _RUNS
    found: float = (runs * sums[2 + place] / sums[1] + SHRINKAGE * expected) / (runs + SHRINKAGE)
    return found


@compiled
def gains_of_strangers(cluster: Sums) -> Gains:
    """Return the differences for users without earlier runs; 0 on too few such runs."""
    if cluster[0] / _RUNS < STRANGERS_ENOUGH or cluster[1] <= 0:
        return NO_GAINS
    return (
        cluster[2] / cluster[1],
        cluster[3] / cluster[1],
        cluster[4] / cluster[1],
        cluster[5] / cluster[1],
        cluster[6] / cluster[1],
    )
