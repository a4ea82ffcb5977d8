"""Computes the features of a job's support points, and the context: inputs of the network.

A support point is one value that the runtime may take, in seconds, at most the request: what a past
run took, what a past run used of its request times the new request ("scaled"), or the request
itself. A feature says how the run behind a support point resembles the job. The meaning of the
weights depends on the set of features: another set is another VERSION. See docs/attention.md.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled, compiled_for_lanes
from predictors.memory.columns import (
    APPLICATION,
    END,
    GROUP,
    MEMORY,
    QUEUE,
    REQUEST,
    RUNTIME,
    SUBMIT,
    UNKNOWN,
    Columns,
    Floats,
    Ids,
    JobQuery,
    RowIds,
    usage,
    width,
)

VERSION = 1
"""Of the features: weights learned for others are refused."""

Singles = NDArray[np.float32]


class Support(NamedTuple):
    """Arrays for the support points of a job, and its context.

    Attributes:
        features: by feature and support point.
        rows: row of the run behind each support point; NO_ROW for the request.
        context: numbers about user, job and cluster.
        runs: numbers of the runs behind support points, by kind of number (RANK to RUN_MEMORY).
    """

    features: Singles
    values: Floats
    rows: RowIds
    context: Singles
    runs: Floats


FEATURES = (
    "own run",
    "other user of the same group",
    "same request",
    "distance of the requests",
    "difference of the requests",
    "same processors",
    "distance of the processors",
    "same application",
    "another application",
    "same queue",
    "another queue",
    "own like run",
    "time since its end",
    "time since its submission",
    "rank",
    "rank if it is like the job",
    "rank among like runs",
    "the user's last run",
    "it used its whole request",
    "it took less than a minute",
    "share of its request that it used",
    "share of the new request that the value is",
    "own run, submitted within a minute",
    "scaled",
    "run of another user",
    "the request",
    "the request, and nothing is known of the user",
    "same memory",
    "distance of the memory",
    "the user's last like run",
    "difference of the requests, same application",
    "nearly the same request",
    "difference of the value to that of the last like run",
    "distance of the value to that of the last like run",
    "share of the atoms within 5%",
    "share of the atoms within 40%",
)

OWN, OWN_SCALED, OTHER, OTHER_SCALED = range(4)
"""Kinds of support points that are runs."""

UNLIKE = 99
"""Rank among like runs of a run that is not like the job."""

RANK, LIKE_RANK, KIND, RUN_REQUEST, RAN, RUN_WIDTH, ENDED, SUBMITTED, RUN_MEMORY = range(9)
"""Rows of ``Support.runs``: place among the user's runs, newest first; place among those that are
like the job, else UNLIKE; kind of the support point; numbers of the run."""

RUN_NUMBERS = 9
"""Number of rows of ``Support.runs``."""

_APPLICATION, _LIKE, _LAST_LIKE = 7, 11, 29
_REQUEST, _REQUEST_OF_NEWCOMER = 25, 26
_DIFFERENCE, _DISTANCE, _NEAR, _NEARBY = 32, 33, 34, 35


@compiled
def note_run(
    columns: Columns, place: tuple[int, int], rank: tuple[int, int], kind: int, support: Support
) -> None:
    """Note the numbers of a run that is a support point.

    Args:
        place: row of the run, and index of the support point.
        rank: place of the run among the user's runs, and among those that are like the job.
        kind: of the support point.
    """
    row, index = place
    numbers, runs = columns[0], support.runs
    support.rows[index] = row
    runs[RANK, index], runs[LIKE_RANK, index] = rank
    runs[KIND, index] = kind
    runs[RUN_REQUEST, index] = numbers[REQUEST, row]
    runs[RAN, index] = numbers[RUNTIME, row]
    runs[RUN_WIDTH, index] = width(numbers, row)
    runs[ENDED, index] = numbers[END, row]
    runs[SUBMITTED, index] = numbers[SUBMIT, row]
    runs[RUN_MEMORY, index] = numbers[MEMORY, row]


@compiled
def note_scaled(source: int, index: int, support: Support) -> None:
    """Note the run behind a support point once more, scaled to the job's request."""
    support.rows[index] = support.rows[source]
    for each in range(RUN_NUMBERS):
        support.runs[each, index] = support.runs[each, source]
    support.runs[KIND, index] += 1


