"""One round of tuning: search on the training jobs, decide on test jobs the search never saw."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from predictors.jobs import Completion
from predictors.knn import KnnParameters
from predictors.parameters import choice, number, whole_number
from predictors.tuning.batch import batch_of
from predictors.tuning.exhaustive import exhaustive
from predictors.tuning.genetic import genetic
from predictors.tuning.objective import Errors
from predictors.tuning.search import Found, Report, untold

SEARCHES: Mapping[str, Callable[..., Found]] = {"exhaustive": exhaustive, "genetic": genetic}
"""The searches by name; all take a batch, a penalty, a seed and a report."""

FEWEST_JOBS = 1_000
"""With fewer completions than this nothing is tuned."""


class TooShortHistoryError(ValueError):
    """There are too few completions to tune on."""


class TuningPlan(Struct, frozen=True, kw_only=True):
    """What a round looks at, and what it wants.

    Attributes:
        history: h, completions before the training jobs, which only serve as neighbours.
        training: t1, jobs on which parameters are searched.
        test: t2, the newest jobs, on which the result has to beat the parameters in force. A new
            round is due when so many have ended since the last.
        penalty: price of underestimating; see Errors.cost.
        search: ``exhaustive`` or ``genetic``.
        seed: of the genetic search.
    """

    history: int = 5_000
    training: int = 5_000
    test: int = 2_000
    penalty: float = 1.0
    search: Literal["exhaustive", "genetic"] = "exhaustive"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what makes no sense; the message names the parameter."""
        whole_number("history", self.history, 0, 1_000_000)
        whole_number("training", self.training, 100, 1_000_000)
        whole_number("test", self.test, 100, 1_000_000)
        number("penalty", self.penalty, 0, 1_000)
        choice("search", self.search, SEARCHES)
        whole_number("seed", self.seed, 0, 2**32 - 1)

    @property
    def jobs(self) -> int:
        """Completions that a round looks at."""
        return self.history + self.training + self.test

    def divide(self, jobs: int) -> tuple[int, int]:
        """Where in ``jobs`` completions, oldest first, the training and the test jobs begin.

        A shorter history is divided in the same proportions.

        Raises:
            TooShortHistoryError: there are fewer than FEWEST_JOBS.
        """
        if jobs < min(self.jobs, FEWEST_JOBS):
            raise TooShortHistoryError(
                f"Tuning needs {min(self.jobs, FEWEST_JOBS)} completions, there are {jobs}."
            )
        share = min(1.0, jobs / self.jobs)
        test = jobs - round(self.test * share)
        return test - round(self.training * share), test


class Trial(Struct, frozen=True, kw_only=True):
    """Parameters and their errors on the training and on the test jobs."""

    parameters: KnnParameters
    training: Errors
    test: Errors


class Round(Struct, frozen=True, kw_only=True):
    """What a round of tuning found.

    Attributes:
        before: the parameters that were in force.
        after: the best of the search.
        adopted: whether ``after`` beat ``before`` on the test jobs.
        costs: the best cost on the training jobs after each generation or step, in seconds.
        evaluations: how many sets of parameters were tried.
        training_jobs: how many jobs they were tried on.
        test_jobs: how many jobs decided.
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
        """What is to be in force after the round."""
        return self.after.parameters if self.adopted else self.before.parameters


def tune(
    completions: Sequence[Completion],
    in_force: KnnParameters,
    plan: TuningPlan,
    report: Report = untold,
) -> Round:
    """Search better parameters on the newest completions.

    Args:
        completions: of one cluster, in the order of their observation.
        in_force: what a better set has to beat.
        plan: how much is looked at, and what is wanted.
        report: is told of progress.

    Raises:
        TooShortHistoryError: there are too few completions.
    """
    ordered = sorted(completions, key=lambda completion: completion.end_time)[-plan.jobs :]
    training_from, test_from = plan.divide(len(ordered))
    batch = batch_of(ordered, ordered[training_from:], scaling=in_force.scaling)
    training = batch.select(slice(0, test_from - training_from))
    test = batch.select(slice(test_from - training_from, None))
    found = SEARCHES[plan.search](training, plan.penalty, seed=plan.seed, report=report)

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
