"""Machine code that says what kind of user, job and cluster it is: the context of all atoms."""

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import END, PREVIOUS, REQUEST, RUNTIME, Columns, Floats
from predictors.methods.attention_features import Question, Singles

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

HABIT = 24
"""The user's last runs that tell her habits, which are part of the context."""

CLUSTER = 64
"""The cluster's last runs that tell how requests are used on it."""


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
