"""Chooses the support points of a job: runs and values that its runtime may be like."""

import numpy as np

from predictors.compiled import compiled
from predictors.distribution import NO_ROW
from predictors.memory.columns import (
    APPLICATION,
    GROUP,
    PREVIOUS,
    REQUEST,
    UNKNOWN,
    USER,
    Columns,
    JobQuery,
    RowIds,
    RowWindow,
    is_known,
    width,
)
from predictors.memory.last_runs import last_runs, unit_of
from predictors.methods.attention_features import (
    CLUSTER,
    CONTEXT,
    FEATURES,
    OTHER,
    OWN,
    RUN_NUMBERS,
    UNLIKE,
    Support,
    count_neighbours,
    describe,
    describe_cluster,
    describe_like,
    describe_request,
    describe_user,
    note_run,
    note_scaled,
)
from predictors.methods.kernel import ended_rows

_FEATURES, _CONTEXT = len(FEATURES), len(CONTEXT)

SUPPORT = 88
"""Most support points of a job: 40 + 12 + 8 runs, 24 of them twice, and the request. For a user
with few runs: 15 of the user and 24 of others, each twice at most."""

RECENT = 40
"""Number of the user's last runs that are support points in any case."""

LIKE = 12
"""Number of older runs with the job's request, processors and application."""

SAME_APPLICATION = 8
"""Number of other older runs with the job's application."""

SCALED = 24
"""Number of runs with another request that are support points a second time, scaled."""

SEARCHED = 192
"""Number of the user's last runs that are searched."""

NEWCOMER = 16
"""Users with fewer runs get runs of other users too: recent ones, those of the same group, and
those with the same request."""

OF_OTHERS = (256, 16)
"""Number of the cluster's last runs that are searched for them, and most of one user."""

FRESH, SAME_GROUP, SAME_REQUEST = 10, 8, 6


@compiled
def no_support() -> Support:
    """Return arrays for the support points of one job."""
    return Support(
        np.empty((_FEATURES, SUPPORT), np.float32),
        np.empty(SUPPORT),
        np.empty(SUPPORT, np.int64),
        np.empty(_CONTEXT, np.float32),
        np.empty((RUN_NUMBERS, SUPPORT)),
    )


@compiled
def gather(
    columns: Columns, window: RowWindow, history: int, job: JobQuery, support: Support
) -> tuple[int, int, int, float]:
    """Fill in the support points of a job; the last of them is its request.

    Args:
        history: number of the cluster's last runs that are searched.

    Returns:
        The number of support points, the numbers of runs of the user and of others, and the unit
        of the price in seconds.
    """
    numbers, newest = columns[0], window.newest
    rows = ended_rows(numbers, window, history)
    context = support.context
    context[:] = 0
    while newest >= rows[1]:
        newest = columns[1][PREVIOUS, newest]
    count, own = admit_own(columns, window, newest, job, support)
    others = 0
    if own < NEWCOMER:
        searched = last_runs(columns, window, rows, OF_OTHERS)
        count, others = admit_others(columns, searched, job, count, support)
    describe_user(support.runs, own, job, context)
    if count > 0:
        describe(columns, count, job, support)
    count = admit_request(support, count, own, job.request)
    if count > 1:
        count_neighbours(support, count)
    unit = unit_of(columns, window, rows)
    describe_cluster(numbers, last_runs(columns, window, rows, CLUSTER), job, unit, context)
    return count, own, others, unit


@compiled
def admit_own(
    columns: Columns, window: RowWindow, row: int, job: JobQuery, support: Support
) -> tuple[int, int]:
    """Admit runs of the user, linked backwards from a row.

    Return the numbers of support points and of runs searched.
    """
    numbers, attributes, _ = columns
    scaled, likes = np.empty(SCALED, np.int64), np.empty(LIKE, np.int64)
    count = own = like = alike = again = 0
    while own < SEARCHED and is_known(columns, window, row):
        same = attributes[APPLICATION, row] == job.application
        request = numbers[REQUEST, row]
        is_like = same and request == job.request and width(numbers, row) == job.processors
        same = same and job.application != UNKNOWN and not is_like
        if own < RECENT or (is_like and like < LIKE) or (same and alike < SAME_APPLICATION):
            note_run(columns, (row, count), (own, like if is_like else UNLIKE), OWN, support)
            if request != job.request and again < SCALED:
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
        note_scaled(scaled[index], count, support)
        count += 1
    describe_like(support.runs, likes, min(like, LIKE), support.context)
    support.context[0] = np.log1p(own) / 3
    support.context[1] = np.log1p(like) / 2
    return count, own


@compiled
def admit_others(
    columns: Columns, rows: RowIds, job: JobQuery, count: int, support: Support
) -> tuple[int, int]:
    """Admit runs of other users; return the numbers of support points and of such runs."""
    numbers, attributes, _ = columns
    fresh = grouped = requests = others = 0
    before = UNKNOWN - 1
    for place in range(len(rows)):
        row = rows[place]
        user, group = attributes[USER, row], attributes[GROUP, row]
        if user == job.user:
            continue
        same_group = group >= 0 and group == job.group
        same_request = numbers[REQUEST, row] == job.request
        other = user != before
        if not (
            (other and (fresh < FRESH or (same_request and requests < SAME_REQUEST)))
            or (same_group and grouped < SAME_GROUP)
        ):
            continue
        before = user
        fresh += 1
        grouped += same_group
        requests += same_request
        note_run(columns, (row, count), (place + 1, UNLIKE), OTHER, support)
        count += 1
        others += 1
        if not same_request:
            note_scaled(count - 1, count, support)
            count += 1
    return count, others


@compiled
def admit_request(support: Support, count: int, own: int, request: float) -> int:
    """Admit the request; return the number of support points."""
    describe_request(support.features[:, count], own)
    support.values[count] = request
    support.rows[count] = NO_ROW
    return count + 1
