"""Machine code that chooses the atoms: the runs and values that a job's runtime may be like."""

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import (
    APPLICATION,
    END,
    GROUP,
    PREVIOUS,
    REQUEST,
    USER,
    Columns,
    rows_until,
    width,
)
from predictors.methods.attention_features import (
    CLUSTER,
    OTHER,
    OWN,
    UNKNOWN,
    UNLIKE,
    Atoms,
    Names,
    Question,
    count_neighbours,
    describe,
    describe_cluster,
    describe_habits,
    describe_like,
    describe_request,
    recall,
    recall_scaled,
)
from predictors.methods.least_cost_search import SCALING, mean_seconds

ATOMS = 88
"""No job has more: it may have 40 + 12 + 8 runs, 24 of them twice, and the request; a newcomer's
has 15 runs of hers and 24 of others, each of them twice at most."""

RECENT = 40
"""How many of the user's last runs are atoms, whatever they are."""

LIKE = 12
"""How many older runs are atoms because they have the job's request, processors, application."""

SAME_APPLICATION = 8
"""How many other older runs are atoms because they have its application."""

SCALED = 24
"""How many of these are atoms a second time, scaled, because their request was another one."""

LOOKED_AT = 192
"""How many of the user's last runs are looked at for all these."""

NEWCOMER = 16
"""A user with fewer runs is told apart by those of others, too: the last, each of another user
than the one before, of the same group, and with the same request."""

LOOKED_AT_OF_OTHERS = 256
FRESH, SAME_GROUP, SAME_REQUEST = 10, 8, 6


@compiled
def gather(
    columns: Columns,
    window: tuple[int, int, float, int],
    history: int,
    job: tuple[Names, Question],
    atoms: Atoms,
) -> tuple[int, int, int, float]:
    """Fill in the atoms of a job; the last of them is its request.

    Args:
        columns: the runs.
        window: first row, end of the rows, the time by which a run must have ended, and the last
            row of the user.
        history: among how many of the cluster's last runs they are sought.
        job: its ids and numbers.
        atoms: arrays for ATOMS of them, which are overwritten.

    Returns:
        How many atoms there are, how many runs of the user and of others are among them, and the
        mean runtime of the cluster's last SCALING runs.
    """
    first, stop, time, newest = window
    numbers = columns[0]
    stop = rows_until(numbers[END], first, stop, time)
    first = max(first, stop - history)
    context = atoms[3]
    context[:] = 0
    while newest >= stop:
        newest = columns[1][PREVIOUS, newest]
    count, own = admit_own(columns, (first, newest), job, atoms)
    others = 0
    if own < NEWCOMER:
        count, others = admit_others(columns, (first, stop), job, (count, own), atoms)
    describe_habits(atoms[4], own, job[1], context)
    if count > 0:
        describe(columns, count, job, atoms)
    count = admit_request(atoms, count, own, job[1][0])
    if count > 1:
        count_neighbours(atoms, count)
    scale = mean_seconds(numbers, max(first, stop - SCALING), stop)
    describe_cluster(numbers, (max(first, stop - CLUSTER), stop), job[1], scale, context)
    return count, own, others, scale


@compiled
def admit_own(
    columns: Columns, rows: tuple[int, int], job: tuple[Names, Question], atoms: Atoms
) -> tuple[int, int]:
    """The user's runs: how many atoms they are, and how many runs were looked at."""
    first, row = rows
    names, question = job
    numbers, attributes, _ = columns
    scaled, likes = np.empty(SCALED, np.int64), np.empty(LIKE, np.int64)
    count = own = like = alike = again = 0
    while row >= first and own < LOOKED_AT:
        same = attributes[APPLICATION, row] == names[APPLICATION]
        request = numbers[REQUEST, row]
        is_like = same and request == question[0] and width(numbers, row) == question[1]
        same = same and names[APPLICATION] != UNKNOWN and not is_like
        if own < RECENT or (is_like and like < LIKE) or (same and alike < SAME_APPLICATION):
            recall(columns, (row, count), (own, like if is_like else UNLIKE), OWN, atoms)
            if request != question[0] and again < SCALED:
                scaled[again] = count
                again += 1
            if is_like and like < LIKE:
                likes[like] = count
            count += 1
        like += is_like
        alike += same
        own += 1
        row = attributes[PREVIOUS, row]
    for index in range(again):
        recall_scaled(scaled[index], count, atoms)
        count += 1
    describe_like(atoms[4], likes, min(like, LIKE), atoms[3])
    atoms[3][0] = np.log1p(own) / 3
    atoms[3][1] = np.log1p(like) / 2
    return count, own


@compiled
def admit_others(
    columns: Columns,
    rows: tuple[int, int],
    job: tuple[Names, Question],
    counts: tuple[int, int],
    atoms: Atoms,
) -> tuple[int, int]:
    """Runs of other users, for somebody with few: how many atoms there are then, and such runs."""
    first, stop = rows
    count = counts[0]
    names, question = job
    numbers, attributes, _ = columns
    fresh = grouped = asked = others = 0
    before = UNKNOWN - 1
    for row in range(stop - 1, max(first, stop - LOOKED_AT_OF_OTHERS) - 1, -1):
        user, group = attributes[USER, row], attributes[GROUP, row]
        if user == names[USER]:
            continue
        same_group = group >= 0 and group == names[GROUP]
        same_request = numbers[REQUEST, row] == question[0]
        other = user != before
        if not (
            (other and (fresh < FRESH or (same_request and asked < SAME_REQUEST)))
            or (same_group and grouped < SAME_GROUP)
        ):
            continue
        before = user
        fresh += 1
        grouped += same_group
        asked += same_request
        recall(columns, (row, count), (stop - row, UNLIKE), OTHER, atoms)
        count += 1
        others += 1
        if not same_request:
            recall_scaled(count - 1, count, atoms)
            count += 1
    return count, others


@compiled
def admit_request(atoms: Atoms, count: int, own: int, request: float) -> int:
    """The request as one more atom."""
    features, values, rows, _, _ = atoms
    describe_request(features[:, count], own)
    values[count] = request
    rows[count] = -1
    return count + 1
