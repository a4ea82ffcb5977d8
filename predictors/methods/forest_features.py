"""Computes the features of a job that the trees of a forest divide jobs by.

They are the context that ``attention`` describes user, job and cluster by, the time of the
submission, runtimes of the user's last runs, of runs like the job and of its application, and the
distribution that ``attention`` gives. Another set of features is another VERSION.
"""

import numpy as np

from predictors.compiled import compiled
from predictors.distribution import Evidence, bayes_estimate
from predictors.memory.columns import APPLICATION, UNKNOWN, Columns, Floats, JobQuery, RowWindow
from predictors.methods.attention_decision import Model, weigh
from predictors.methods.attention_features import (
    CONTEXT,
    KIND,
    LIKE_RANK,
    OWN,
    UNLIKE,
    Singles,
    Support,
)
from predictors.methods.attention_support import gather

VERSION = 1
"""Of the features: forests that were learned with others are refused."""

FEATURES = (
    *CONTEXT,
    "memory",
    "hour of the day",
    "day of the week",
    "newest runtime of the user",
    "second newest runtime",
    *(f"{each} of the user's last runtimes" for each in ("median", "least", "most")),
    "newest runtime of a like run",
    *(f"{each} of the last like runtimes" for each in ("median", "least", "most")),
    *(f"{each} of the application's last runtimes" for each in ("median", "least", "most")),
    *(f"attention's quantile of {level}" for level in (0.1, 0.25, 0.5, 0.75, 0.9)),
    "attention's estimate at price 0",
    "attention's estimate at price 1",
)
"""The features in order. Times are the logarithm of 1 + seconds; -1 where there is no such run."""

LAST = 5
"""Number of the user's last runs whose runtimes are features."""

ALIKE = 10
"""Number of runs of the application, and of those like the job, whose runtimes are features."""

NO_RUN = -1.0
_DAY, _HOUR = 86_400.0, 3_600.0
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


@compiled
def describe_job(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    window: RowWindow,
    history: int,
    job: JobQuery,
    model: Model,
    work: tuple[Support, Singles],
) -> Evidence:
    """Compute the features of a job, and return the distribution of its runtime by attention.

    Args:
        history: number of the cluster's last runs that are searched.
        work: support points and features of the job, both overwritten.

    Returns:
        The distribution, empty where no run counts for the job; then there are no features.
    """
    support, features = work
    count, own, others, mean = gather(columns, window, history, job, support)
    if count == 1:
        return Evidence(np.empty(0), np.empty(0), np.empty(0, np.int64), 0, 0, mean)
    values, weights, rows = weigh(columns, window, history, job, (support, count), model)
    place = len(support.context)
    for index in range(place):
        features[index] = support.context[index]
    features[place] = np.log1p(job.memory) if job.memory > 0 else 0.0
    features[place + 1] = job.submit % _DAY / _HOUR
    features[place + 2] = job.submit // _DAY % 7
    place = describe_runs(columns, (support, count), job, features, place + 3)
    place = describe_quantiles(values, weights, features, place)
    request, points = job.request, len(values)
    features[place] = np.log1p(bayes_estimate(values, weights, points, request, 0.0))
    features[place + 1] = np.log1p(bayes_estimate(values, weights, points, request, mean))
    return Evidence(values, weights, rows, own, others, mean)


@compiled
def describe_runs(
    columns: Columns, points: tuple[Support, int], job: JobQuery, features: Singles, place: int
) -> int:
    """Compute features of the user's runs, from ``place`` on; return the place after them."""
    support, count = points
    applications, runs = columns[1][APPLICATION], support.runs
    last, like, same = np.empty(LAST), np.empty(ALIKE), np.empty(ALIKE)
    own = alike = named = 0
    for index in range(count - 1):  # the last support point is the request
        if runs[KIND, index] != OWN:
            continue
        seconds = np.log1p(support.values[index])
        if own < LAST:
            last[own] = seconds
            own += 1
        if runs[LIKE_RANK, index] < UNLIKE and alike < ALIKE:
            like[alike] = seconds
            alike += 1
        is_named = job.application != UNKNOWN
        if is_named and applications[support.rows[index]] == job.application and named < ALIKE:
            same[named] = seconds
            named += 1
    features[place] = last[0] if own > 0 else NO_RUN
    features[place + 1] = last[1] if own > 1 else NO_RUN
    place = describe_range(last, own, features, place + 2)
    features[place] = like[0] if alike > 0 else NO_RUN
    place = describe_range(like, alike, features, place + 1)
    return describe_range(same, named, features, place)


@compiled
def describe_range(values: Floats, count: int, features: Singles, place: int) -> int:
    """Write median, least and most of the first ``count`` values; return the place after them."""
    features[place] = features[place + 1] = features[place + 2] = NO_RUN
    if count > 0:
        ordered = np.sort(values[:count])
        features[place] = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
        features[place + 1] = ordered[0]
        features[place + 2] = ordered[count - 1]
    return place + 3


@compiled
def describe_quantiles(values: Floats, weights: Floats, features: Singles, place: int) -> int:
    """Write quantiles of a distribution, from ``place`` on; return the place after them."""
    reached, point = weights[0], 0
    for level in _LEVELS:
        while reached < level and point < len(values) - 1:
            point += 1
            reached += weights[point]
        features[place] = np.log1p(values[point])
        place += 1
    return place