@compiled
def describe(columns: Columns, count: int, job: JobQuery, support: Support) -> None:
    """Compute values and features of support points that are runs, but for their neighbours."""
    describe_names(columns[1], count, job, support)
    set_values(count, job.request, support)
    describe_sizes(count, job, support)
    describe_times(count, job.submit, support)
    describe_memory(count, job.memory, support)
    compare_values(support, count)


@compiled
def describe_names(attributes: Ids, count: int, job: JobQuery, support: Support) -> None:
    """Compare user, group, application and queue."""
    features, _, rows, _, runs = support
    for index in range(count):
        row = rows[index]
        own = runs[KIND, index] < OTHER
        application, queue = attributes[APPLICATION, row], attributes[QUEUE, row]
        same = application == job.application
        group = attributes[GROUP, row]
        features[0, index] = own
        features[1, index] = not own and group >= 0 and group == job.group
        features[_APPLICATION, index] = same and application >= 0
        features[8, index] = not same and application >= 0 and job.application != UNKNOWN
        features[9, index] = queue >= 0 and queue == job.queue
        both_known = queue >= 0 and job.queue != UNKNOWN
        features[10, index] = both_known and queue != job.queue
        features[_LIKE, index] = same


@compiled_for_lanes
def set_values(count: int, request: float, support: Support) -> None:
    """Compute the value of each support point, in seconds."""
    values, runs = support.values, support.runs
    requests, ran, kinds = runs[RUN_REQUEST], runs[RAN], runs[KIND]
    shortest = min(1.0, request)
    for index in range(count):
        used = min(ran[index], requests[index])
        kind = kinds[index]
        scaled = kind == OWN_SCALED or kind == OTHER_SCALED  # noqa: PLR1714 - numba has no such set
        value = used * request / requests[index] if scaled else min(used, request)
        values[index] = max(shortest, value)


@compiled_for_lanes
def describe_sizes(count: int, job: JobQuery, support: Support) -> None:
    """Compare requests, processors and usages.

    The feature of like runs becomes complete here: ``describe_names`` compares applications.
    """
    features, values, _, _, runs = support
    request, processors = job.request, job.processors
    requests, ran, widths = runs[RUN_REQUEST], runs[RAN], runs[RUN_WIDTH]
    for index in range(count):
        difference = np.log(request / requests[index])
        features[2, index] = request == requests[index]
        features[3, index] = min(3.0, abs(difference))
        features[4, index] = min(3.0, max(-3.0, difference))
        features[31, index] = abs(difference) < 0.1
    for index in range(count):
        features[5, index] = processors == widths[index]
        features[6, index] = min(4.0, abs(np.log(processors / widths[index])))
        used = max(min(ran[index], requests[index]), 1e-9 * requests[index])
        features[20, index] = min(4.0, np.log(requests[index] / used)) / 2
        features[21, index] = min(6.0, np.log(request / values[index])) / 2
    for index in range(count):
        features[18, index] = ran[index] >= 0.99 * requests[index]
        features[19, index] = ran[index] < 60
        features[30, index] = features[4, index] if features[_LIKE, index] > 0 else 0.0
    for index in range(count):
        features[_LIKE, index] *= features[2, index] * features[5, index]


