"""Further facts of runs as rows of numbers, and what the history says that each of them is worth.

A row has a number for each fact: a count, or 24 bits of a hash in place of a text. The features of
a site's own take the last places, in order of their names; each has the hash of its name beside it.

A fact is worth what it would have saved among the user's runs of the same application: the error of
the newest of them as an estimate, less that of the newest with the same value, or of the one with
the nearest number. Errors are differences of the logarithms of runtimes. Runs for which both are
the same one say nothing.
"""

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled, of_same_types
from predictors.facts import FACTS, MOST_FEATURES, Facts
from predictors.memory.columns import (
    APPLICATION,
    END,
    PREVIOUS,
    RUNTIME,
    SUBMIT,
    USER,
    Columns,
    Floats,
)

FactRows = NDArray[np.float32]
"""By row of a table: the facts, the names of features, and the gains by fact."""

OWN = tuple(name for name in FACTS if name != "features")
"""Facts that have a place of their own."""

COUNTS = frozenset({"nodes", "gpus", "array_size"})

PLACES = len(OWN) + MOST_FEATURES
NAMES, GAINS = PLACES, PLACES + MOST_FEATURES
WEIGHT = GAINS + PLACES
WIDTH = WEIGHT + 1
SUMS = 3

LOOKED_AT = 32
"""Most earlier runs of the user and application that a fact is looked for in."""

MOST_SEEN = 256
"""Most earlier runs of the user that these are looked for among."""

NEAR = 256
"""Rows of the table before a run; a user with many of them counts less for each."""

JUDGED = 4_096
"""Number of the cluster's last runs whose gains decide."""

ERRORS, LEAST_GAIN = 2.0, 0.05
"""Standard errors below the mean gain, and the gain there up to which a fact has no weight."""

STEEPNESS, HEAVIEST = 8.0, 8.0
"""Weight of a fact by the gain beyond that, and the largest one."""

KEPT_SHARE = 0.1
"""Share of all weight that the facts do not move."""

UNIT = 1_024.0
"""Gains are whole numbers of this part, so that sums do not depend on their order."""

NO_NUMBERS = np.full(GAINS, np.nan, np.float32)
NO_WEIGHTS: Floats = np.zeros(PLACES)

JobFacts = tuple[FactRows, FactRows, Floats]
"""Facts of runs by row, those of a job as numbers, and the weight of each."""


def hash_of(text: str) -> float:
    """Return 24 bits that stand for a text."""
    return float(crc32(text.encode("utf-8", "surrogatepass")) >> 8)


def numbers_of(facts: Facts | None) -> NDArray[np.float32]:
    """Return the facts as numbers, NaN where unknown, and behind them the names of features.

    Names of words are negative: numbers of these features are compared for equality.
    """
    if facts is None:
        return NO_NUMBERS
    found = NO_NUMBERS.copy()
    for place, name in enumerate(OWN):
        value = getattr(facts, name)
        if value is not None:
            found[place] = hash_of(value) if isinstance(value, str) else float(value)
    for place, name in enumerate(sorted(facts.features)[:MOST_FEATURES]):
        value = facts.features[name]
        is_word = isinstance(value, str)
        found[len(OWN) + place] = hash_of(value) if isinstance(value, str) else value
        found[NAMES + place] = -1.0 - hash_of(name) if is_word else 1.0 + hash_of(name)
    return found


def names_of(facts: Facts) -> list[str]:
    """Return the names of the facts by their places."""
    return [*OWN, *sorted(facts.features)[:MOST_FEATURES]]


_IS_COUNT = np.array([name in COUNTS for name in OWN])


@compiled
def distance(facts: FactRows, row: int, job: FactRows, place: int) -> float:
    """Return how far a run and a job are from each other in one fact; NaN where it is unknown.

    That is 0 or 1 for texts, and the difference of logarithms, at most 3, for numbers.
    """
    one, other = facts[row, place], job[place]
    if np.isnan(one) or np.isnan(other):
        return np.nan
    is_number = place < len(_IS_COUNT) and _IS_COUNT[place]
    if place >= len(_IS_COUNT):
        name = NAMES + place - len(_IS_COUNT)
        if facts[row, name] != job[name]:
            return np.nan
        is_number = job[name] > 0.0
    if one == other:
        return 0.0
    if not is_number:
        return 1.0
    if one <= 0.0 or other <= 0.0:
        return 3.0
    return min(3.0, abs(float(np.log(one / other))))


