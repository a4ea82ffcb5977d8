"""Recalibrates the logit of ending at the limit with the hits of ended runs, by stage and user.

A stage is a share of the limit that a job has run for, 0 at the submission. At each of ``KNOTS``
logits of each of ``STAGES``, the hits among the cluster's last ``WINDOW`` runs that came so far are
compared with those that had been expected, and the difference of logits is added, interpolated
between knots and stages. Then the same is done with the job's user's own runs among these.

Of a user with more than ``MOST_OF_USER`` of these runs each counts less for others, and for the
rest as it had been expected: however many of them end at their limits, they move the cluster's
share of hits by ``MOST_OF_USER / WINDOW`` at most.

Sums are whole numbers, and logits of ended runs follow from the runs in the table that had ended
when they came to the stage. So they are the same in every process and after any restart.
"""

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.memory.censored import share_running
from predictors.memory.columns import (
    APPLICATION,
    END,
    FAMILIARITY,
    NONCONFORMITY,
    NONCONFORMITY_PLACE,
    PIT,
    PIT_PLACE,
    PREVIOUS,
    REQUEST,
    RUNTIME,
    SUBMIT,
    UNKNOWN,
    USER,
    Columns,
    Floats,
    Ids,
    width,
)
from predictors.memory.limit_features import LAST_RUNS, Job, Rows, features_at, logit

WINDOW = 4_000
"""Number of the cluster's last runs that recalibrate."""

MOST_OF_USER = 400
"""Weight of a user's runs among those, in runs."""

STAGES = (0.0, 0.4, 0.8, 0.95)
"""Shares of the limit, in ascending order; stage 0 is the submission."""

LOGITS, WEIGHT = (PIT, FAMILIARITY, PIT_PLACE, NONCONFORMITY_PLACE), NONCONFORMITY
"""Rows of the table's numbers: logit of a run at each stage, and its weight."""

NOT_REACHED = np.inf
"""Logit at a stage that a run did not come to."""

NOT_COUNTED = -1.0
"""Weight of a run of an unknown user."""

KNOTS, LOWEST, HIGHEST = 9, -5.0, 3.0
"""Number of logits at which hits are counted, and the first and last of them."""

SHRINKAGE = 20.0
"""Runs that the expected share of hits counts for at a knot."""

OWN_SHRINKAGE = (200.0, 20.0, 20.0, 20.0)
"""Likewise for the user's own runs, by stage: features at the submission know most of them."""

BOUND = 6.9
"""Largest logit either way: probabilities lie within [0.001, 0.999]."""

LEAST_RUNNING = 1e-3
"""Least share of the jobs that are not cut that is taken to run on."""

WEIGHTS = (
    *(-1.1863, -0.0303, 0.0679, 0.1518, -0.1220, 0.2058, 1.7646, 0.0539),
    *(0.4763, 0.1948, 0.0268, 0.0137, 0.0340, -0.0985, -0.0320),
)
"""Weights of the features, learned on the logs that results/limits.txt names."""

EVERYBODY = 0
"""Place of the cluster in the sums; a user's place is one more than the id."""

RUNS, HITS, EXPECTED = range(3)
"""Columns of the sums of a knot, in parts of a run."""

_UNIT = float(1 << 20)

Sums = NDArray[np.int64]
"""By user, stage and knot: runs, hits, and expected hits."""

Span = tuple[int, int]
"""First row and end of rows."""


def no_sums(users: int) -> Sums:
    """Return sums for a number of users without any run."""
    return np.zeros((1 + users, len(STAGES), KNOTS, 3), np.int64)


@compiled
def raw_logit(features: Floats) -> float:
    """Return the logit by the learned weights."""
    found = 0.0
    for place, weight in enumerate(WEIGHTS):
        found += weight * features[place]
    return min(BOUND, max(-BOUND, found))


@compiled
def running_logit(
    columns: Columns, rows: Rows, job: Job, features: Floats, elapsed: float
) -> float:
    """Return the logit of a job that has run for ``elapsed`` seconds.

    If a share s of the jobs that are not cut run longer, a probability p becomes
    p / (p + (1 - p) s).
    """
    found = raw_logit(features)
    if elapsed > 0.0:
        share = share_running(columns, (*rows, LAST_RUNS), job, elapsed)
        found -= np.log(max(LEAST_RUNNING, share))
    return found


@compiled
def probability_of(found: float) -> float:
    """Return the probability of a logit."""
    probability: float = 1.0 / (1.0 + np.exp(-min(BOUND, max(-BOUND, found))))
    return probability


@compiled
def knot_of(found: float) -> tuple[int, float]:
    """Return the knot before a logit, and how far the logit lies towards the next."""
    steps = (min(HIGHEST, max(LOWEST, found)) - LOWEST) / (HIGHEST - LOWEST) * (KNOTS - 1)
    knot = min(int(steps), KNOTS - 2)
    return knot, steps - knot


@compiled
def recalibrated(sums: Sums, user: int, used: float, found: float) -> float:
    """Return a logit plus the differences of the stages beside the used share of the limit.

    Args:
        sums: of hits.
        user: id; UNKNOWN without a run.
        used: share of the limit that the job has run for.
        found: the logit.
    """
    stage = 0
    while stage < len(STAGES) - 2 and used >= STAGES[stage + 1]:
        stage += 1
    share = min(1.0, (used - STAGES[stage]) / (STAGES[stage + 1] - STAGES[stage]))
    before, after = stage_shift(sums, user, stage, found), 0.0
    if share > 0.0:
        after = stage_shift(sums, user, stage + 1, found)
    return found + (1.0 - share) * before + share * after


