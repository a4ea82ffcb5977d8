"""Machine code that gathers the values a runtime may take, and how each of them is like the job.

An atom is one such value in seconds, at most the request: what a past run took, what a past run
used of its request times the new request ("scaled"), or the request itself. A feature is a number
that says how the run behind an atom resembles the job; the context says what kind of user, job and
cluster it is. Which they are is part of what the weights mean: another set is another VERSION.
"""

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.memory.columns import (
    APPLICATION,
    END,
    GROUP,
    MEMORY,
    PREVIOUS,
    PROCESSORS,
    QUEUE,
    REQUEST,
    RUNTIME,
    SUBMIT,
    USER,
    Columns,
    Floats,
    Ids,
    rows_until,
)
from predictors.methods.least_cost_search import SCALING, mean_seconds

VERSION = 1
"""Of the features: weights learned for others are refused."""

Singles = NDArray[np.float32]
Rows = NDArray[np.int64]

Atoms = tuple[Singles, Floats, Rows, Singles]
"""Features by atom, values in seconds, rows of the runs (-1: the request), and the context."""

Question = tuple[float, float, float, float]
"""Request, processors, memory (NaN where it is unknown) and submit time of the job."""

Names = tuple[int, int, int, int]
"""Ids of its user, group, queue and application."""

ATOMS = 88
"""No job has more."""

RECENT = 40
"""So many of the user's last runs are atoms, whatever they are."""

LIKE = 12
"""So many of the last with the job's request, processors and application, if they are older."""

SAME_APPLICATION = 8
"""So many of the last others with its application, if they are older."""

SCALED = 24
"""So many of these whose request was another one are an atom a second time, scaled."""

LOOKED_AT = 192
"""The user's last runs among which all these are sought."""

NEWCOMER = 16
"""A user with fewer runs is told apart by those of others, too: the last, each of another user
than the one before, of the same group, and with the same request."""

LOOKED_AT_OF_OTHERS = 256
FRESH, SAME_GROUP, SAME_REQUEST = 10, 8, 6

HABIT = 24
"""The user's last runs that tell her habits, which are part of the context."""

CLUSTER = 64
"""The cluster's last runs that tell how requests are used on it."""

UNKNOWN = -1
UNLIKE = 99
"""The rank among like runs of a run that is not like the job."""

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
    "share that use hardly any of it",
    "nothing is known of the user",
    "time since the user's last run ended",
    "same request as the user's last run",
)

OWN, OWN_SCALED, OTHER, OTHER_SCALED = range(4)
"""Kinds of atoms that are runs."""

_LIKE_ROW, _LAST_LIKE, _REQUEST, _REQUEST_OF_NEWCOMER = 11, 29, 25, 26
_DIFFERENCE, _DISTANCE, _NEAR, _NEARBY = 32, 33, 34, 35


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
    if count > 0:
        compare_values(atoms, count)
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
    scaled = np.empty((2, SCALED), np.int64)
    count = own = like = alike = again = changes = 0
    change, before = 0.0, np.nan
    describe_habits(columns, rows, question, atoms[3])
    while row >= first and own < LOOKED_AT:
        same = attributes[APPLICATION, row] == names[APPLICATION]
        request = numbers[REQUEST, row]
        is_like = same and request == question[0] and width(numbers, row) == question[1]
        same = same and names[APPLICATION] != UNKNOWN and not is_like
        if own < RECENT or (is_like and like < LIKE) or (same and alike < SAME_APPLICATION):
            rank = (own, like if is_like else UNLIKE)
            count = admit(columns, row, job, (rank, OWN), atoms, count)
            if request != question[0] and again < SCALED:
                scaled[0, again], scaled[1, again] = row, own
                again += 1
        if is_like and like < LIKE:
            before, changes, change = describe_like(columns, row, before, (changes, change))
        like += is_like
        alike += same
        own += 1
        row = attributes[PREVIOUS, row]
    for index in range(again):
        rank = (scaled[1, index], UNLIKE)
        count = admit(columns, scaled[0, index], job, (rank, OWN_SCALED), atoms, count)
    atoms[3][0] = np.log1p(own) / 3
    atoms[3][1] = np.log1p(like) / 2
    if changes > 0:
        atoms[3][14], atoms[3][15] = change / changes, 1
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
        if user == names[USER] or count + 3 >= ATOMS:
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
        rank = (stop - row, UNLIKE)
        count = admit(columns, row, job, (rank, OTHER), atoms, count)
        others += 1
        if not same_request:
            count = admit(columns, row, job, (rank, OTHER_SCALED), atoms, count)
    return count, others