@of_same_types
@compiled
def note_gains(columns: Columns, facts: FactRows, row: int, first: int) -> None:
    """Note what each fact of a run would have saved, NaN where that says nothing.

    Args:
        row: of the run.
        first: row of the oldest run that may be looked at.
    """
    numbers, attributes, _ = columns
    facts[row, GAINS:] = np.nan
    facts[row, WEIGHT] = 0.0
    other = attributes[PREVIOUS, row]
    if attributes[USER, row] < 0:
        return
    runs = np.empty(LOOKED_AT, np.int64)
    found = seen = looked = 0
    while other >= first and looked < MOST_SEEN and found < LOOKED_AT:
        is_named_alike = attributes[APPLICATION, other] == attributes[APPLICATION, row]
        if is_named_alike and numbers[END, other] <= numbers[SUBMIT, row]:
            runs[found] = other
            found += 1
        seen += row - other <= NEAR
        looked += 1
        other = attributes[PREVIOUS, other]
    if found < 2:
        return
    facts[row, WEIGHT] = 1.0 / np.sqrt(1.0 + seen)
    seconds = np.log1p(numbers[RUNTIME, row])
    error = abs(seconds - np.log1p(numbers[RUNTIME, runs[0]]))
    for place in range(PLACES):
        best, least = -1, 0.999
        for index in range(found):
            between = distance(facts, runs[index], facts[row], place)
            if between < least:
                best, least = index, between
        if best > 0 and distance(facts, runs[0], facts[row], place) > least:
            saved = error - abs(seconds - np.log1p(numbers[RUNTIME, runs[best]]))
            facts[row, GAINS + place] = np.rint(saved * UNIT) / UNIT


@of_same_types
@compiled
def add_gains(sums: Floats, facts: FactRows, row: int, change: float) -> None:
    """Add the gains of a run to sums by fact, or take them out.

    The sums are those of weights, of gains, and of squares of both.
    """
    weight = np.rint(facts[row, WEIGHT] * UNIT)
    for place in range(PLACES):
        gain = facts[row, GAINS + place]
        if not np.isnan(gain):
            sums[0, place] += change * weight
            sums[1, place] += change * np.rint(weight * gain)
            sums[2, place] += change * np.rint(weight * gain * weight * gain)


def gains_of(facts: FactRows) -> Floats:
    """Return the sums of ``add_gains`` over rows."""
    weight = np.rint(facts[:, WEIGHT, None].astype(float) * UNIT)
    gains = facts[:, GAINS:WEIGHT].astype(float)
    known = ~np.isnan(gains)
    sums = (weight, np.rint(weight * gains), np.rint(weight * gains * weight * gains))
    found: Floats = np.array([np.where(known, each, 0.0).sum(axis=0) for each in sums])
    return found


def weights_of(sums: Floats) -> Floats:
    """Return the weight of each fact: 0 where it has not certainly saved anything."""
    total = np.maximum(1.0, sums[0])
    certain = (sums[1] - ERRORS * np.sqrt(sums[2])) / total
    weights: Floats = np.minimum(HEAVIEST, STEEPNESS * np.maximum(0.0, certain - LEAST_GAIN))
    return weights


@compiled
def factor(job: JobFacts, row: int, places: NDArray[np.int64]) -> float:
    """Return the factor of a run's weight by its distances from a job in facts.

    Args:
        places: of the facts that count.
    """
    facts, given, worth = job
    far = 0.0
    for place in places:
        between = distance(facts, row, given, place)
        if between > 0.0:
            far += worth[place] * between
    return float(np.exp(-min(far, 20.0))) if far > 0.0 else 1.0


