"""Machine code that says how an atom is like the job, in numbers.

An atom is one value that the runtime may take, in seconds, at most the request: what a past run
took, what a past run used of its request times the new request ("scaled"), or the request itself.
A feature is a number that says how the run behind an atom resembles the job. Which features there
are is part of what the weights mean: another set is another VERSION.
"""

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
    Columns,
    Floats,
    Ids,
    usage,
    width,
)

VERSION = 1
"""Of the features: weights learned for others are refused."""

Singles = NDArray[np.float32]
Rows = NDArray[np.int64]

Atoms = tuple[Singles, Floats, Rows, Singles, Floats]
"""Features by atom, values in seconds, rows of the runs (-1: the request), the context, and what
is known of the runs."""

Question = tuple[float, float, float, float]
"""Request, processors, memory (NaN where it is unknown) and submit time of the job."""

Names = tuple[int, int, int, int]
"""Ids of its user, group, queue and application."""

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
"""Kinds of atoms that are runs."""

UNKNOWN = -1
UNLIKE = 99
"""The rank among like runs of a run that is not like the job."""

RANK, LIKE_RANK, KIND, ASKED, RAN, WIDE, ENDED, SUBMITTED, OF_MEMORY = range(9)
"""Rows of what is known of the runs behind atoms: which of the user's it is, counted from the
newest; which of those that are like the job, else UNLIKE; its kind; and its numbers."""

KNOWN_OF_RUN = 9
"""How many rows that are."""

_APPLICATION, _LIKE, _LAST_LIKE = 7, 11, 29
_REQUEST, _REQUEST_OF_NEWCOMER = 25, 26
_DIFFERENCE, _DISTANCE, _NEAR, _NEARBY = 32, 33, 34, 35


@compiled
def recall(
    columns: Columns, place: tuple[int, int], rank: tuple[int, int], kind: int, atoms: Atoms
) -> None:
    """Note what is known of a run that is an atom; ``place`` is its row and that of the atom."""
    row, index = place
    numbers, rows, known = columns[0], atoms[2], atoms[4]
    rows[index] = row
    known[RANK, index], known[LIKE_RANK, index] = rank
    known[KIND, index] = kind
    known[ASKED, index] = numbers[REQUEST, row]
    known[RAN, index] = numbers[RUNTIME, row]
    known[WIDE, index] = width(numbers, row)
    known[ENDED, index] = numbers[END, row]
    known[SUBMITTED, index] = numbers[SUBMIT, row]
    known[OF_MEMORY, index] = numbers[MEMORY, row]


@compiled
def recall_scaled(source: int, index: int, atoms: Atoms) -> None:
    """The run behind an atom as one more atom, scaled; its request was not that of the job."""
    rows, known = atoms[2], atoms[4]
    rows[index] = rows[source]
    for each in range(KNOWN_OF_RUN):
        known[each, index] = known[each, source]
    known[KIND, index] += 1


@compiled
def describe(columns: Columns, count: int, job: tuple[Names, Question], atoms: Atoms) -> None:
    """The values and all features of the atoms that are runs, but for how many are near them."""
    describe_names(columns[1], count, job[0], atoms)
    tell_values(count, job[1][0], atoms)
    describe_sizes(count, job[1], atoms)
    describe_times(count, job[1][3], atoms)
    describe_memory(count, job[1][2], atoms)
    compare_values(atoms, count)


@compiled
def describe_names(attributes: Ids, count: int, names: Names, atoms: Atoms) -> None:
    """What group, application and queue say; and whether it is a run of the user."""
    features, _, rows, _, known = atoms
    for index in range(count):
        row = rows[index]
        own = known[KIND, index] < OTHER
        application, queue = attributes[APPLICATION, row], attributes[QUEUE, row]
        same = application == names[APPLICATION]
        group = attributes[GROUP, row]
        features[0, index] = own
        features[1, index] = not own and group >= 0 and group == names[GROUP]
        features[_APPLICATION, index] = same and application >= 0
        features[8, index] = not same and application >= 0 and names[APPLICATION] != UNKNOWN
        features[9, index] = queue >= 0 and queue == names[QUEUE]
        features[10, index] = queue >= 0 and names[QUEUE] != UNKNOWN and queue != names[QUEUE]
        features[_LIKE, index] = same


