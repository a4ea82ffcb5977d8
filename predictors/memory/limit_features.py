"""Features of a job that tell whether it will end at its limit, from the user's last runs.

The table holds a run that ended at its limit as one that ran for its request, any other run as
shorter.
"""

from typing import NamedTuple

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import (
    APPLICATION,
    END,
    PREVIOUS,
    REQUEST,
    RUNTIME,
    SUBMIT,
    Columns,
    Floats,
    rows_until,
    width,
)

HISTORY = 8_000
"""Number of the cluster's last runs among which a user's earlier runs are looked for."""

LAST_RUNS = 48
"""Number of a user's last runs that count."""

USUAL_SHARE = 0.08
"""Share of hits that a user without earlier runs is taken to have."""

CHAIN_SECONDS = 600.0
"""A like job submitted within this time after a hit goes on with it."""

FEATURES = (
    "constant",
    "hits of user",
    "hits with application",
    "hits with request",
    "hits with application and request",
    "hits with request and processors",
    "hits of like runs",
    "like runs as long as the request",
    "last run hit",
    "last like run hit",
    "longest run",
    "request",
    "processors",
    "runs",
    "roundness",
)
"""Shares of hits are logits of shares shrunk to less specific ones; lengths are logarithms."""

Job = tuple[int, int, float, float, float]
"""Ids of user and application, requested walltime, processors and submit time."""

Rows = tuple[int, int, int]
"""First row, end of the rows, and last row of the user."""

USER_RUNS, WITH_APPLICATION, WITH_REQUEST, WITH_BOTH, WITH_WIDTH = range(5)
"""Rows of the sums of runs (column 0) and hits (column 1), which fade with age."""

WEIGHT, HITS, LONG, LONGEST = range(4)
"""Sums over runs weighted by likeness, and the longest runtime."""

FADING, LIKE_FADING = 0.97, 0.95
"""Factors of a run's weight from one of the user's runs to the one before it."""

OTHER_APPLICATION = 0.37
"""Likeness of a run of another application."""

LONG_SHARE = 0.95
"""A run of this share of the job's request is as long as the request."""


class Past(NamedTuple):
    """A user's last runs before a job.

    Attributes:
        runs: number of runs.
        like: number of runs with the same application, request and processors.
        hits: of these, those that ended at the limit.
        links: of the hits, those that a like job followed at once.
        last: 1 if the last run was a hit, 0 if not, -1 without any.
        last_like: likewise of runs with the same request and processors.
        last_same: likewise of those with the same application, too.
    """

    runs: int
    like: int
    hits: int
    links: int
    last: float
    last_like: float
    last_same: float


@compiled
def features_at(columns: Columns, rows: Rows, job: Job) -> tuple[Floats, Past]:
    """Return the features of a job, and the user's runs behind them."""
    sums, likes = np.zeros((5, 2)), np.zeros(4)
    past = _scan(columns, rows_at(columns, rows, job), job, (sums, likes))
    return _features(job, sums, likes, past), past


@compiled
def rows_at(columns: Columns, rows: Rows, job: Job) -> Rows:
    """Return the rows among which the user's runs before the submission are looked for."""
    first, stop, newest = rows
    stop = rows_until(columns[0][END], first, stop, job[4])
    return max(first, stop - HISTORY), stop, newest


@compiled
def _scan(columns: Columns, rows: Rows, job: Job, sums: tuple[Floats, Floats]) -> Past:
    """Sum up the user's last runs."""
    numbers, attributes, _ = columns
    first, stop, row = rows
    _, application, request, processors, next_submit = job
    runs = like = hits = links = 0
    last, last_like, last_same = -1.0, -1.0, -1.0
    fading, like_fading = 1.0, 1.0
    while row >= first and runs < LAST_RUNS:
        if row < stop:
            hit = 1.0 if numbers[RUNTIME, row] >= numbers[REQUEST, row] else 0.0
            is_app = attributes[APPLICATION, row] == application
            is_request = numbers[REQUEST, row] == request
            is_shape = is_request and width(numbers, row) == processors
            _add_shares(sums[0], (fading, hit), (is_app, is_request, is_shape))
            likeness = like_fading * (1.0 if is_app else OTHER_APPLICATION)
            _add_likeness(sums[1], numbers, row, (likeness, request, processors))
            last = hit if runs == 0 else last
            if is_shape:
                last_like = hit if last_like < 0 else last_like
            if is_shape and is_app:
                last_same = hit if like == 0 else last_same
                like += 1
                hits += int(hit)
                gap = next_submit - numbers[END, row]
                links += hit > 0 and 0 <= gap <= CHAIN_SECONDS
                next_submit = numbers[SUBMIT, row]
            runs += 1
            fading, like_fading = fading * FADING, like_fading * LIKE_FADING
        row = attributes[PREVIOUS, row]
    return Past(runs, like, hits, links, last, last_like, last_same)


