"""One round of tuning searches on training jobs and decides on test jobs unknown to the search."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs, to_builtins

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.knn import LONGEST_HISTORY, Knn, KnnParameters
from predictors.tuning.adopting import Action, Change
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
    """The result of a round of tuning.

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

    @property
    def parameters(self) -> KnnParameters:
        """The parameters to be in force after the round."""
        changed = self.adopted or self.dropped
        return self.after.parameters if changed else self.before.parameters

    @property
    def change(self) -> Change:
        """The same as of anything else that is learned."""
        action: Action = "adopted" if self.adopted else "dropped" if self.dropped else "kept"
        return Change(
            subject=Knn.name,
            action=action,
            before=to_builtins(self.before.parameters),
            after=to_builtins(self.after.parameters),
            verdict=self.verdict,
            review=self.review,
        )


def tune(
    completions: Sequence[Completion],
    in_force: KnnParameters,
    plan: TuningPlan,
    report: ProgressReport = untold,
    *,
    replaced: tuple[KnnParameters, float] | None = None,
) -> Round:
    """Drop the parameters in force if they have lost, else search for better ones.

    Args:
        completions: completions of one cluster, in the order of their observation.
        in_force: the present parameters, which a better set has to beat.
        plan: the jobs to look at, and the search.
        report: called with the progress.
        replaced: what the parameters in force have replaced, and when the last of the jobs ended
            that they were adopted on; None where that is not to be judged.

    Raises:
        TooShortHistoryError: there are too few completions.
    """
    ordered = sorted(completions, key=lambda completion: completion.end_time)[-plan.jobs :]
    searched = plan.unsearched(in_force)
    after = divided(ordered, plan, in_force, searched)
    # Parameters that compare features otherwise have other neighbours.
    same = searched.metric == in_force.metric
    before = after if same else divided(ordered, plan, in_force, in_force)
    review = None
    if replaced is not None:
        other, since = replaced
        same = other.metric == in_force.metric
        back = before if same else divided(ordered, plan, other, other)
        review = reviewed((back, other), (before, in_force), since, plan)
        if review.loses:
            return lost(before.trial(in_force), back.trial(other), review, before)
    found = SEARCHES[plan.search](after.training, plan, report=report)
    return structs.replace(judge(found, before, after, in_force, plan), review=review)


def lost(old: Trial, back: Trial, review: Verdict, jobs: "Divided") -> Round:
    """A round that drops what an earlier one had adopted, and searches for nothing."""
    return Round(
        before=old,
        after=back,
        adopted=False,
        dropped=True,
        review=review,
        costs=(),
        evaluations=0,
        training_jobs=len(jobs.training),
        test_jobs=len(jobs.test),
    )


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

    verdict = verdict_of(
        gains((before.test, in_force), (after.test, found.parameters), plan),
        after.test.users.tolist(),
        plan.demand,
    )
    return Round(
        before=old,
        after=new,
        adopted=cost(new) < cost(old) and (verdict.wins or not plan.errors),
        verdict=verdict,
        costs=found.costs,
        evaluations=found.evaluations,
        training_jobs=len(after.training),
        test_jobs=len(after.test),
    )


def reviewed(
    old: tuple[Divided, KnnParameters],
    new: tuple[Divided, KnnParameters],
    since: float,
    plan: TuningPlan,
) -> Verdict:
    """What parameters gained over those they replaced, on test jobs that ended after ``since``."""
    later = np.flatnonzero(new[0].test.ends > since)
    if not len(later):
        return NO_CASES
    before, after = old[0].test.select(later), new[0].test.select(later)
    return verdict_of(
        gains((before, old[1]), (after, new[1]), plan), after.users.tolist(), plan.demand
    )


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
