"""One round of tuning searches on training jobs and decides on test jobs unknown to the search."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, structs, to_builtins

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.knn import LONGEST_HISTORY, Knn, KnnParameters
from predictors.tuning.adopting import Change, Held, settle
from predictors.tuning.batch import MOST_NEIGHBOURS, Batch, batch_of
from predictors.tuning.exhaustive import exhaustive
from predictors.tuning.genetic import genetic
from predictors.tuning.objective import HOUR, Errors, cost_of
from predictors.tuning.plan import TuningPlan
from predictors.tuning.search import Found, ProgressReport, untold
from predictors.tuning.verdict import NO_CASES, Verdict, verdict_of

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
    """The result of a round of tuning knn.

    Attributes:
        before: the parameters that were in force.
        after: the best of the search; of a round that drops, what is back in force.
        adopted: whether ``after`` beat ``before`` on the test jobs, by more than noise.
        dropped: whether ``before``, which an earlier round had adopted, has lost on later jobs.
        verdict: of what was found, on the test jobs.
        review: of what an earlier round had adopted, on the jobs that have ended since.
        costs: the best cost on the training jobs after each generation or step, in seconds.
        evaluations: number of sets of parameters that were tried.
        training_jobs: number of jobs on which they were tried.
        test_jobs: number of jobs on which ``before`` and ``after`` were compared.
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
    """A job of a round: its place among the test jobs, negative before them, and its end."""

    place: int
    end: float


class Parameters:
    """Proposes and judges parameters of knn.

    Args:
        jobs_of: the training and test jobs, with the neighbours that parameters compare.
        plan: says what is better.
        search: proposes on training jobs.

    Attributes:
        found: by the search; None before it.
    """

    name = Knn.name

    def __init__(
        self,
        jobs_of: Callable[[KnnParameters], "Divided"],
        plan: TuningPlan,
        search: Callable[[Batch], Found],
    ) -> None:
        self.found: Found | None = None
        self._jobs_of = jobs_of
        self._plan = plan
        self._search = search

    def propose(self, now: KnnParameters, older: Sequence[EndedJob]) -> KnnParameters:  # noqa: ARG002
        """Return the best parameters that the search finds on the training jobs."""
        self.found = self._search(self._jobs_of(self._plan.unsearched(now)).training)
        return self.found.parameters

    def judge(self, old: KnnParameters, new: KnnParameters, later: Sequence[EndedJob]) -> Verdict:
        """Return the gain of ``new`` over ``old`` on those of the jobs that are test jobs.

        The cost of the product of error and rate must fall, too.
        """
        places = np.array([job.place for job in later if job.place >= 0], dtype=np.int64)
        if not len(places):
            return NO_CASES
        before, after = (self._jobs_of(each).test.select(places) for each in (old, new))
        users = after.users.tolist()
        verdict = verdict_of(
            gains((before, old), (after, new), self._plan), users, self._plan.demand
        )
        costs = (
            batch.errors(parameters).cost(self._plan.penalty, self._plan.fitness)
            for batch, parameters in ((before, old), (after, new))
        )
        cost, cost_now = costs
        is_enough = verdict.wins or not self._plan.errors
        return structs.replace(verdict, wins=cost_now < cost and is_enough)

    @staticmethod
    def described(content: KnnParameters) -> dict[str, Any]:
        """Return the parameters as JSON."""
        described: dict[str, Any] = to_builtins(content)
        return described

    def jobs(self, parameters: KnnParameters) -> tuple[list[EndedJob], list[EndedJob]]:
        """Return the training and the test jobs."""
        training, test = self._jobs_of(parameters)
        first = -len(training)
        older = [EndedJob(first + place, end) for place, end in enumerate(training.ends.tolist())]
        return older, [EndedJob(place, end) for place, end in enumerate(test.ends.tolist())]

    def round(self, change: Change, before: Held[KnnParameters]) -> Round:
        """Return what a round did, with the errors of the parameters before and after."""
        dropped = change.action == "dropped"
        proposed = before.now if self.found is None else self.found.parameters
        after = before.before if dropped and before.before is not None else proposed
        old, new = self._jobs_of(before.now), self._jobs_of(after)
        return Round(
            before=old.trial(before.now),
            after=new.trial(after),
            adopted=change.action == "adopted",
            dropped=dropped,
            verdict=change.verdict,
            review=change.review,
            costs=self.found.costs if self.found else (),
            evaluations=self.found.evaluations if self.found else 0,
            training_jobs=len(new.training),
            test_jobs=len(new.test),
        )


def tune(
    completions: Sequence[Completion],
    held: Held[KnnParameters],
    plan: TuningPlan,
    report: ProgressReport = untold,
) -> tuple[Round, Change, Held[KnnParameters]]:
    """Drop the parameters in force if they have lost, else search for better ones.

    Args:
        completions: completions of one cluster, in the order of their observation.
        held: the present parameters, which a better set has to beat, and those they replaced.
        plan: the jobs to look at, and the search.
        report: called with the progress.

    Returns:
        What the round did, in detail and as a change, and what is in force now.

    Raises:
        TooShortHistoryError: there are too few completions.
    """
    ordered = sorted(completions, key=lambda completion: completion.end_time)[-plan.jobs :]
    known: dict[Any, Divided] = {}

    def jobs_of(parameters: KnnParameters) -> Divided:
        """Parameters that compare features otherwise have other neighbours."""
        if parameters.metric not in known:
            known[parameters.metric] = divided(ordered, plan, held.now, parameters)
        return known[parameters.metric]

    def search(training: Batch) -> Found:
        return SEARCHES[plan.search](training, plan, report=report)

    parameters = Parameters(jobs_of, plan, search)
    change, after = settle(parameters, held, *parameters.jobs(held.now))
    return parameters.round(change, held), change, after


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


def gains(
    old: tuple[Batch, KnnParameters], new: tuple[Batch, KnnParameters], plan: TuningPlan
) -> Floats:
    """By job, how much of the whole cost it takes away, to first order; their mean is the gain.

    The product of error and rate is no sum over jobs: what a job changes in each of the two counts
    as if the other stayed.
    """
    (short, error), (short_now, error_now) = (
        (seconds < batch.runtimes, np.abs(seconds - batch.runtimes))
        for batch, seconds in (
            (batch, batch.predictions(parameters)) for batch, parameters in (old, new)
        )
    )
    if plan.fitness == "sum":
        of_error, of_rate = 1.0, plan.penalty * HOUR
    else:
        of_error, of_rate = 1.0 + plan.penalty * short.mean(), plan.penalty * error.mean()
    whole = cost_of(float(error.mean()), float(short.mean()), plan.penalty, plan.fitness)
    less: Floats = of_error * (error - error_now)
    less += of_rate * (short.astype(float) - short_now.astype(float))
    return less / max(whole, 1e-12)
