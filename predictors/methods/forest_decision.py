"""Computes the distribution of a job's runtime by a forest: see docs/predictors.md."""

import numpy as np

from predictors.answers import Bounds, bounds_of, score_row
from predictors.base import SHORTEST_ESTIMATE
from predictors.candidates import Wanted, candidate_costs
from predictors.censoring import revised
from predictors.compiled import compiled, compiled_for_threads, of_same_types
from predictors.distribution import Evidence
from predictors.memory.calibration import Calibrated, counts_at
from predictors.memory.choice import MOST_MEANS, write_costs
from predictors.memory.columns import (
    END,
    NONCONFORMITY,
    PIT,
    REQUEST,
    RUNTIME,
    USER,
    Columns,
    Ids,
    JobQuery,
    RowWindow,
    Running,
)
from predictors.memory.fact_rows import PLACES, JobFacts, describe_facts
from predictors.methods.attention_decision import Model, mix_tails
from predictors.methods.attention_features import Singles, Support
from predictors.methods.attention_support import no_support
from predictors.methods.forest_features import FEATURES, describe_job
from predictors.methods.forest_leaves import NO_LEAF, Leaves, weigh_leaves
from predictors.methods.forest_trees import Trees, leaf_of
from predictors.methods.kernel import ended_rows, job_of, window_of

Settings = tuple[int, int, float, int, float, float, bool]
"""Number of last runs that attention searches, number of last runs whose leaves count, share of all
weight that attention has, number of trees that predict, times (Unix seconds) until which runs are
scored by the other trees, and until which the other trees were learned, too, and whether trees
divide by further facts."""

_COUNT = len(FEATURES)


@compiled
def evidence_of(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    window: RowWindow,
    job: JobQuery,
    settings: Settings,
    model: Model,
    trees: Trees,
    leaves: Leaves,
    facts: JobFacts,
) -> Evidence:
    """Return the distribution of a job's runtime, empty where no run counts for it."""
    features = np.empty(_COUNT + (PLACES if settings[6] else 0), np.float32)
    if settings[6]:
        rows = (max(window.first, window.stop - settings[0]), window.newest, window.time)
        describe_facts(columns, facts[0], facts[1], rows, features[_COUNT:])
    found = describe_job(columns, window, settings[0], job, model, (no_support(), features))
    heads = np.full(len(trees.roots), NO_LEAF, np.int32)
    if len(found.values) > 0:
        for tree in range(settings[3]):
            heads[tree] = leaves.newest[leaf_of(trees, tree, features)]
    chains = (leaves.previous, heads, settings[3])
    return blended(columns, window, job, settings, (found, model[2]), chains)


distribution = of_same_types(evidence_of)
"""``evidence_of`` for calls from Python."""


@of_same_types
@compiled
def bounds(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    window: RowWindow,
    job: JobQuery,
    settings: Settings,
    model: Model,
    trees: Trees,
    leaves: Leaves,
    facts: JobFacts,
    wanted: Wanted,
    calibrated: Calibrated,
    running: Running,
) -> Bounds:
    """Return the prediction by ``evidence_of``, which takes the first arguments."""
    found = evidence_of(columns, window, job, settings, model, trees, leaves, facts)
    counts = counts_at(columns, window, calibrated)
    return bounds_of(found, job, wanted, (counts, calibrated[2]), running, facts)


@compiled
def blended(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    window: RowWindow,
    job: JobQuery,
    settings: Settings,
    attention: tuple[Evidence, float],
    chains: tuple[Ids, Ids, int],
) -> Evidence:
    """Return the distribution by the leaves, with a share of that by attention.

    Trees without a run in the job's leaf, as after a long job array of another user, have no say:
    their share is attention's, too.

    Args:
        attention: its distribution, and the number of runs that the tail mixture counts for.
        chains: previous row by tree and row, the row where the job's leaf begins, by tree, and the
            number of trees that are asked.
    """
    found, tail_runs = attention
    _, stop = ended_rows(columns[0], window, settings[1])
    rows = (max(window.first, stop - settings[1]), window.time)
    points, runs, answering = weigh_leaves(columns, chains[0], chains[1], rows, job)
    if answering == 0:
        return found
    values, weights, runs = mix_tails(points, runs, job.request, tail_runs)
    share = 1.0 - (1.0 - settings[2]) * answering / chains[2]
    if share > 0.0:
        values = np.concatenate((values, found.values))
        weights = np.concatenate(((1.0 - share) * weights, share * found.weights))
        runs = np.concatenate((runs, found.rows))
        order = np.argsort(values, kind="mergesort")
        values, weights, runs = values[order], weights[order], runs[order]
    return Evidence(values, weights, runs, found.own, found.others, found.mean_runtime)


