"""One round of tuning searches on training jobs and decides on test jobs unknown to the search."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from predictors.jobs import Completion
from predictors.methods.knn import LONGEST_HISTORY, KnnParameters
from predictors.tuning.batch import MOST_NEIGHBOURS, Batch, batch_of
from predictors.tuning.exhaustive import exhaustive
from predictors.tuning.genetic import genetic
from predictors.tuning.objective import Errors
from predictors.tuning.plan import TuningPlan
from predictors.tuning.search import Found, Report, untold

SEARCHES: Mapping[str, Callable[..., Found]] = {"exhaustive": exhaustive, "genetic": genetic}
"""The searches of a plan; all take a batch, a penalty, a seed and a report."""


class Trial(Struct, frozen=True, kw_only=True):
    """Parameters and their errors on the training and on the test jobs."""

    parameters: KnnParameters
    training: Errors
    test: Errors


class Round(Struct, frozen=True, kw_only=True):
    """The result of a round of tuning.

    Attributes:
        before: the parameters that were in force.
        after: the best of the search.
        adopted: whether ``after`` beat ``before`` on the test jobs.
        costs: the best cost on the training jobs after each generation or step, in seconds.
        evaluations: number of sets of parameters that were tried.
        training_jobs: number of jobs on which they were tried.
        test_jobs: number of jobs on which ``before`` and ``after`` were compared.
    """

    before: Trial
    after: Trial
    adopted: bool
    costs: tuple[float, ...]
    evaluations: int
    training_jobs: int
    test_jobs: int

    @property
    def parameters(self) -> KnnParameters:
        """The parameters to be in force after the round."""
        return self.after.parameters if self.adopted else self.before.parameters


def tune(
    completions: Sequence[Completion],
    in_force: KnnParameters,
    plan: TuningPlan,
    report: Report = untold,
) -> Round:
    """Search for better parameters on the newest completions.

    Args:
        completions: completions of one cluster, in the order of their observation.
        in_force: the present parameters, which a better set has to beat.
        plan: the jobs to look at, and the search.
        report: called with the progress.

    Raises:
        TooShortHistoryError: there are too few completions.
    """
    ordered = sorted(completions, key=lambda completion: completion.end_time)[-plan.jobs :]
    training_from, test_from = plan.divide(len(ordered))
    batch = batch_of(
        ordered,
        ordered[training_from:],
        longest_history=max(LONGEST_HISTORY, in_force.history),
        most_neighbours=max(MOST_NEIGHBOURS, in_force.neighbours),
        scaling=in_force.scaling,
    )
    training = batch.select(slice(0, test_from - training_from))
    test = batch.select(slice(test_from - training_from, None))
    found = SEARCHES[plan.search](training, plan.penalty, seed=plan.seed, report=report)
    return judge(found, training, test, in_force, plan)


def judge(
    found: Found, training: Batch, test: Batch, in_force: KnnParameters, plan: TuningPlan
) -> Round:
    """Adopt the parameters that the search found if they win on the test jobs."""

    def trial(parameters: KnnParameters) -> Trial:
        return Trial(
            parameters=parameters,
            training=training.errors(parameters),
            test=test.errors(parameters),
        )

    before, after = trial(in_force), trial(found.parameters)
    return Round(
        before=before,
        after=after,
        adopted=after.test.cost(plan.penalty) < before.test.cost(plan.penalty),
        costs=found.costs,
        evaluations=found.evaluations,
        training_jobs=len(training),
        test_jobs=len(test),
    )
