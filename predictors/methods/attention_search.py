"""Machine code that weighs what a runtime may be, and decides what to answer."""

import numpy as np

from predictors.answers import Bounds, Wanted, bounds, rank_row
from predictors.base import SHORTEST_ESTIMATE
from predictors.compiled import compiled, compiled_for_threads
from predictors.distribution import cheapest
from predictors.memory import calibration
from predictors.memory.calibration import Bins
from predictors.memory.columns import (
    APPLICATION,
    GROUP,
    LEVEL,
    MEMORY,
    PREVIOUS,
    QUEUE,
    REQUEST,
    RUNTIME,
    SPREAD,
    SUBMIT,
    USER,
    Columns,
    Floats,
    Window,
    width,
    within,
)
from predictors.methods.attention_atoms import ATOMS, RECENT, gather
from predictors.methods.attention_features import (
    CONTEXT,
    FEATURES,
    KNOWN_OF_RUN,
    Atoms,
    Names,
    Question,
    Rows,
    Singles,
)
from predictors.methods.attention_network import Layers, weigh
from predictors.methods.least_cost_search import Sorted, own_runs

_FEATURES, _CONTEXT = len(FEATURES), len(CONTEXT)

RUNS_BY_HAND = 128
"""How many of the user's last runs are weighed by hand-chosen likeness."""

Model = tuple[Layers, float, float]
"""The weights of the network, the share of all weight that goes by hand-chosen likeness, and how
many runs the runtimes that no past run had count for."""

About = tuple[Columns, Window, int, tuple[Names, Question]]
"""The first arguments of the functions that ask about a job."""


@compiled
def room() -> Atoms:
    """Arrays for the atoms of one job."""
    return (
        np.empty((_FEATURES, ATOMS), np.float32),
        np.empty(ATOMS),
        np.empty(ATOMS, np.int64),
        np.empty(_CONTEXT, np.float32),
        np.empty((KNOWN_OF_RUN, ATOMS)),
    )


@compiled
def least_cost(
    columns: Columns,
    window: Window,
    settings: tuple[float, int],
    job: tuple[Names, Question],
    model: Model,
) -> tuple[int, int, float]:
    """How many runs of the user and of others there are, and the estimate in seconds.

    Args:
        columns: the runs.
        window: first row, end of the rows, the time by which a run must have ended, and the last
            row of the user.
        settings: the price, and among how many of the cluster's last runs they are sought.
        job: ids and numbers of the job.
        model: what weighs.
    """
    atoms = room()
    price, history = settings
    count, own, others, scale = gather(columns, window, history, job, atoms)
    if count == 1:
        return 0, 0, 0.0
    values, weights, _ = weighed((columns, window, history, job), atoms, count, model)
    return own, others, cheapest(values, weights, len(values), job[1][0], price * scale)


@compiled
def certain(  # noqa: PLR0913, PLR0917 - one more than least_cost, which must be fast
    columns: Columns,
    window: Window,
    settings: tuple[float, int],
    job: tuple[Names, Question],
    model: Model,
    certainty: tuple[Bins, Wanted],
) -> tuple[int, int, Bounds]:
    """What ``least_cost`` answers, with ``bounds`` in place of the estimate.

    ``certainty`` is what the calibration has counted, and what is asked.
    """
    atoms = room()
    price, history = settings
    count, own, others, scale = gather(columns, window, history, job, atoms)
    request = job[1][0]
    if count == 1:
        return 0, 0, (request, 0.0, request, request, False)
    values, weights, _ = weighed((columns, window, history, job), atoms, count, model)
    bins, asked = certainty
    counts = (bins, calibration.known_at(columns, window, history))
    return own, others, bounds(values, weights, (request, price * scale), counts, asked)


@compiled
def least_costs(  # noqa: PLR0913, PLR0917 - one more than least_cost, which must be fast
    columns: Columns,
    window: Window,
    history: int,
    job: tuple[Names, Question],
    model: Model,
    prices: Floats,
) -> Floats:
    """The estimate in seconds at each price; none where nothing is known of the job."""
    atoms = room()
    count, _, _, scale = gather(columns, window, history, job, atoms)
    estimates = np.empty(len(prices) if count > 1 else 0)
    if count == 1:
        return estimates
    values, weights, _ = weighed((columns, window, history, job), atoms, count, model)
    for index in range(len(prices)):
        price = prices[index] * scale
        estimates[index] = cheapest(values, weights, len(values), job[1][0], price)
    return estimates


