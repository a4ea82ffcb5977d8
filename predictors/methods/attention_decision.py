"""Weighs the support points of a job, and predicts its runtime: docs/attention.md.

The network's weights (equation 3) are blended with those of the handcrafted kernel (4), and mixed
with a prior for runtimes that no past run had, the tail mixture (5, 6).
"""

import numpy as np

from predictors.answers import Bounds, bounds_of, score_row
from predictors.base import SHORTEST_ESTIMATE
from predictors.candidates import Wanted, candidate_costs
from predictors.censoring import revised
from predictors.compiled import compiled, compiled_for_threads, of_same_types
from predictors.distribution import NO_ROW, Evidence
from predictors.memory.calibration import Calibrated, counts_at
from predictors.memory.choice import MOST_MEANS, write_costs
from predictors.memory.columns import (
    NONCONFORMITY,
    PIT,
    REQUEST,
    RUNTIME,
    USER,
    Columns,
    Floats,
    JobQuery,
    RowIds,
    RowWindow,
    Running,
    within,
)
from predictors.memory.fact_rows import JobFacts
from predictors.methods.attention_features import Singles, Support
from predictors.methods.attention_network import Layers, weigh_support
from predictors.methods.attention_support import RECENT, gather, no_support
from predictors.methods.kernel import ended_rows, job_of, weigh_runs, window_of

KERNEL_RUNS = 128
"""Number of the user's last runs that the kernel weighs."""

TAIL_STEPS = 8
"""Number of values of the tail mixture on each side of the median."""

Model = tuple[Layers, float, float]
"""The weights of the network, the kernel's share of all weight, and the number of runs that the
tail mixture counts for."""

Sorted = tuple[Floats, Floats]
"""Values in ascending order, in seconds, and their weights."""


@compiled
def evidence_of(
    columns: Columns, window: RowWindow, job: JobQuery, history: int, model: Model
) -> Evidence:
    """Return the distribution of a job's runtime, empty where no run counts for it.

    Args:
        history: number of the cluster's last runs that are searched.
    """
    support = no_support()
    count, own, others, mean = gather(columns, window, history, job, support)
    if count == 1:
        return Evidence(np.empty(0), np.empty(0), np.empty(0, np.int64), 0, 0, mean)
    values, weights, rows = weigh(columns, window, history, job, (support, count), model)
    return Evidence(values, weights, rows, own, others, mean)


distribution = of_same_types(evidence_of)
"""``evidence_of`` for calls from Python."""


@of_same_types
@compiled
def bounds(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    window: RowWindow,
    job: JobQuery,
    history: int,
    model: Model,
    wanted: Wanted,
    calibrated: Calibrated,
    running: Running,
    facts: JobFacts,
) -> Bounds:
    """Return the prediction by ``evidence_of``, which takes the first arguments."""
    found = evidence_of(columns, window, job, history, model)
    counts = counts_at(columns, window, calibrated)
    return bounds_of(found, job, wanted, (counts, calibrated[2]), running, facts)


@compiled_for_threads
def score_rows(
    columns: Columns,
    running: Singles,
    rows: tuple[int, int, int],
    settings: tuple[int, float],
    model: Model,
) -> None:
    """Write PIT value, score and costs of each of the rows, by what was predicted for it.

    Only the ``history`` rows before a row are looked at, so that what is written never depends on
    runs that the table may have dropped.

    Args:
        running: like jobs that ran at its submission, by row.
        rows: first row of all; begin and end of the rows to write.
        settings: number of last runs that are searched, and price of an underestimate.
    """
    oldest, begin, end = rows
    history, price = settings
    numbers, attributes, _ = columns
    nobody = np.zeros(running.shape[1], np.float32)
    support = no_support()
    for row in range(begin, end):
        numbers[PIT, row] = numbers[NONCONFORMITY, row] = -1.0
        if attributes[USER, row] < 0:
            continue
        job, window = job_of(columns, row), window_of(columns, row, max(oldest, row - history))
        count, own, others, mean = gather(columns, window, history, job, support)
        if count > 1:
            values, weights, runs = weigh(columns, window, history, job, (support, count), model)
            request, runtime = numbers[REQUEST, row], numbers[RUNTIME, row]
            found, is_revised = revised(
                Evidence(values, weights, runs, own, others, mean), running[row], request
            )
            score_row(numbers, row, found.values, found.weights, min(SHORTEST_ESTIMATE, request))
            others_running = nobody if is_revised else running[row]
            costs = candidate_costs(found, others_running, (request, runtime), price)
            write_costs(numbers, row, costs, MOST_MEANS * mean)