@compiled_for_lanes
def tell_values(count: int, request: float, atoms: Atoms) -> None:
    """What each atom says the runtime is."""
    values, known = atoms[1], atoms[4]
    asked, ran, kinds = known[ASKED], known[RAN], known[KIND]
    shortest = min(1.0, request)
    for index in range(count):
        used = min(ran[index], asked[index])
        kind = kinds[index]
        scaled = kind == OWN_SCALED or kind == OTHER_SCALED  # noqa: PLR1714 - numba has no such set
        value = used * request / asked[index] if scaled else min(used, request)
        values[index] = max(shortest, value)


@compiled_for_lanes
def describe_sizes(count: int, question: Question, atoms: Atoms) -> None:
    """What requests, processors and the share of the request that was used say.

    Whether a run is like the job is completed here: its application has been compared before.
    """
    features, values, _, _, known = atoms
    request, processors = question[0], question[1]
    asked, ran, wide = known[ASKED], known[RAN], known[WIDE]
    for index in range(count):
        difference = np.log(request / asked[index])
        features[2, index] = request == asked[index]
        features[3, index] = min(3.0, abs(difference))
        features[4, index] = min(3.0, max(-3.0, difference))
        features[31, index] = abs(difference) < 0.1
    for index in range(count):
        features[5, index] = processors == wide[index]
        features[6, index] = min(4.0, abs(np.log(processors / wide[index])))
        used = max(min(ran[index], asked[index]), 1e-9 * asked[index])
        features[20, index] = min(4.0, np.log(asked[index] / used)) / 2
        features[21, index] = min(6.0, np.log(request / values[index])) / 2
    for index in range(count):
        features[18, index] = ran[index] >= 0.99 * asked[index]
        features[19, index] = ran[index] < 60
        features[30, index] = features[4, index] if features[_LIKE, index] > 0 else 0.0
    for index in range(count):
        features[_LIKE, index] *= features[2, index] * features[5, index]


@compiled_for_lanes
def describe_times(count: int, submitted: float, atoms: Atoms) -> None:
    """What ages, ranks and the kind say, of atoms whose likeness to the job is known."""
    features, known = atoms[0], atoms[4]
    ended, submits = known[ENDED], known[SUBMITTED]
    ranks, like_ranks, kinds = known[RANK], known[LIKE_RANK], known[KIND]
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
def describe_memory(count: int, asked: float, atoms: Atoms) -> None:
    """What the requested memory says: nothing where it is unknown."""
    features, of_runs = atoms[0], atoms[4][OF_MEMORY]
    for index in range(count):
        features[27, index] = asked == of_runs[index]
        features[28, index] = 0.0
        if asked > 0 and of_runs[index] > 0:
            features[28, index] = min(3.0, abs(np.log(asked / of_runs[index])))


@compiled
def describe_request(feature: Singles, own: int) -> None:
    """The features of the atom that is the request of a job whose user has ``own`` runs."""
    feature[:] = 0
    feature[_REQUEST] = 1
    feature[_REQUEST_OF_NEWCOMER] = own == 0


@compiled_for_lanes
def compare_values(atoms: Atoms, count: int) -> None:
    """How far the values are from that of the last like run, else from the first atom's."""
    features, values = atoms[0], atoms[1]
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
def count_neighbours(atoms: Atoms, count: int) -> None:
    """Which share of all atoms is within 5% and 40% of each of them."""
    features, values = atoms[0], atoms[1]
    logarithms = np.empty(count, np.float32)
    for index in range(count):
        logarithms[index] = np.log(values[index])
    near, nearby = np.float32(0.05), np.float32(0.4)
    one, none = np.float32(1) / np.float32(count), np.float32(0)
    close, wide = np.zeros(count, np.float32), np.zeros(count, np.float32)
    for index in range(count):
        here = logarithms[index]
        # By entry, not summed into one number: so several are done in one instruction.
        for other in range(count):
            distance = abs(logarithms[other] - here)
            close[other] += one if distance < near else none
            wide[other] += one if distance < nearby else none
    # Assigning slices would be compiled for seconds, with all that can be said of wrong shapes.
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
"""The user's last runs that tell her habits, which are part of the context."""