@compiled
def distribution(
    columns: Columns,
    window: Window,
    history: int,
    job: tuple[Names, Question],
    model: Model,
) -> tuple[Floats, Floats, Rows, tuple[int, int, float]]:
    """Values, weights and rows of the runs; none of them where nothing is known of the job.

    And how many runs of the user and of others there are, and the mean runtime of the cluster.
    """
    atoms = room()
    count, own, others, scale = gather(columns, window, history, job, atoms)
    counts = (own, others, scale)
    if count == 1:
        count = 0
        return np.empty(count), np.empty(count), np.empty(count, np.int64), counts
    values, weights, rows = weighed((columns, window, history, job), atoms, count, model)
    return values, weights, rows, counts


@compiled_for_threads
def rank(columns: Columns, rows: tuple[int, int, int], history: int, model: Model) -> None:
    """Rank each of the rows in the distribution that was predicted for it at its submission.

    Only the ``history`` rows before it are looked at, so that the rank never rests on more than
    is remembered.

    Args:
        columns: the runs.
        rows: the first of all, and those to rank: from one on and before another.
        history: among how many of the last runs like ones are sought.
        model: what weighs.
    """
    oldest, begin, end = rows
    numbers, attributes, _ = columns
    atoms = room()
    for row in range(begin, end):
        numbers[LEVEL, row] = numbers[SPREAD, row] = -1.0
        if attributes[USER, row] < 0:
            continue
        names = (
            attributes[USER, row],
            attributes[GROUP, row],
            attributes[QUEUE, row],
            attributes[APPLICATION, row],
        )
        question = (
            numbers[REQUEST, row],
            width(numbers, row),
            numbers[MEMORY, row],
            numbers[SUBMIT, row],
        )
        window = (max(oldest, row - history), row, numbers[SUBMIT, row], attributes[PREVIOUS, row])
        count, _, _, _ = gather(columns, window, history, (names, question), atoms)
        if count == 1:
            continue
        about = (columns, window, history, (names, question))
        values, weights, _ = weighed(about, atoms, count, model)
        rank_row(numbers, row, values, weights, min(SHORTEST_ESTIMATE, numbers[REQUEST, row]))


@compiled
def atoms_of(
    columns: Columns,
    window: Window,
    history: int,
    job: tuple[Names, Question],
) -> tuple[Singles, Floats, Singles]:
    """Features, values and context of a job; the request alone where nothing is known of it."""
    atoms = room()
    count, _, _, _ = gather(columns, window, history, job, atoms)
    features, values, _, context, _ = atoms
    return features[:, :count].copy(), values[:count].copy(), context


@compiled
def weighed(about: About, atoms: Atoms, count: int, model: Model) -> tuple[Floats, Floats, Rows]:
    """Values in ascending order, with their weights and rows."""
    features, values, rows_of_atoms, context, _ = atoms
    runs, likenesses, rows = by_hand(about, model[1])
    values, weights, order = in_order(
        (features, values[:count], context), (runs, likenesses), model
    )
    for place in range(len(order)):
        if order[place] >= count:
            order[place] = rows[RECENT + order[place] - count]
        elif order[place] != UNSEEN:
            order[place] = rows_of_atoms[order[place]]
    return values, weights, order


@compiled
def in_order(
    atoms: tuple[Singles, Floats, Singles], by_hand: Sorted, model: Model
) -> tuple[Floats, Floats, Rows]:
    """Values in ascending order, with their weights and where each was: among atoms or behind.

    Values that no past run had were at UNSEEN.

    Args:
        atoms: their features, which may have room for more, their values, and the context. The
            last value is the request.
        by_hand: as ``blended`` takes it.
        model: what weighs.
    """
    features, values, context = atoms
    layers, share, runs = model
    request = values[len(values) - 1]
    by_network = weigh(features, context, len(values), layers)
    values, weights = blended((values, by_network), by_hand, share)
    order = np.argsort(values, kind="mergesort")
    return with_unseen((values[order], weights[order]), order, request, runs)