@compiled
def likeness(rows: NDArray[np.int64], weights: Floats, job: JobFacts) -> Floats:
    """Return the weights of support points, moved towards runs with the facts of a job.

    A run weighs less by exp(-w d) for each fact of weight w and distance d. Points without a run,
    and a share of all weight, stay as they are.

    Args:
        rows: of the runs behind the points; below 0 without one.
        weights: of the points.
    """
    _, given, worth = job
    factors = np.ones(len(weights))
    places = np.flatnonzero((worth > 0.0) & ~np.isnan(given[:PLACES]))
    total = moved = 0.0
    for index in range(len(rows)):
        if rows[index] < 0:
            continue
        if index > 0 and rows[index] == rows[index - 1]:  # of forest and attention
            factors[index] = factors[index - 1]
        else:
            factors[index] = factor(job, rows[index], places)
        total += weights[index]
        moved += weights[index] * factors[index]
    if moved <= 0.0:
        return 1.0 * weights
    result = np.empty(len(weights))
    for index in range(len(rows)):
        share = KEPT_SHARE + (1.0 - KEPT_SHARE) * factors[index] * total / moved
        result[index] = weights[index] * (share if rows[index] >= 0 else 1.0)
    return result


def shared(rows: FactRows, row: int, facts: Facts, weights: Floats) -> tuple[str, ...]:
    """Return the names of the facts that count and that a run shares with a job."""
    names, job = names_of(facts), numbers_of(facts)
    return tuple(
        name
        for place, name in enumerate(names)
        if weights[place] > 0.0 and distance(rows, row, job, place) <= SHARED
    )


SHARED = 0.1
"""Largest distance of two numbers that count as one, of their logarithms."""

LAST = 64
"""Number of the user's last runs that statistics are over."""

UNKNOWN_FACT = -1.0


@compiled
def are_texts(job: FactRows) -> NDArray[np.bool_]:
    """Return by place whether a job has a text there: a fact that is no number."""
    found = ~np.isnan(job[:PLACES])
    for place in range(PLACES):
        is_own = place < len(_IS_COUNT)
        is_number = _IS_COUNT[place] if is_own else job[NAMES + place - len(_IS_COUNT)] > 0.0
        found[place] = found[place] and not is_number
    return found


@compiled
def describe_facts(
    columns: Columns, facts: FactRows, job: FactRows, window: tuple[int, int, float], out: FactRows
) -> None:
    """Write the features of a job that its facts give: numbers, and statistics of texts.

    The statistic of a text is the mean logarithm of the runtimes of the user's last runs with the
    same one that had ended by then, shrunk by one run towards the mean of the user's last runs.

    Args:
        window: oldest row, newest row of the user, and time of the submission.
    """
    first, newest, time = window
    numbers, attributes, _ = columns
    sums, counts = np.zeros(PLACES), np.zeros(PLACES)
    texts = np.flatnonzero(are_texts(job))
    total = 0.0
    row, seen = newest, 0
    while row >= first and seen < LAST:
        if numbers[END, row] <= time:
            seconds = np.log1p(numbers[RUNTIME, row])
            total += seconds
            seen += 1
            for place in texts:
                if distance(facts, row, job, int(place)) == 0.0:
                    sums[place] += seconds
                    counts[place] += 1.0
        row = int(np.int64(attributes[PREVIOUS, row]))
    out[:PLACES] = np.where(np.isnan(job[:PLACES]), np.float32(UNKNOWN_FACT), job[:PLACES])
    for place in texts:
        out[place] = UNKNOWN_FACT
        if counts[place] > 0.0:
            out[place] = (sums[place] + total / seen) / (counts[place] + 1.0)


@of_same_types
@compiled
def describe_rows(
    columns: Columns, facts: FactRows, rows: tuple[int, int, int], history: int, out: FactRows
) -> None:
    """Write ``describe_facts`` of runs as they were at their submissions.

    Args:
        rows: first row of all; begin and end of the rows.
        history: number of rows before a row that are looked at.
        out: by run, from ``begin`` on, and feature.
    """
    oldest, begin, end = rows
    for row in range(begin, end):
        newest = int(np.int64(columns[1][PREVIOUS, row]))
        window = (max(oldest, row - history), newest, columns[0][SUBMIT, row])
        describe_facts(columns, facts, facts[row], window, out[row - begin])
