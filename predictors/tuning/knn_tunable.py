"""Tunes knn's parameters: searched on training jobs, judged on later test jobs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.knn import LONGEST_HISTORY, Knn, KnnParameters
from predictors.tuning.adoption import (
    NO_CASES,
    Adopted,
    RoundChange,
    Verdict,
    adopt_or_revert,
    verdict_of,
)
from predictors.tuning.batch import MOST_NEIGHBOURS, Batch, Errors, batch_of, cost_of
from predictors.tuning.genetic import ProgressReport, SearchResult, genetic, no_report
from predictors.tuning.plan import TuningPlan


class Trial(Struct, frozen=True, kw_only=True):
    """Parameters and their errors on the training and on the test jobs."""

    parameters: KnnParameters
    training: Errors
    test: Errors


class KnnRound(Struct, frozen=True, kw_only=True):
    """The result of a round of tuning knn.

    Attributes:
        after: the best of the search; of a dropped adoption the parameters that are back.
        adopted: whether ``after`` beat ``before`` on the test jobs, by more than noise.
        dropped: whether ``before``, adopted by an earlier round, has lost on later jobs.
        verdict: of the best of the search, on the test jobs.
        review: of an earlier adoption, on the jobs that have ended since.
        costs: best cost on the training jobs after each generation or step, in seconds.
        evaluations: number of sets of parameters tried.
    """

    before: Trial
    after: Trial
    adopted: bool
    dropped: bool = False
    verdict: Verdict | None = None
    review: Verdict | None = None
    costs: tuple[float, ...]
    evaluations: int
    training_jobs: int
    test_jobs: int


class EndedJob(NamedTuple):
    """A job of a round.

    Attributes:
        place: index among the test jobs, negative for training jobs.
    """

    place: int
    end: float


class KnnTunable:
    """The parameters of knn as a tunable.

    Args:
        jobs: training and test jobs, with their neighbours.
        search: finds the best parameters on training jobs.

    Attributes:
        found: result of the search; None before it.
    """

    name = Knn.name

    def __init__(
        self,
        jobs: "TuningJobs",
        plan: TuningPlan,
        search: Callable[[Batch], SearchResult],
    ) -> None:
        self.found: SearchResult | None = None
        self._jobs = jobs
        self._plan = plan
        self._search = search

    def propose(self, now: KnnParameters, older: Sequence[EndedJob]) -> KnnParameters:  # noqa: ARG002
        """Return the best parameters that the search finds on the training jobs."""
        self.found = self._search(self._jobs.training)
        return self.found.parameters

    def judge(self, old: KnnParameters, new: KnnParameters, later: Sequence[EndedJob]) -> Verdict:
        """Judge the gain of ``new`` over ``old`` on the test jobs among ``later``.

        The cost as the plan defines it has to fall, too.
        """
        places = np.array([job.place for job in later if job.place >= 0], dtype=np.int64)
        if not len(places):
            return NO_CASES
        batch = self._jobs.test.select(places)
        users = batch.users.tolist()
        verdict = verdict_of(gains(batch, old, new, self._plan.penalty), users, self._plan.demand)
        cost, cost_now = (batch.errors(each).cost(self._plan.penalty) for each in (old, new))
        is_enough = verdict.wins or not self._plan.errors
        return structs.replace(verdict, wins=cost_now < cost and is_enough)

    def jobs(self) -> tuple[list[EndedJob], list[EndedJob]]:
        """Return the training and the test jobs."""
        training, test = self._jobs
        first = -len(training)
        older = [EndedJob(first + place, end) for place, end in enumerate(training.ends.tolist())]
        return older, [EndedJob(place, end) for place, end in enumerate(test.ends.tolist())]

    def round(self, change: RoundChange, before: Adopted[KnnParameters]) -> KnnRound:
        """Return what a round did, with the errors of the parameters before and after."""
        dropped = change.action == "dropped"
        proposed = before.now if self.found is None else self.found.parameters
        after = before.before if dropped and before.before is not None else proposed
        return KnnRound(
            before=self._jobs.trial(before.now),
            after=self._jobs.trial(after),
            adopted=change.action == "adopted",
            dropped=dropped,
            verdict=change.verdict,
            review=change.review,
            costs=self.found.costs if self.found else (),
            evaluations=self.found.evaluations if self.found else 0,
            training_jobs=len(self._jobs.training),
            test_jobs=len(self._jobs.test),
        )


def tune(
    completions: Sequence[Completion],
    adopted: Adopted[KnnParameters],
    plan: TuningPlan,
    report: ProgressReport = no_report,
) -> tuple[KnnRound, RoundChange, Adopted[KnnParameters]]:
    """Revert the parameters in force if they have lost, else search for better ones.

    Args:
        completions: completions of one cluster, in the order of their observation.

    Returns:
        The round in detail and as a change, and the parameters in force after it.

    Raises:
        TooShortHistoryError: there are too few completions.
    """
    ordered = sorted(completions, key=lambda completion: completion.end_time)[-plan.jobs :]

    def search(training: Batch) -> SearchResult:
        return genetic(training, plan, report=report)

    tunable = KnnTunable(divide(ordered, plan, adopted.now), plan, search)
    change, after = adopt_or_revert(tunable, adopted, *tunable.jobs())
    return tunable.round(change, adopted), change, after


class TuningJobs(NamedTuple):
    """Training and test jobs of a round."""

    training: Batch
    test: Batch

    def trial(self, parameters: KnnParameters) -> Trial:
        """Return parameters with their errors."""
        return Trial(
            parameters=parameters,
            training=self.training.errors(parameters),
            test=self.test.errors(parameters),
        )


def divide(ordered: Sequence[Completion], plan: TuningPlan, in_force: KnnParameters) -> TuningJobs:
    """Divide the newest completions as the plan says, and find the neighbours of each job."""
    training_from, test_from = plan.divide(len(ordered))
    batch = batch_of(
        ordered,
        ordered[training_from:],
        longest_history=max(LONGEST_HISTORY, in_force.history),
        most_neighbours=max(MOST_NEIGHBOURS, in_force.neighbours),
        unsearched=in_force,
    )
    size = test_from - training_from
    return TuningJobs(batch.select(slice(0, size)), batch.select(slice(size, None)))


def gains(batch: Batch, old: KnnParameters, new: KnnParameters, penalty: float) -> Floats:
    """Return by job the relative decrease of the cost, to first order; the mean is the gain.

    The product of error and rate is no sum over jobs: the change of each of the two by a job counts
    as if the other stayed.
    """
    (short, error), (short_now, error_now) = (
        (seconds < batch.runtimes, np.abs(seconds - batch.runtimes))
        for seconds in map(batch.predictions, (old, new))
    )
    of_error, of_rate = 1.0 + penalty * short.mean(), penalty * error.mean()
    whole = cost_of(float(error.mean()), float(short.mean()), penalty)
    less: Floats = of_error * (error - error_now)
    less += of_rate * (short.astype(float) - short_now.astype(float))
    return less / max(whole, 1e-12)