@compiled
def by_hand(about: About, share: float) -> tuple[Floats, Floats, Rows]:
    """What the user's last runs took, how like the job least-cost finds them, and their rows.

    None of them where they have no share in the distribution.
    """
    columns, window, history, (names, question) = about
    request = question[0]
    most = RUNS_BY_HAND if share > 0.0 else 0
    alike, size = (names[2], names[3]), (request, question[1])
    rows, likenesses = own_runs(columns, window, alike, size, (most, history))
    runs = np.empty(len(rows))
    for index in range(len(rows)):
        runs[index] = within(columns[0][RUNTIME, rows[index]], request)
    return runs, likenesses, rows


@compiled
def blended(atoms: tuple[Floats, Singles], by_hand: Sorted, share: float) -> tuple[Floats, Floats]:
    """The values of atoms and of older runs, and their weights, which add up to one.

    Args:
        atoms: their values, and what the network makes of them, which adds up to one.
        by_hand: the user's last runs, newest first, and how like the job they are. The first
            RECENT of them are the first atoms.
        share: of all weight that goes to ``by_hand``, if there are any.
    """
    of_atoms, by_network = atoms
    runs, likenesses = by_hand
    count, total = len(of_atoms), likenesses.sum()
    rest, each = (1.0 - share, share / total) if total > 0.0 else (1.0, 0.0)
    atoms_by_hand = min(RECENT, len(runs))
    older = len(runs) - atoms_by_hand
    values, weights = np.empty(count + older), np.empty(count + older)
    for index in range(count):
        values[index], weights[index] = of_atoms[index], rest * by_network[index]
    for index in range(atoms_by_hand):
        weights[index] += each * likenesses[index]
    for index in range(older):
        values[count + index] = runs[atoms_by_hand + index]
        weights[count + index] = each * likenesses[atoms_by_hand + index]
    return values, weights


STEPS = 8
"""How many values stand for such runtimes on each side of the median."""

UNSEEN = -1
"""The place, and the row, of such a value."""


@compiled
def with_unseen(
    known: Sorted, places: Rows, request: float, runs: float
) -> tuple[Floats, Floats, Rows]:
    """The distribution, mixed with a guess that counts as if it were some past runs more.

    The fewer runs a distribution rests on, the more likely the next one is none of them. Half of
    the guess is below the median, evenly by time, and half between the median and the request,
    evenly by the logarithm of time. So the median stays, and both ends get heavier.

    Args:
        known: values in ascending order, with weights that add up to one.
        places: of the values, where they were before they were in order.
        request: the longest that the job may take.
        runs: how many past runs the guess counts for; the distribution counts for as many as
            would have its squares of weights if they weighed alike. 0 leaves it as it is.

    Returns:
        Values, weights and places, which are UNSEEN where the value is of the guess.
    """
    values, weights = known
    if runs <= 0.0:
        return values, weights, places
    share = runs / (runs + 1.0 / np.sum(weights * weights))
    guessed = guess(median(values, weights), request)
    all_values = np.empty(len(values) + len(guessed))
    all_weights = np.empty(len(all_values))
    all_places = np.empty(len(all_values), np.int64)
    own = other = 0
    for place in range(len(all_values)):
        is_guessed = own == len(values) or (other < len(guessed) and guessed[other] < values[own])
        if is_guessed:
            all_values[place], all_places[place] = guessed[other], UNSEEN
            all_weights[place] = share / len(guessed)
            other += 1
        else:
            all_values[place], all_places[place] = values[own], places[own]
            all_weights[place] = (1.0 - share) * weights[own]
            own += 1
    return all_values, all_weights, all_places


@compiled
def guess(middle: float, request: float) -> Floats:
    """The values that stand for runtimes that no past run had, in ascending order."""
    guessed = np.empty(2 * STEPS)
    factor = (request / middle) ** (1.0 / STEPS)
    longer = middle
    for step in range(STEPS):
        longer = min(request, longer * factor)
        guessed[step] = middle * (step + 0.5) / STEPS
        guessed[STEPS + step] = longer
    return guessed


@compiled
def median(values: Floats, weights: Floats) -> float:
    """The first of the values that has half of all weight with those before it."""
    reached = 0.0
    for place in range(len(values)):
        reached += weights[place]
        if reached >= 0.5:
            return float(values[place])
    return float(values[len(values) - 1])