@compiled_for_lanes
def describe_times(count: int, submitted: float, support: Support) -> None:
    """Compute features of ages, ranks and kinds, after ``describe_sizes``."""
    features, runs = support.features, support.runs
    ended, submits = runs[ENDED], runs[SUBMITTED]
    ranks, like_ranks, kinds = runs[RANK], runs[LIKE_RANK], runs[KIND]
    for index in range(count):
        like = features[_LIKE, index] > 0
        rank = np.log1p(ranks[index]) / 2
        features[12, index] = np.log1p(max(0.0, submitted - ended[index]) / 3600) / 2
        features[13, index] = np.log1p(max(0.0, submitted - submits[index]) / 600) / 2
        features[14, index] = rank
        features[15, index] = rank if like else 0.0
        features[16, index] = np.log1p(like_ranks[index]) / 2 if like else 0.0
    for index in range(count):
        own = kinds[index] < OTHER
        like = own and features[_LIKE, index] > 0
        features[17, index] = ranks[index] == 0
        features[22, index] = own and submitted - submits[index] < 60
        features[23, index] = kinds[index] == OWN_SCALED or kinds[index] == OTHER_SCALED
        features[24, index] = not own
        features[_LIKE, index] = like
        features[_LAST_LIKE, index] = like and like_ranks[index] == 0
    features[_REQUEST, :count] = 0
    features[_REQUEST_OF_NEWCOMER, :count] = 0


@compiled
def describe_memory(count: int, memory: float, support: Support) -> None:
    """Compare the requested memory; 0 where it is unknown."""
    features, of_runs = support.features, support.runs[RUN_MEMORY]
    for index in range(count):
        features[27, index] = memory == of_runs[index]
        features[28, index] = 0.0
        if memory > 0 and of_runs[index] > 0:
            features[28, index] = min(3.0, abs(np.log(memory / of_runs[index])))


@compiled
def describe_request(feature: Singles, own: int) -> None:
    """Compute the features of the request as support point; the user has ``own`` runs."""
    feature[:] = 0
    feature[_REQUEST] = 1
    feature[_REQUEST_OF_NEWCOMER] = own == 0


@compiled_for_lanes
def compare_values(support: Support, count: int) -> None:
    """Compare values with that of the last like run, without one with the first value."""
    features, values = support.features, support.values
    reference = values[0]
    for index in range(count):
        if features[_LAST_LIKE, index] > 0:
            reference = values[index]
            break
    for index in range(count):
        difference = min(3.0, max(-3.0, np.log(values[index] / reference) / 2))
        features[_DIFFERENCE, index] = difference
        features[_DISTANCE, index] = abs(difference)


@compiled
def count_neighbours(support: Support, count: int) -> None:
    """Compute for each support point the share of all that are within 5% and 40% of it."""
    features, values = support.features, support.values
    logarithms = np.empty(count, np.float32)
    for index in range(count):
        logarithms[index] = np.log(values[index])
    near, nearby = np.float32(0.05), np.float32(0.4)
    one, none = np.float32(1) / np.float32(count), np.float32(0)
    close, wide = np.zeros(count, np.float32), np.zeros(count, np.float32)
    for index in range(count):
        here = logarithms[index]
        # Sums by entry, not one running sum: so one instruction handles several.
        for other in range(count):
            distance = abs(logarithms[other] - here)
            close[other] += one if distance < near else none
            wide[other] += one if distance < nearby else none
    # Slices would take seconds to compile, with the messages about wrong shapes.
    for index in range(count):
        features[_NEAR, index] = close[index]
        features[_NEARBY, index] = wide[index]


CONTEXT = (
    "own runs",
    "own like runs",
    "request",
    "processors",
    "request in mean runtimes of the cluster",
    "mean usage of the user",
    "share of the user's runs that use all of the request",
    "share that use hardly any of it",
    "change of the user's runtimes from run to run",
    "change of the user's usages",
    "share of the runs whose request is another one than the next one's",
    "change of runtimes where the request changed",
    "change of usages where the request changed",
    "how much more runtimes change there than usages do",
    "change of runtimes from like run to like run",
    "there are two like runs",
    "mean usage on the cluster",
    "share of its runs that use all of the request",
    "share of its runs that use hardly any of it",
    "nothing is known of the user",
    "time since the user's last run ended",
    "same request as the user's last run",
)