@compiled
def admit_request(atoms: Atoms, count: int, own: int, request: float) -> int:
    """The request as one more atom."""
    features, values, rows, _ = atoms
    features[:, count] = 0
    features[_REQUEST, count] = 1
    features[_REQUEST_OF_NEWCOMER, count] = own == 0
    values[count] = request
    rows[count] = -1
    return count + 1


@compiled
def admit(  # noqa: PLR0913, PLR0917 - what an atom is made of
    columns: Columns,
    row: int,
    job: tuple[Names, Question],
    place: tuple[tuple[int, int], int],
    atoms: Atoms,
    count: int,
) -> int:
    """One more atom: its value, its row and most of its features.

    ``place`` is the rank of the run among the user's and among like ones, and its kind.
    """
    numbers, attributes, _ = columns
    names, (request, processors, memory, submitted) = job
    (rank, like_rank), kind = place
    features, values, rows, _ = atoms
    asked = numbers[REQUEST, row]
    runtime = numbers[RUNTIME, row]
    used = min(runtime, asked)
    scaled = kind == OWN_SCALED or kind == OTHER_SCALED  # noqa: PLR1714 - numba has no such set
    own = kind < OTHER
    value = max(1.0, used * request / asked if scaled else min(used, request))
    values[count] = value
    rows[count] = row
    feature = features[:, count]
    same_application = describe_names(attributes, row, names, kind, feature)
    wide = width(numbers, row)
    describe_sizes((request, asked), (processors, wide), feature)
    like = same_application and asked == request and wide == processors
    describe_memory(memory, numbers[MEMORY, row], feature)
    age = max(0.0, submitted - numbers[SUBMIT, row])
    feature[12] = np.log1p(max(0.0, submitted - numbers[END, row]) / 3600) / 2
    feature[13] = np.log1p(age / 600) / 2
    feature[14] = np.log1p(rank) / 2
    feature[15] = feature[14] if like else 0.0
    feature[16] = np.log1p(like_rank) / 2 if like else 0.0
    feature[17] = rank == 0
    feature[18] = runtime >= 0.99 * asked
    feature[19] = runtime < 60
    feature[20] = min(4.0, np.log(asked / max(used, 1e-9 * asked))) / 2
    feature[21] = min(6.0, np.log(request / value)) / 2
    feature[22] = own and age < 60
    feature[23] = scaled
    feature[24] = not own
    feature[25] = feature[26] = 0.0
    feature[_LIKE_ROW] = own and like
    feature[_LAST_LIKE] = own and like and like_rank == 0
    feature[30] = feature[4] if same_application else 0.0
    return count + 1


@compiled
def width(numbers: Floats, row: int) -> float:
    """The processors of a run; one where they are unknown."""
    processors: float = numbers[PROCESSORS, row]
    return 1.0 if np.isnan(processors) else processors


@compiled
def describe_names(attributes: Ids, row: int, names: Names, kind: int, feature: Singles) -> bool:
    """What user, group, application and queue say; whether the application is the same."""
    own = kind < OTHER
    application, queue = attributes[APPLICATION, row], attributes[QUEUE, row]
    same: bool = application == names[APPLICATION]
    group = attributes[GROUP, row]
    feature[0] = own
    feature[1] = not own and group >= 0 and group == names[GROUP]
    feature[7] = same and application >= 0
    feature[8] = not same and application >= 0 and names[APPLICATION] != UNKNOWN
    feature[9] = queue >= 0 and queue == names[QUEUE]
    feature[10] = queue >= 0 and names[QUEUE] != UNKNOWN and queue != names[QUEUE]
    return same


