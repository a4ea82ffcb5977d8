"""Machine code that weighs what a runtime may be, and decides what to answer."""

import numpy as np

from predictors.compiled import compiled
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
    SPREAD,
    SUBMIT,
    USER,
    Columns,
    Floats,
    Window,
    width,
    within,
)
from predictors.memory.job_columns import Log, Turn, asked_of
from predictors.memory.table_columns import Table, keep, window_of
from predictors.methods.attention_atoms import ATOMS, gather
from predictors.methods.attention_context import CONTEXT
from predictors.methods.attention_features import (
    FEATURES,
    KNOWN_OF_RUN,
    Atoms,
    Names,
    Question,
    Rows,
    Singles,
)
from predictors.methods.attention_network import Layers, weigh
from predictors.ordering import ascending
from predictors.uncertainty import Bounds, Wanted, bounds, rank_row

_FEATURES, _CONTEXT = len(FEATURES), len(CONTEXT)


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
    layers: Layers,
) -> tuple[int, int, float]:
    """How many runs of the user and of others there are, and the estimate in seconds.

    Args:
        columns: the runs.
        window: first row, end of the rows, the time by which a run must have ended, and the last
            row of the user.
        settings: the price, and among how many of the cluster's last runs they are sought.
        job: ids and numbers of the job.
        layers: the weights of the network.
    """
    atoms = room()
    price, history = settings
    count, own, others, scale = gather(columns, window, history, job, atoms)
    if count == 1:
        return 0, 0, 0.0
    values, weights, _ = in_order(atoms, count, layers)
    return own, others, cheapest(values, weights, count, job[1][0], price * scale)


@compiled
def play(
    method: tuple[tuple[float, int, int, Layers], Table], log: Log, turn: Turn, seconds: Floats
) -> None:
    """Observe the jobs that have ended, then predict those that are asked about."""
    (price, history, kept, layers), table = method
    numbers, ids = log[0]
    for place in range(turn[0], turn[1]):
        keep(table, kept, log, place)
    for job in range(turn[2], turn[3]):
        user, request, submitted = asked_of(log[0], job)
        seconds[job] = request
        if user < 0:
            continue
        names = (user, ids[GROUP, job], ids[QUEUE, job], ids[APPLICATION, job])
        question = (request, width(numbers, job), numbers[MEMORY, job], submitted)
        own, others, found = least_cost(
            table[0], window_of(table, log, job), (price, history), (names, question), layers
        )
        if own + others > 0:
            seconds[job] = within(found, request)


@compiled
def certain(  # noqa: PLR0913, PLR0917 - one more than least_cost, which must be fast
    columns: Columns,
    window: Window,
    settings: tuple[float, int],
    job: tuple[Names, Question],
    layers: Layers,
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
    values, weights, _ = in_order(atoms, count, layers)
    bins, asked = certainty
    counts = (bins, calibration.known_at(columns, window, history))
    return own, others, bounds(values, weights, (request, price * scale), counts, asked)


@compiled
def least_costs(  # noqa: PLR0913, PLR0917 - one more than least_cost, which must be fast
    columns: Columns,
    window: Window,
    history: int,
    job: tuple[Names, Question],
    layers: Layers,
    prices: Floats,
) -> Floats:
    """The estimate in seconds at each price; none where nothing is known of the job."""
    atoms = room()
    count, _, _, scale = gather(columns, window, history, job, atoms)
    estimates = np.empty(len(prices) if count > 1 else 0)
    if count == 1:
        return estimates
    values, weights, _ = in_order(atoms, count, layers)
    for index in range(len(prices)):
        estimates[index] = cheapest(values, weights, count, job[1][0], prices[index] * scale)
    return estimates


@compiled
def distribution(
    columns: Columns,
    window: Window,
    history: int,
    job: tuple[Names, Question],
    layers: Layers,
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
    values, weights, rows = in_order(atoms, count, layers)
    return values, weights, rows, counts


@compiled
def rank(columns: Columns, rows: tuple[int, int, int], history: int, layers: Layers) -> None:
    """Rank each of the rows in the distribution that was predicted for it at its submission.

    Only the ``history`` rows before it are looked at, so that the rank never rests on more than
    is remembered.

    Args:
        columns: the runs.
        rows: the first of all, and those to rank: from one on and before another.
        history: among how many of the last runs like ones are sought.
        layers: the weights of the network.
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
        values, weights, _ = in_order(atoms, count, layers)
        rank_row(numbers, row, values, weights)


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
def in_order(atoms: Atoms, count: int, layers: Layers) -> tuple[Floats, Floats, Rows]:
    """Values in ascending order, with their weights and rows."""
    features, values, rows, context, _ = atoms
    weights = weigh(features, context, count, layers)
    order = ascending(values[:count])
    return values[order], weights[order].astype(np.float64), rows[order]
