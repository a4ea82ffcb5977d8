"""Compilation of what rounds of tuning run, ahead of the first round."""

from predictors.answers import DistributionMethod
from predictors.base import Question
from predictors.jobs import Completion, Submission
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import one_leaf
from predictors.methods.knn import KnnParameters
from predictors.methods.least_cost import LeastCost
from predictors.tuning.adoption import Adopted
from predictors.tuning.knn_tunable import tune
from predictors.tuning.plan import TuningPlan

RUNS = 400
"""Number of invented runs that a round is played on."""


def warm_up() -> None:
    """Compile the methods as rounds call them, or load them from the cache."""
    runs = invented_runs()
    for method in (Attention(), LeastCost(), Forest(learned=one_leaf(attention=0.5))):
        _compile(method, runs)
    plan = TuningPlan(history=100, training=100, test=100, generations=1)
    tune(runs, Adopted(now=KnnParameters()), plan)


def _compile(method: DistributionMethod, runs: list[Completion]) -> None:
    """Compile a method as predictions and as rounds call it."""
    for run in runs:
        method.observe(run)
    if isinstance(method, Forest):
        method.features()
    for question in (Question(), Question(elapsed=1.0, explain=True)):
        method.ask(runs[-1].submission, question)
    method.predict(runs[-1].submission)
    method.quantiles(runs[-1].submission, (0.5,))
    method.gains(runs[-1].submission)


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