@compiled_for_threads
def features_of_rows(
    columns: Columns, rows: tuple[int, int, int], history: int, model: Model, features: Singles
) -> None:
    """Write the features of runs as they were at their submissions; NaN where there are none.

    Only the ``history`` rows before a row are looked at, so that what is written never depends on
    runs that the table may have dropped.

    Args:
        rows: first row of all; begin and end of the rows.
        history: number of last runs that attention searches.
        features: by run, from ``begin`` on, and feature; overwritten.
    """
    oldest, begin, end = rows
    support = no_support()
    for row in range(begin, end):
        features[row - begin, :] = np.nan
        if columns[1][USER, row] >= 0:
            window = window_of(columns, row, max(oldest, row - history))
            work = (support, features[row - begin])
            describe_job(columns, window, history, job_of(columns, row), model, work)


@compiled_for_threads
def leaves_of_features(trees: Trees, features: Singles, begin: int, leaf: Ids) -> None:
    """Write the leaf of each run by tree, from the row ``begin`` on; NO_LEAF without features."""
    for run in range(len(features)):
        for tree in range(len(trees.roots)):
            is_known = not np.isnan(features[run, 0])
            leaf[tree, begin + run] = leaf_of(trees, tree, features[run]) if is_known else NO_LEAF


@compiled
def distribution_of_row(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    rows: tuple[int, int],
    settings: Settings,
    model: Model,
    leaves: Leaves,
    work: tuple[Support, Singles],
) -> tuple[Evidence, Evidence]:
    """Return what was predicted for a run at its submission: this distribution, and attention's.

    That of a run which the trees that predict were learned on is given by the other trees.

    Args:
        rows: the first row of all, and the row of the run.
        work: support points and features, both overwritten.
    """
    oldest, row = rows
    history, in_leaves, _, predicting, until, _, _ = settings
    job, window = job_of(columns, row), window_of(columns, row, max(oldest, row - history))
    found = describe_job(columns, window, history, job, model, work)
    counted = window_of(columns, row, max(oldest, row - in_leaves))
    heads = np.full(len(leaves.leaf), NO_LEAF, np.int32)
    is_new = columns[0][END, row] > until
    first, last = (0, predicting) if is_new else (predicting, len(heads))
    if len(found.values) > 0:
        for tree in range(first, last):
            heads[tree] = leaves.previous[tree, row]
    chains = (leaves.previous, heads, last - first)
    return blended(columns, counted, job, settings, (found, model[2]), chains), found


@compiled_for_threads
def score_rows(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    columns: Columns,
    running: Singles,
    rows: tuple[int, int, int],
    settings: Settings,
    model: Model,
    leaves: Leaves,
    price: float,
) -> None:
    """Write PIT value, score and costs of each of the rows, by what was predicted for it.

    The costs are those of candidates of ``auto``: the first is that of attention, the others of the
    mean of both distributions, which is attention alone for runs that all trees were learned on.

    Args:
        running: like jobs that ran at its submission, by row.
        rows: first row of all; begin and end of the rows to write.
        price: of an underestimate, in mean runtimes.
    """
    oldest, begin, end = rows
    numbers, attributes, _ = columns
    work = (no_support(), np.empty(_COUNT, np.float32))
    nobody = np.zeros(running.shape[1], np.float32)
    for row in range(begin, end):
        numbers[PIT, row] = numbers[NONCONFORMITY, row] = -1.0
        if attributes[USER, row] >= 0:
            found, attention = distribution_of_row(
                columns, (oldest, row), settings, model, leaves, work
            )
            if len(found.values) > 0:
                job = numbers[REQUEST, row], numbers[RUNTIME, row]
                found, _ = revised(found, running[row], job[0])
                score_row(numbers, row, found.values, found.weights, min(SHORTEST_ESTIMATE, job[0]))
                attention, _ = revised(attention, running[row], job[0])
                of_attention = candidate_costs(attention, nobody, job, price)
                costs = of_attention
                if numbers[END, row] > settings[5]:
                    costs = candidate_costs(found, nobody, job, price)
                first, estimate = of_attention[0], costs[0] if found.own > 0 else costs[1]
                costs = (first, estimate, costs[1], costs[2], first, first)
                write_costs(numbers, row, costs, MOST_MEANS * found.mean_runtime)
