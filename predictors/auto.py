"""The method that answers with the candidate that has cost least: docs/auto.md."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Self

from predictors.answers import DistributionMethod
from predictors.base import Memory, Question
from predictors.candidates import (
    LEAST_COST_SO_FAR,
    PRICED,
    USUAL_DECISION,
    WARIER,
    WARY,
    Decision,
)
from predictors.censoring import HEAVY, LIGHT
from predictors.jobs import LATEST_TIME, Completion, Prediction, Submission
from predictors.memory.choice import Gains
from predictors.memory.columns import NOBODY
from predictors.memory.running_jobs import Start
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import LearnedForest
from predictors.parameters import whole_number
from predictors.tuning.forest_learning import learned_anew

FEWEST_RUNS = 1_000
"""Number of runs after which ``auto`` learns its first forest, if there is one."""


class Candidate(NamedTuple):
    """An estimate that ``auto`` may answer with.

    Attributes:
        is_forest: whether it is taken from the mean of the distributions of forest and attention.
        decision: how it is taken from the distribution.
    """

    name: str
    is_forest: bool
    decision: Decision


KNOWN = (
    Candidate("attention", is_forest=False, decision=USUAL_DECISION),
    Candidate("attention, request 10%", is_forest=False, decision=Decision(request_share=WARY)),
    Candidate("attention, request 30%", is_forest=False, decision=Decision(request_share=WARIER)),
    Candidate("request", is_forest=False, decision=Decision(request_share=1.0)),
    Candidate("attention, running jobs", is_forest=False, decision=Decision(running=LIGHT)),
    Candidate("attention, running jobs 3x", is_forest=False, decision=Decision(running=HEAVY)),
    Candidate("forest", is_forest=True, decision=USUAL_DECISION),
    Candidate("forest, request 10%", is_forest=True, decision=Decision(request_share=WARY)),
    Candidate("forest, request 30%", is_forest=True, decision=Decision(request_share=WARIER)),
)
"""Candidates for users with earlier runs, in the order of ``predictors.candidates``."""

STRANGERS = (
    Candidate("cautious quantile", is_forest=False, decision=USUAL_DECISION),
    Candidate("attention", is_forest=False, decision=Decision(rate=PRICED)),
    Candidate("request", is_forest=False, decision=Decision(request_share=1.0)),
    Candidate("forest", is_forest=True, decision=Decision(rate=PRICED)),
)
"""Candidates for users without earlier runs."""


CandidateCosts = Sequence[tuple[Candidate, float]]
"""Candidates in their order, and how much more each has cost than the first."""


class Auto:
    """Answers with the estimate whose like have cost least, for the user and for the cluster.

    A prediction costs its error, and the price if it is an underestimate. The candidates are the
    estimates of least expected cost by attention, and by the mean of the distributions of forest
    and attention, each with a share of 0, 0.1 or 0.3 of all weight on the request; and the request.
    For a user without earlier runs they are the quantile that 7.5% of such jobs outlive, the
    estimates of attention and forest, and the request. Each ended run tells what each of them
    would have cost. Sums over the last 8000 runs decide, those of the user shrunk to those of the
    cluster. Median and interval are those of the distribution that the estimate is taken from.

    A service learns forests in rounds in the background. This class learns one between two
    completions, for logs that are played in one process; that takes seconds.

    Args:
        price: penalty of an underestimate, in mean runtimes of the cluster (0 to 1000).
        every: number of runs between two forests (100 to 100000); 0 for none.

    Reference:
        Our own.
    """

    name = "auto"

    def __init__(self, *, price: float = 1.0, every: int = 2_000) -> None:
        self._every = whole_number("every", every, 0, 100_000)
        self._attention = Attention(price=price)
        self._forest = Forest(price=price)
        self._forest.running = self._attention.running
        self._ended = 0

    @classmethod
    def over(cls, attention: Attention, forest: Forest) -> Self:
        """Return a predictor over methods that observe by themselves, at the price of attention."""
        auto = cls.__new__(cls)
        vars(auto).update(_every=0, _ended=0, _attention=attention, _forest=forest)
        return auto

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force, without the forest."""
        return {"price": self._attention.price, "every": self._every}

    @property
    def memory(self) -> Memory:
        """The memory of both methods; it does not hold the forest."""
        return self._attention.memory | self._forest.memory

    @property
    def forest(self) -> Forest:
        """The method forest."""
        return self._forest

    def renew(self, learned: LearnedForest | None) -> None:
        """Put a forest in force."""
        self._forest = self._forest.retuned(learned)

    def predict(self, submission: Submission) -> Prediction:
        """Predict by the candidate of least cost."""
        method, decision = self._answering(submission)
        return method.decide(submission, decision)

    def ask(self, submission: Submission, question: Question) -> Prediction:
        """Predict by the candidate of least cost, with median and interval."""
        method, decision = self._answering(submission)
        return method.ask(submission, question, decision)

    def quantiles(
        self, submission: Submission, shares: Sequence[float], elapsed: float | None = None
    ) -> list[float] | None:
        """Return the runtimes that shares of jobs like this one do not exceed, in seconds."""
        return self._answering(submission)[0].quantiles(submission, shares, elapsed)

    def costs(self, submission: Submission) -> Mapping[str, float]:
        """Return by candidate how much more it has cost than the first, in shares of its cost."""
        return named(self._costs(submission))

    def cluster_costs(self) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Return ``costs`` on the cluster: for users with earlier runs, and for those without."""
        known, strangers = self._attention.cluster_gains()
        of_forest: tuple[Gains, Gains] | tuple[()] = ()
        if self._forest.learned is not None:
            of_forest = self._forest.cluster_gains()
        return (
            named(costs_of_known(known, *of_forest[:1])),
            named(costs_of_strangers(strangers, *of_forest[1:])),
        )

    def users_by_candidate(self, users: Iterable[str]) -> Mapping[str, int]:
        """Return how many of the users with earlier runs each candidate would answer now."""
        found = Counter[str]()
        for user in users:
            job = Submission(requested_walltime=1.0, submit_time=LATEST_TIME, user=user)
            costs = [each for each in self._costs(job) if not each[0].decision.running]
            if len(costs) > 1 and costs[0][0] is KNOWN[0]:
                found[min(costs, key=itemgetter(1))[0].name] += 1
        return dict(found.most_common())

    def started(self, start: Start) -> None:
        """Note a job that runs."""
        self._attention.running.started(start)

    def observe(self, completion: Completion) -> None:
        """Learn from a run, and learn a forest if one is due."""
        self._attention.observe(completion)
        self._forest.observe(completion)
        self._attention.running.ended(completion)
        self._ended += 1
        since = self._ended - FEWEST_RUNS
        if self._every and since >= 0 and since % self._every == 0:
            self.renew(learned_anew(self._forest))

    def _answering(self, submission: Submission) -> tuple[DistributionMethod, Decision]:
        """Return the method and the decision that answer.

        Without a forest the choice is made in the machine code that answers.
        """
        if not self._forest.has_distribution(submission):
            return self._attention, LEAST_COST_SO_FAR
        costs = self._costs(submission)
        if self._attention.running.like(submission) is NOBODY:
            costs = [each for each in costs if not each[0].decision.running]
        candidate, _ = min(costs, key=itemgetter(1))
        return self._forest if candidate.is_forest else self._attention, candidate.decision

    def _costs(self, submission: Submission) -> CandidateCosts:
        """Return the candidates for a job with their costs, in their order."""
        if not self._attention.has_distribution(submission):
            return [(KNOWN[0], 0.0)]
        is_known, gains = self._attention.gains(submission)
        found = [gains]
        if self._forest.has_distribution(submission):
            found.append(self._forest.gains(submission)[1])
        return costs_of_known(*found) if is_known else costs_of_strangers(*found)


def costs_of_known(gains: Gains, of_forest: Sequence[float] = ()) -> CandidateCosts:
    """Return candidates with costs, from the differences of attention and of forest."""
    return [*zip(KNOWN, [0.0, *gains, *of_forest[:3]], strict=False)]


def costs_of_strangers(gains: Gains, of_forest: Sequence[float] = ()) -> CandidateCosts:
    """Like ``costs_of_known``, for users without earlier runs."""
    return [*zip(STRANGERS, [0.0, *gains[:2], *of_forest[:1]], strict=False)]


def named(costs: CandidateCosts) -> Mapping[str, float]:
    """Return the costs by name of the candidate."""
    return {candidate.name: cost for candidate, cost in costs}
