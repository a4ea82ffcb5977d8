"""Machine code that says how an atom is like the job, in numbers.

An atom is one value that the runtime may take, in seconds, at most the request: what a past run
took, what a past run used of its request times the new request ("scaled"), or the request itself.
A feature is a number that says how the run behind an atom resembles the job. Which features there
are is part of what the weights mean: another set is another VERSION.
"""

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.memory.columns import (
    APPLICATION,
    END,
    GROUP,
    MEMORY,
    PROCESSORS,
    QUEUE,
    REQUEST,
    RUNTIME,
    SUBMIT,
    Columns,
    Floats,
    Ids,
)

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

_LIKE_ROW, _LAST_LIKE, _REQUEST, _REQUEST_OF_NEWCOMER = 11, 29, 25, 26
_DIFFERENCE, _DISTANCE, _NEAR, _NEARBY = 32, 33, 34, 35


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
def describe_request(feature: Singles, own: int) -> None:
    """The features of the atom that is the request of a job whose user has ``own`` runs."""
    feature[:] = 0
    feature[_REQUEST] = 1
    feature[_REQUEST_OF_NEWCOMER] = own == 0


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
    # Assigning slices would be compiled for seconds, with all that can be said of wrong shapes.
    for index in range(count):
        features[_NEAR, index] = close[index]
        features[_NEARBY, index] = wide[index]
