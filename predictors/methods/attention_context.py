"""Machine code that says what kind of user, job and cluster it is: the context of all atoms."""

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import REQUEST, RUNTIME, Floats, usage
from predictors.methods.attention_features import ASKED, ENDED, RAN, Question, Rows, Singles

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
def describe_habits(known: Floats, own: int, question: Question, context: Singles) -> None:
    """What the user's last runs say about her: usages, changes, and when the last one ended.

    Args:
        known: of the runs behind atoms, of which the user's are the first, the newest foremost.
        own: how many runs the user has.
        question: the numbers of the job.
        context: some entries of which are written.
    """
    runs = min(own, HABIT)
    context[19] = runs == 0
    if runs == 0:
        return
    context[20] = min(3.0, np.log1p(max(0.0, question[3] - known[ENDED, 0]) / 3600) / 3)
    context[21] = known[ASKED, 0] == question[0]
    runtimes, usages = np.empty(runs), np.empty(runs)
    full = short = 0
    total = 0.0
    for run in range(runs):
        asked = known[ASKED, run]
        share = min(1.0, max(1.0, known[RAN, run]) / asked)
        runtimes[run], usages[run] = np.log(share * asked), np.log(share)
        total += share
        full += share >= 0.95
        short += share < 0.05
    context[5], context[6], context[7] = total / runs, full / runs, short / runs
    if runs > 1:
        describe_changes(known[ASKED], runtimes, usages, context)


@compiled
def describe_changes(asked: Floats, runtimes: Floats, usages: Floats, context: Singles) -> None:
    """How much runtimes and usages, given as logarithms, change from run to run."""
    of_runtimes = of_usages = 0.0
    changed = 0
    changed_runtimes = changed_usages = 0.0
    pairs = len(runtimes) - 1
    for run in range(1, pairs + 1):
        of_runtime = min(3.0, abs(runtimes[run] - runtimes[run - 1]))
        of_usage = min(3.0, abs(usages[run] - usages[run - 1]))
        of_runtimes += of_runtime
        of_usages += of_usage
        if asked[run] != asked[run - 1]:
            changed += 1
            changed_runtimes += of_runtime
            changed_usages += of_usage
    context[8], context[9] = of_runtimes / pairs, of_usages / pairs
    context[10] = changed / pairs
    if changed > 0:
        context[11], context[12] = changed_runtimes / changed, changed_usages / changed
        context[13] = min(2.0, max(-2.0, context[11] - context[12]))


@compiled
def describe_like(known: Floats, like: Rows, count: int, context: Singles) -> None:
    """How much runtimes change from like run to like run; ``like`` has the places of ``count``."""
    if count < 2:
        return
    logarithms = np.empty(count)
    for index in range(count):
        run = like[index]
        logarithms[index] = np.log(max(1.0, min(known[RAN, run], known[ASKED, run])))
    total = 0.0
    for index in range(1, count):
        total += min(3.0, abs(logarithms[index] - logarithms[index - 1]))
    context[14], context[15] = total / (count - 1), 1


@compiled
def describe_cluster(
    numbers: Floats, rows: tuple[int, int], question: Question, scale: float, context: Singles
) -> None:
    """How the cluster's last runs used their requests, and the job's own size."""
    first, stop = rows
    total = full = short = 0.0
    for row in range(first, stop):
        share = usage(numbers[RUNTIME, row], numbers[REQUEST, row])
        total += share
        full += share >= 0.95
        short += share < 0.05
    if stop > first:
        runs = stop - first
        context[16], context[17], context[18] = total / runs, full / runs, short / runs
    context[2] = (np.log(question[0]) - 9) / 2
    context[3] = min(4.0, max(0.0, np.log(question[1]) / 4))
    context[4] = min(3.0, max(-3.0, np.log(question[0] / max(scale, 1.0)) / 2))
