"""One round of tuning searches on training jobs and decides on test jobs unknown to the search."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from predictors.jobs import Completion
from predictors.methods.knn import LONGEST_HISTORY, KnnParameters
from predictors.tuning.batch import MOST_NEIGHBOURS, Batch, batch_of
from predictors.tuning.exhaustive import exhaustive
from predictors.tuning.genetic import genetic
from predictors.tuning.objective import Errors
from predictors.tuning.plan import TuningPlan
from predictors.tuning.search import Found, ProgressReport, untold

Search = Callable[..., Found]
"""(batch, plan, report=...) -> what it found."""

SEARCHES: Mapping[str, Search] = {"exhaustive": exhaustive, "genetic": genetic}
"""The searches of a plan."""


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
    report: ProgressReport = untold,
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
    searched = plan.unsearched(in_force)
    after = divided(ordered, plan, in_force, searched)
    # Parameters that compare features otherwise have other neighbours.
    same = searched.metric == in_force.metric
    before = after if same else divided(ordered, plan, in_force, in_force)
    found = SEARCHES[plan.search](after.training, plan, report=report)
    return judge(found, before, after, in_force, plan)


class Divided(NamedTuple):
    """The jobs of a round."""

    training: Batch
    test: Batch

    def trial(self, parameters: KnnParameters) -> Trial:
        """Parameters and what they give."""
        return Trial(
            parameters=parameters,
            training=self.training.errors(parameters),
            test=self.test.errors(parameters),
        )


def divided(
    ordered: Sequence[Completion],
    plan: TuningPlan,
    in_force: KnnParameters,
    unsearched: KnnParameters,
) -> Divided:
    """The newest completions as the plan divides them, with the neighbours of each job."""
    training_from, test_from = plan.divide(len(ordered))
    batch = batch_of(
        ordered,
        ordered[training_from:],
        longest_history=max(LONGEST_HISTORY, in_force.history),
        most_neighbours=max(MOST_NEIGHBOURS, in_force.neighbours),
        unsearched=unsearched,
    )
    size = test_from - training_from
    return Divided(batch.select(slice(0, size)), batch.select(slice(size, None)))


def judge(
    found: Found, before: Divided, after: Divided, in_force: KnnParameters, plan: TuningPlan
) -> Round:
    """Adopt what a search on the training jobs found, if it wins on the test jobs.

    Args:
        found: by the search.
        before: the jobs as the parameters in force compare them.
        after: the same jobs as the plan compares them.
        in_force: the parameters that have to be beaten.
        plan: says what is better.
    """
    old, new = before.trial(in_force), after.trial(found.parameters)

    def cost(trial: Trial) -> float:
        return trial.test.cost(plan.penalty, plan.fitness)

    return Round(
        before=old,
        after=new,
        adopted=cost(new) < cost(old),
        costs=found.costs,
        evaluations=found.evaluations,
        training_jobs=len(after.training),
        test_jobs=len(after.test),
    )