@compiled
def stage_shift(sums: Sums, user: int, stage: int, found: float) -> float:
    """Return what hits of the cluster and of the user add to a logit at a stage."""
    shift = cluster_shift(sums[EVERYBODY, stage], found)
    if user == UNKNOWN:
        return shift
    return shift + own_shift(sums, user, stage, found, found + shift)


@compiled
def cluster_shift(sums: Sums, found: float) -> float:
    """Return the difference of hits and expected hits at the knots beside a logit."""
    knot, share = knot_of(found)
    expected = SHRINKAGE * probability_of(found)
    shift = 0.0
    for place in range(2):
        runs = sums[knot + place, RUNS] / _UNIT + SHRINKAGE
        observed = logit((sums[knot + place, HITS] / _UNIT + expected) / runs)
        foreseen = logit((sums[knot + place, EXPECTED] / _UNIT + expected) / runs)
        shift += (share if place else 1.0 - share) * (observed - foreseen)
    return shift


@compiled
def own_shift(sums: Sums, user: int, stage: int, found: float, target: float) -> float:
    """Return the difference of the user's hits and those that the cluster's runs let expect.

    Args:
        sums: of hits.
        user: id.
        stage: of the job.
        found: the logit.
        target: the logit by the cluster's runs.
    """
    knot, share = knot_of(found)
    shrinkage = OWN_SHRINKAGE[stage]
    expected, shift = shrinkage * probability_of(target), 0.0
    for place in range(2):
        own = sums[1 + user, stage, knot + place]
        if own[RUNS] > 0:
            mean = logit(own[EXPECTED] / own[RUNS])
            mean = probability_of(mean + cluster_shift(sums[EVERYBODY, stage], mean))
            runs = own[RUNS] / _UNIT + shrinkage
            observed = logit((own[HITS] / _UNIT + expected) / runs)
            foreseen = logit((own[RUNS] / _UNIT * mean + expected) / runs)
            shift += (share if place else 1.0 - share) * (observed - foreseen)
    return shift


@compiled
def slide(columns: Columns, sums: Sums, oldest: int, before: Span, after: Span) -> None:
    """Count the rows ``after`` in place of the rows ``before``; compute logits that are missing.

    Args:
        columns: the runs.
        sums: updated.
        oldest: first row of all.
        before: the rows that are counted.
        after: the rows to count.
    """
    begin, end = after
    first, stop = before
    if not 0 <= first <= begin <= stop <= end or first == stop:
        first = stop = begin
        sums[:] = 0
    for row in range(first, begin):
        count_row(columns, sums, row, -1)
    for row in range(stop, end):
        if np.isnan(columns[0][LOGITS[0], row]):
            note_row(columns, oldest, row)
        count_row(columns, sums, row, 1)


@compiled
def note_row(columns: Columns, oldest: int, row: int) -> None:
    """Note a run's logits and its weight; runs of unknown users do not count."""
    numbers, attributes, _ = columns
    user, request = attributes[USER, row], numbers[REQUEST, row]
    rows = (oldest, row, attributes[PREVIOUS, row])
    start = numbers[END, row] - numbers[RUNTIME, row]
    for stage, used in enumerate(STAGES):
        elapsed = used * request
        numbers[LOGITS[stage], row] = NOT_REACHED
        if elapsed <= numbers[RUNTIME, row]:
            time = start + elapsed if stage else numbers[SUBMIT, row]
            job = (user, attributes[APPLICATION, row], request, width(numbers, row), time)
            features, _ = features_at(columns, rows, job)
            numbers[LOGITS[stage], row] = running_logit(columns, rows, job, features, elapsed)
    numbers[WEIGHT, row] = NOT_COUNTED if user == UNKNOWN else weight_of(attributes, oldest, row)


@compiled
def weight_of(attributes: Ids, oldest: int, row: int) -> float:
    """Return the weight of a run: less than 1 for a user with most of the last runs."""
    other = row
    for _ in range(LAST_RUNS):
        other = attributes[PREVIOUS, other]
        if other < oldest:
            return 1.0
    runs_in_window = LAST_RUNS * WINDOW / (row - other)
    return min(1.0, MOST_OF_USER / runs_in_window)


@compiled
def count_row(columns: Columns, sums: Sums, row: int, change: int) -> None:
    """Count a run once more at each stage that it came to, or once less."""
    numbers, attributes, _ = columns
    weight = numbers[WEIGHT, row]
    if weight == NOT_COUNTED:
        return
    hit = 1.0 if numbers[RUNTIME, row] >= numbers[REQUEST, row] else 0.0
    for stage in range(len(STAGES)):
        found = numbers[LOGITS[stage], row]
        if found != NOT_REACHED:
            expected = probability_of(found)
            of_cluster = weight * hit + (1.0 - weight) * expected
            count(sums[EVERYBODY, stage], found, of_cluster, change)
            count(sums[1 + attributes[USER, row], stage], found, hit, change)


@compiled
def count(sums: Sums, found: float, hits: float, change: int) -> None:
    """Count a run, hits and expected hits at the two knots beside its logit."""
    knot, share = knot_of(found)
    expected = probability_of(found)
    for place in range(2):
        part = (share if place else 1.0 - share) * _UNIT
        sums[knot + place, RUNS] += change * int(np.rint(part))
        sums[knot + place, HITS] += change * int(np.rint(part * hits))
        sums[knot + place, EXPECTED] += change * int(np.rint(part * expected))
