"""Compilation of what rounds of tuning run, ahead of the first round."""

import numpy as np

from predictors.base import Question
from predictors.jobs import Completion, Submission
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import one_leaf
from predictors.methods.knn import KnnParameters
from predictors.tuning.adoption import Adopted
from predictors.tuning.knn_tunable import tune
from predictors.tuning.plan import TuningPlan
from predictors.tuning.tunables import fill_buffer

RUNS = 400
"""Number of invented runs that a round is played on."""


def warm_up() -> None:
    """Compile the methods as rounds call them, or load them from the cache."""
    runs = invented_runs()
    fill_buffer(runs, Attention(), capacity=RUNS, prices=[1.0])
    _compile_forest(runs)
    plan = TuningPlan(history=100, training=100, test=100, generations=1)
    tune(runs, Adopted(now=KnnParameters()), plan)


def _compile_forest(runs: list[Completion]) -> None:
    """Compile forest as predictions and as rounds call it, with trees of one leaf."""
    forest = Forest(learned=one_leaf(attention=0.5))
    for run in runs:
        forest.observe(run)
    forest.features()
    forest.estimates_of_last(1, np.array([1.0]))
    for question in (Question(), Question(elapsed=1.0, explain=True)):
        forest.ask(runs[-1].submission, question)
    forest.predict(runs[-1].submission)
    forest.quantiles(runs[-1].submission, (0.5,))


def invented_runs() -> list[Completion]:
    """Return runs of five users, one after the other."""
    return [
        Completion(
            submission=Submission(
                user=f"u{number % 5}",
                requested_walltime=3600.0,
                submit_time=100.0 * number,
                requested_processors=1,
            ),
            start_time=100.0 * number,
            end_time=100.0 * number + 50.0,
            runtime=50.0,
        )
        for number in range(RUNS)
    ]