@of_same_types
@compiled
def network_inputs(
    columns: Columns, window: RowWindow, job: JobQuery, history: int
) -> tuple[Singles, Floats, Singles]:
    """Return features, values and context of a job; the request alone where no run counts."""
    support = no_support()
    count, _, _, _ = gather(columns, window, history, job, support)
    return support.features[:, :count].copy(), support.values[:count].copy(), support.context


@compiled
def weigh(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    window: RowWindow,
    history: int,
    job: JobQuery,
    points: tuple[Support, int],
    model: Model,
) -> tuple[Floats, Floats, RowIds]:
    """Return values in ascending order, their weights, and rows of the runs behind them.

    Args:
        history: number of last runs that are searched.
        points: support points of the job, and their number.
    """
    support, count = points
    layers, share, runs = model
    _, stop = ended_rows(columns[0], window, history)
    most = KERNEL_RUNS if share > 0.0 else 0
    kernel_rows, kernel_weights = weigh_runs(columns, window, stop, job, most)
    by_network = weigh_support(support.features, support.context, count, layers)
    weights = blend(by_network, kernel_weights, share)
    values, rows = np.empty(len(weights)), np.empty(len(weights), np.int64)
    for index in range(count):  # slices take seconds to compile
        values[index], rows[index] = support.values[index], support.rows[index]
    for index in range(count, len(weights)):
        row = kernel_rows[RECENT + index - count]
        values[index], rows[index] = within(columns[0][RUNTIME, row], job.request), row
    order = np.argsort(values, kind="mergesort")
    return mix_tails((values[order], weights[order]), rows[order], job.request, runs)


@compiled
def blend(by_network: Singles, kernel_weights: Floats, share: float) -> Floats:
    """Return the weights of the support points, and of older runs behind them; their sum is 1.

    Args:
        by_network: weights of the support points by the network; their sum is 1.
        kernel_weights: weights of the user's last runs by the kernel, newest first. The first
            RECENT of these runs are the first support points.
        share: of all weight that the kernel has, if the user has runs.
    """
    count, total = len(by_network), kernel_weights.sum()
    rest, each = (1.0 - share, share / total) if total > 0.0 else (1.0, 0.0)
    recent = min(RECENT, len(kernel_weights))
    weights = np.empty(count + len(kernel_weights) - recent)
    for index in range(count):
        weights[index] = rest * by_network[index]
    for index in range(recent):
        weights[index] += each * kernel_weights[index]
    for index in range(count, len(weights)):
        weights[index] = each * kernel_weights[recent + index - count]
    return weights


@compiled
def mix_tails(
    points: Sorted, rows: RowIds, request: float, runs: float
) -> tuple[Floats, Floats, RowIds]:
    """Mix a distribution with a prior for runtimes that no past run had: equations 5 and 6.

    Half of the prior is below the median, evenly by time, and half between the median and the
    request, evenly by the logarithm of time. So the median stays, and both tails get heavier.

    Args:
        points: the distribution; the sum of its weights is 1.
        rows: of the runs behind the values.
        runs: number of runs that the prior counts for, against the effective sample size of the
            weights; 0 leaves the distribution as it is.

    Returns:
        Values, weights and rows, NO_ROW for values of the prior.
    """
    values, weights = points
    if runs <= 0.0:
        return values, weights, rows
    share = runs / (runs + 1.0 / np.sum(weights * weights))
    tails = tail_values(median(values, weights), request)
    all_values = np.empty(len(values) + len(tails))
    all_weights = np.empty(len(all_values))
    all_rows = np.empty(len(all_values), np.int64)
    own = other = 0
    for place in range(len(all_values)):
        is_tail = own == len(values) or (other < len(tails) and tails[other] < values[own])
        if is_tail:
            all_values[place], all_rows[place] = tails[other], NO_ROW
            all_weights[place] = share / len(tails)
            other += 1
        else:
            all_values[place], all_rows[place] = values[own], rows[own]
            all_weights[place] = (1.0 - share) * weights[own]
            own += 1
    return all_values, all_weights, all_rows


@compiled
def tail_values(middle: float, request: float) -> Floats:
    """Return the values of the tail mixture around a median, in ascending order, in seconds."""
    values = np.empty(2 * TAIL_STEPS)
    factor = (request / middle) ** (1.0 / TAIL_STEPS)
    longer = middle
    for step in range(TAIL_STEPS):
        longer = min(request, longer * factor)
        values[step] = middle * (step + 0.5) / TAIL_STEPS
        values[TAIL_STEPS + step] = longer
    return values


@compiled
def median(values: Floats, weights: Floats) -> float:
    """Return the first of the values that has half of all weight with those before it."""
    reached = 0.0
    for place in range(len(values)):
        reached += weights[place]
        if reached >= 0.5:
            return float(values[place])
    return float(values[len(values) - 1])