CLUSTER = 64
"""The cluster's last runs that tell how requests are used on it."""


@compiled
def describe_habits(known: Floats, own: int, question: Question, context: Singles) -> None:
    """What the user's last runs say about her: usages, changes, and when the last one ended.

    Args:
        known: of the runs behind atoms, of which the user's are the first, the newest foremost.
        own: how many runs the user has.
        question: the numbers of the job.
        context: some entries of which are written.
    """
    runs = min(own, HABIT)
    context[19] = runs == 0
    if runs == 0:
        return
    context[20] = min(3.0, np.log1p(max(0.0, question[3] - known[ENDED, 0]) / 3600) / 3)
    context[21] = known[ASKED, 0] == question[0]
    runtimes, usages = np.empty(runs), np.empty(runs)
    full = short = 0
    total = 0.0
    for run in range(runs):
        asked = known[ASKED, run]
        share = min(1.0, max(1.0, known[RAN, run]) / asked)
        runtimes[run], usages[run] = np.log(share * asked), np.log(share)
        total += share
        full += share >= 0.95
        short += share < 0.05
    context[5], context[6], context[7] = total / runs, full / runs, short / runs
    if runs > 1:
        describe_changes(known[ASKED], runtimes, usages, context)


@compiled
def describe_changes(asked: Floats, runtimes: Floats, usages: Floats, context: Singles) -> None:
    """How much runtimes and usages, given as logarithms, change from run to run."""
    of_runtimes = of_usages = 0.0
    changed = 0
    changed_runtimes = changed_usages = 0.0
    pairs = len(runtimes) - 1
    for run in range(1, pairs + 1):
        of_runtime = min(3.0, abs(runtimes[run] - runtimes[run - 1]))
        of_usage = min(3.0, abs(usages[run] - usages[run - 1]))
        of_runtimes += of_runtime
        of_usages += of_usage
        if asked[run] != asked[run - 1]:
            changed += 1
            changed_runtimes += of_runtime
            changed_usages += of_usage
    context[8], context[9] = of_runtimes / pairs, of_usages / pairs
    context[10] = changed / pairs
    if changed > 0:
        context[11], context[12] = changed_runtimes / changed, changed_usages / changed
        context[13] = min(2.0, max(-2.0, context[11] - context[12]))


@compiled
def describe_like(known: Floats, like: Rows, count: int, context: Singles) -> None:
    """How much runtimes change from like run to like run; ``like`` has the places of ``count``."""
    if count < 2:
        return
    logarithms = np.empty(count)
    for index in range(count):
        run = like[index]
        logarithms[index] = np.log(max(1.0, min(known[RAN, run], known[ASKED, run])))
    total = 0.0
    for index in range(1, count):
        total += min(3.0, abs(logarithms[index] - logarithms[index - 1]))
    context[14], context[15] = total / (count - 1), 1


@compiled
def describe_cluster(
    numbers: Floats, rows: tuple[int, int], question: Question, scale: float, context: Singles
) -> None:
    """How the cluster's last runs used their requests, and the job's own size."""
    first, stop = rows
    total = full = short = 0.0
    for row in range(first, stop):
        share = usage(numbers[RUNTIME, row], numbers[REQUEST, row])
        total += share
        full += share >= 0.95
        short += share < 0.05
    if stop > first:
        runs = stop - first
        context[16], context[17], context[18] = total / runs, full / runs, short / runs
    context[2] = (np.log(question[0]) - 9) / 2
    context[3] = min(4.0, max(0.0, np.log(question[1]) / 4))
    context[4] = min(3.0, max(-3.0, np.log(question[0] / max(scale, 1.0)) / 2))