HABIT = 24
"""Number of the user's last runs that describe the user in the context."""

CLUSTER = (64, 4)
"""Number of the cluster's last runs that describe it in the context, and most of one user."""


@compiled
def describe_user(runs: Floats, own: int, job: JobQuery, context: Singles) -> None:
    """Describe the user: usages, changes from run to run, and the age of the last run.

    Args:
        runs: numbers of the runs behind support points, of which the user's come first, the newest
            foremost.
        own: number of runs of the user.
    """
    count = min(own, HABIT)
    context[19] = count == 0
    if count == 0:
        return
    context[20] = min(3.0, np.log1p(max(0.0, job.submit - runs[ENDED, 0]) / 3600) / 3)
    context[21] = runs[RUN_REQUEST, 0] == job.request
    runtimes, usages = np.empty(count), np.empty(count)
    full = short = 0
    total = 0.0
    for run in range(count):
        request = runs[RUN_REQUEST, run]
        share = min(1.0, max(1.0, runs[RAN, run]) / request)
        runtimes[run], usages[run] = np.log(share * request), np.log(share)
        total += share
        full += share >= 0.95
        short += share < 0.05
    context[5], context[6], context[7] = total / count, full / count, short / count
    if count > 1:
        describe_changes(runs[RUN_REQUEST], runtimes, usages, context)


@compiled
def describe_changes(requests: Floats, runtimes: Floats, usages: Floats, context: Singles) -> None:
    """Compute how much runtimes and usages, given as logarithms, change from run to run."""
    of_runtimes = of_usages = 0.0
    changed = 0
    changed_runtimes = changed_usages = 0.0
    pairs = len(runtimes) - 1
    for run in range(1, pairs + 1):
        of_runtime = min(3.0, abs(runtimes[run] - runtimes[run - 1]))
        of_usage = min(3.0, abs(usages[run] - usages[run - 1]))
        of_runtimes += of_runtime
        of_usages += of_usage
        if requests[run] != requests[run - 1]:
            changed += 1
            changed_runtimes += of_runtime
            changed_usages += of_usage
    context[8], context[9] = of_runtimes / pairs, of_usages / pairs
    context[10] = changed / pairs
    if changed > 0:
        context[11], context[12] = changed_runtimes / changed, changed_usages / changed
        context[13] = min(2.0, max(-2.0, context[11] - context[12]))


@compiled
def describe_like(runs: Floats, like: RowIds, count: int, context: Singles) -> None:
    """Compute how much runtimes change from like run to like run.

    Args:
        runs: numbers of the runs behind support points.
        like: indices of those that are like the job, newest first.
        count: number of these.
    """
    if count < 2:
        return
    logarithms = np.empty(count)
    for index in range(count):
        run = like[index]
        logarithms[index] = np.log(max(1.0, min(runs[RAN, run], runs[RUN_REQUEST, run])))
    total = 0.0
    for index in range(1, count):
        total += min(3.0, abs(logarithms[index] - logarithms[index - 1]))
    context[14], context[15] = total / (count - 1), 1


@compiled
def describe_cluster(
    numbers: Floats, rows: RowIds, job: JobQuery, mean_runtime: float, context: Singles
) -> None:
    """Describe the usages of the cluster's last runs, and the size of the job."""
    total = full = short = 0.0
    for row in rows:
        share = usage(numbers[RUNTIME, row], numbers[REQUEST, row])
        total += share
        full += share >= 0.95
        short += share < 0.05
    runs = len(rows)
    if runs:
        context[16], context[17], context[18] = total / runs, full / runs, short / runs
    context[2] = (np.log(job.request) - 9) / 2
    context[3] = min(4.0, max(0.0, np.log(job.processors) / 4))
    context[4] = min(3.0, max(-3.0, np.log(job.request / max(mean_runtime, 1.0)) / 2))