@compiled
def describe_sizes(
    requests: tuple[float, float], processors: tuple[float, float], feature: Singles
) -> None:
    """What the requests and the processors say; each pair is the job's and the run's."""
    difference = np.log(requests[0] / requests[1])
    feature[2] = requests[0] == requests[1]
    feature[3] = min(3.0, abs(difference))
    feature[4] = min(3.0, max(-3.0, difference))
    feature[5] = processors[0] == processors[1]
    feature[6] = min(4.0, abs(np.log(processors[0] / processors[1])))
    feature[31] = abs(difference) < 0.1


@compiled
def describe_memory(asked: float, of_run: float, feature: Singles) -> None:
    """What the requested memory says: nothing where it is unknown."""
    feature[27] = asked == of_run
    feature[28] = 0.0
    if asked > 0 and of_run > 0:
        feature[28] = min(3.0, abs(np.log(asked / of_run)))


@compiled
def compare_values(atoms: Atoms, count: int) -> None:
    """How far the values are from that of the last like run, else from the first atom's."""
    features, values, _, _ = atoms
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
    features, values, _, _ = atoms
    logarithms = np.empty(count, np.float32)
    for index in range(count):
        logarithms[index] = np.log(max(values[index], 1e-9))
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
    features[_NEAR, :count] = close
    features[_NEARBY, :count] = wide


@compiled
def describe_habits(
    columns: Columns, rows: tuple[int, int], question: Question, context: Singles
) -> None:
    """What the user's last runs say about her: usages, changes, and when the last one ended."""
    first, row = rows
    numbers, attributes, _ = columns
    runs = full = short = 0
    usage = runtimes = usages = 0.0
    changed = 0
    changed_runtimes = changed_usages = 0.0
    before, asked_before, used_before = 0.0, 0.0, 0.0
    context[19] = row < first
    if row >= first:
        context[20] = min(3.0, np.log1p(max(0.0, question[3] - numbers[END, row]) / 3600) / 3)
        context[21] = numbers[REQUEST, row] == question[0]
    while row >= first and runs < HABIT:
        asked = numbers[REQUEST, row]
        share = max(1e-9, min(1.0, max(1.0, numbers[RUNTIME, row]) / asked))
        runtime, used = np.log(share * asked), np.log(share)
        usage += share
        full += share >= 0.95
        short += share < 0.05
        if runs > 0:
            of_runtime, of_usage = (
                min(3.0, abs(runtime - before)),
                min(3.0, abs(used - used_before)),
            )
            runtimes += of_runtime
            usages += of_usage
            if asked != asked_before:
                changed += 1
                changed_runtimes += of_runtime
                changed_usages += of_usage
        before, used_before, asked_before = runtime, used, asked
        runs += 1
        row = attributes[PREVIOUS, row]
    if runs > 0:
        context[5], context[6], context[7] = usage / runs, full / runs, short / runs
    if runs > 1:
        context[8], context[9] = runtimes / (runs - 1), usages / (runs - 1)
        context[10] = changed / (runs - 1)
    if changed > 0:
        context[11], context[12] = changed_runtimes / changed, changed_usages / changed
        context[13] = min(2.0, max(-2.0, context[11] - context[12]))


@compiled
def describe_like(
    columns: Columns, row: int, before: float, counts: tuple[int, float]
) -> tuple[float, int, float]:
    """Add the change of runtime from this like run to the one ``before``."""
    numbers = columns[0]
    runtime = np.log(max(1.0, min(numbers[RUNTIME, row], numbers[REQUEST, row])))
    changes, total = counts
    if not np.isnan(before):
        changes, total = changes + 1, total + min(3.0, abs(runtime - before))
    return runtime, changes, total


@compiled
def describe_cluster(
    numbers: Floats, rows: tuple[int, int], question: Question, scale: float, context: Singles
) -> None:
    """How the cluster's last runs used their requests, and the job's own size."""
    first, stop = rows
    usage = full = short = 0.0
    for row in range(first, stop):
        share = min(1.0, max(0.0, numbers[RUNTIME, row] / numbers[REQUEST, row]))
        usage += share
        full += share >= 0.95
        short += share < 0.05
    if stop > first:
        runs = stop - first
        context[16], context[17], context[18] = usage / runs, full / runs, short / runs
    context[2] = (np.log(question[0]) - 9) / 2
    context[3] = min(4.0, max(0.0, np.log(question[1]) / 4))
    context[4] = min(3.0, max(-3.0, np.log(question[0] / max(scale, 1.0)) / 2))
