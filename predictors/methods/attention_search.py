"""Machine code that weighs what a runtime may be, and decides what to answer."""

import numpy as np

from predictors.compiled import compiled
from predictors.distribution import cheapest
from predictors.memory.columns import Columns, Floats
from predictors.methods.attention_atoms import ATOMS, gather
from predictors.methods.attention_context import CONTEXT
from predictors.methods.attention_features import FEATURES, Atoms, Names, Question, Rows, Singles
from predictors.methods.attention_network import Layers, weigh

_FEATURES, _CONTEXT = len(FEATURES), len(CONTEXT)


@compiled
def room() -> Atoms:
    """Arrays for the atoms of one job."""
    return (
        np.empty((_FEATURES, ATOMS), np.float32),
        np.empty(ATOMS),
        np.empty(ATOMS, np.int64),
        np.empty(_CONTEXT, np.float32),
    )


@compiled
def least_cost(
    columns: Columns,
    window: tuple[int, int, float, int],
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
def least_costs(  # noqa: PLR0913, PLR0917 - one more than least_cost, which must be fast
    columns: Columns,
    window: tuple[int, int, float, int],
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
    window: tuple[int, int, float, int],
    history: int,
    job: tuple[Names, Question],
    layers: Layers,
) -> tuple[Floats, Floats, Rows]:
    """Values, weights and rows of the runs; none of them where nothing is known of the job."""
    atoms = room()
    count, _, _, _ = gather(columns, window, history, job, atoms)
    if count == 1:
        count = 0
        return np.empty(count), np.empty(count), np.empty(count, np.int64)
    return in_order(atoms, count, layers)


@compiled
def atoms_of(
    columns: Columns,
    window: tuple[int, int, float, int],
    history: int,
    job: tuple[Names, Question],
) -> tuple[Singles, Floats, Singles]:
    """Features, values and context of a job; the request alone where nothing is known of it."""
    atoms = room()
    count, _, _, _ = gather(columns, window, history, job, atoms)
    features, values, _, context = atoms
    return features[:, :count].copy(), values[:count].copy(), context


@compiled
def in_order(atoms: Atoms, count: int, layers: Layers) -> tuple[Floats, Floats, Rows]:
    """Values in ascending order, with their weights and rows."""
    features, values, rows, context = atoms
    weights = weigh(features, context, count, layers)
    order = np.argsort(values[:count])
    return values[order], weights[order].astype(np.float64), rows[order]