@compiled
def _add_shares(sums: Floats, run: tuple[float, float], same: tuple[bool, bool, bool]) -> None:
    """Add a run's weight and hit to the sums of all attributes that it shares with the job."""
    is_app, is_request, is_shape = same
    for row in range(5):
        is_counted = (
            row == USER_RUNS
            or (row == WITH_APPLICATION and is_app)
            or (row == WITH_REQUEST and is_request)
            or (row == WITH_BOTH and is_app and is_request)
            or (row == WITH_WIDTH and is_shape)
        )
        if is_counted:
            sums[row, 0] += run[0]
            sums[row, 1] += run[0] * run[1]


@compiled
def _add_likeness(
    likes: Floats, numbers: Floats, row: int, job: tuple[float, float, float]
) -> None:
    """Add a run, weighted by how near its request and processors are to those of the job."""
    likeness, request, processors = job
    limit, cores = numbers[REQUEST, row], width(numbers, row)
    likeness *= min(limit, request) / max(limit, request)
    likeness *= np.sqrt(np.sqrt(min(cores, processors) / max(cores, processors)))
    runtime = numbers[RUNTIME, row]
    likes[WEIGHT] += likeness
    likes[HITS] += likeness if runtime >= limit else 0.0
    likes[LONG] += likeness if runtime >= LONG_SHARE * request else 0.0
    likes[LONGEST] = max(likes[LONGEST], runtime)


@compiled
def _features(job: Job, sums: Floats, likes: Floats, past: Past) -> Floats:
    """Return the features in the order of ``FEATURES``."""
    request, features = job[2], np.ones(len(FEATURES))
    user = _shrunk(sums[USER_RUNS], 3.0, USUAL_SHARE)
    by_app = _shrunk(sums[WITH_APPLICATION], 2.0, user)
    by_request = _shrunk(sums[WITH_REQUEST], 2.0, user)
    features[1], features[2], features[3] = logit(user), logit(by_app), logit(by_request)
    features[4] = logit(_shrunk(sums[WITH_BOTH], 1.5, (by_app + by_request) / 2))
    features[5] = logit(_shrunk(sums[WITH_WIDTH], 1.5, by_request))
    features[6] = (likes[HITS] + 0.3 * user) / (likes[WEIGHT] + 0.3)
    features[7] = logit((likes[LONG] + 0.3 * user) / (likes[WEIGHT] + 0.3))
    features[8], features[9] = past.last, past.last_like
    features[10] = max(-6.0, np.log(likes[LONGEST] / request + 1e-4)) if past.runs else 0.0
    features[11], features[12] = np.log(request) - 9.0, np.log(job[3])
    features[13], features[14] = np.log(1.0 + past.runs), roundness(request)
    return features


@compiled
def _shrunk(sums: Floats, weight: float, prior: float) -> float:
    """Return a share of hits, shrunk to a prior that counts for ``weight`` runs."""
    share: float = (sums[1] + weight * prior) / (sums[0] + weight)
    return share


@compiled
def logit(share: float) -> float:
    """Return the logit of a share, which is taken to lie within [0.001, 0.999]."""
    inner = min(1.0 - 1e-3, max(1e-3, share))
    found: float = np.log(inner / (1.0 - inner))
    return found


@compiled
def roundness(request: float) -> float:
    """Return 6 for whole days, down to 1 for whole minutes and 0 for any other request."""
    for place, seconds in enumerate((86400.0, 21600.0, 3600.0, 1800.0, 600.0, 60.0)):
        if request % seconds == 0.0:
            return 6.0 - place
    return 0.0
