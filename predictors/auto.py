"""The method that answers with the candidate that has cost least: docs/auto.md."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Self

from msgspec.structs import replace

from predictors.answers import (
    PRICED,
    USUAL_DECISION,
    WARIER,
    WARY,
    Decision,
    DistributionMethod,
    without_distribution,
)
from predictors.base import USUAL, Memory, Question
from predictors.jobs import Completion, Prediction, Submission
from predictors.memory.choice import Gains
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import LearnedForest
from predictors.methods.requested import Requested
from predictors.parameters import whole_number
from predictors.tuning.forest_learning import learned_anew

FEWEST_RUNS = 1_000
"""Number of runs after which ``auto`` learns its first forest, if there is one."""


class Candidate(NamedTuple):
    """An estimate that ``auto`` may answer with.

    Attributes:
        is_forest: whether it is taken from the mean of the distributions of forest and attention.
        decision: how it is taken from the distribution; None for the request.
    """

    name: str
    is_forest: bool
    decision: Decision | None


KNOWN = (
    Candidate("attention", is_forest=False, decision=USUAL_DECISION),
    Candidate("attention, request 10%", is_forest=False, decision=Decision(request_share=WARY)),
    Candidate("attention, request 30%", is_forest=False, decision=Decision(request_share=WARIER)),
    Candidate("request", is_forest=False, decision=None),
    Candidate("forest", is_forest=True, decision=USUAL_DECISION),
    Candidate("forest, request 10%", is_forest=True, decision=Decision(request_share=WARY)),
    Candidate("forest, request 30%", is_forest=True, decision=Decision(request_share=WARIER)),
)
"""Candidates for users with earlier runs, in the order of ``predictors.memory.choice``."""

STRANGERS = (
    Candidate("cautious quantile", is_forest=False, decision=USUAL_DECISION),
    Candidate("attention", is_forest=False, decision=Decision(rate=PRICED)),
    Candidate("request", is_forest=False, decision=None),
    Candidate("request", is_forest=False, decision=None),
    Candidate("forest", is_forest=True, decision=Decision(rate=PRICED)),
)
"""Candidates for users without earlier runs."""


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
        method, candidate = self._answering(submission)
        if candidate.decision is None:
            return without_distribution(self.ask(submission, USUAL))
        return method.decide(submission, candidate.decision)

    def ask(self, submission: Submission, question: Question) -> Prediction:
        """Predict by the candidate of least cost, with median and interval."""
        method, candidate = self._answering(submission)
        if candidate.decision is not None:
            return method.ask(submission, question, candidate.decision)
        prediction = method.ask(submission, question)
        if question.underestimation_rate or question.elapsed:
            return prediction
        request = float(submission.requested_walltime)
        return replace(prediction, predicted_walltime=request, method=Requested.name)

    def quantiles(
        self, submission: Submission, shares: Sequence[float], elapsed: float | None = None
    ) -> list[float] | None:
        """Return the runtimes that shares of jobs like this one do not exceed, in seconds."""
        return self._answering(submission)[0].quantiles(submission, shares, elapsed)

    def costs(self, submission: Submission) -> Mapping[str, float]:
        """Return by candidate how much more it has cost than the first, in shares of its cost."""
        candidates, costs = self._costs(submission)
        return {each.name: cost for each, cost in zip(candidates, costs, strict=False)}

    def cluster_costs(self) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Return ``costs`` on the cluster: for users with earlier runs, and for those without."""
        by_request, by_forest = prior_of(self._attention.price)
        sums = [self._attention.cluster_gains(by_request)]
        if self._forest.learned is not None:
            sums.append(self._forest.cluster_gains(by_forest))
        gains = [(0.0, *chain.from_iterable(each)) for each in zip(*sums, strict=True)]
        known, strangers = (
            {candidate.name: gain for candidate, gain in zip(candidates, each, strict=False)}
            for candidates, each in zip((KNOWN, STRANGERS), gains, strict=True)
        )
        return known, strangers

    def observe(self, completion: Completion) -> None:
        """Learn from a run, and learn a forest if one is due."""
        self._attention.observe(completion)
        self._forest.observe(completion)
        self._ended += 1
        since = self._ended - FEWEST_RUNS
        if self._every and since >= 0 and since % self._every == 0:
            self.renew(learned_anew(self._forest))

    def _answering(self, submission: Submission) -> tuple[DistributionMethod, Candidate]:
        """Return the candidate of least cost, the first among equals, and its method."""
        candidates, costs = self._costs(submission)
        candidate = candidates[costs.index(min(costs))]
        return self._forest if candidate.is_forest else self._attention, candidate

    def _costs(self, submission: Submission) -> tuple[Sequence[Candidate], Sequence[float]]:
        """Return candidates and their differences of cost to the first, in shares of its cost."""
        if not self._attention.has_distribution(submission):
            return KNOWN, (0.0,)
        by_request, by_forest = prior_of(self._attention.price)
        is_known, *gains = self._attention.gains(submission, by_request)
        candidates = KNOWN if is_known else STRANGERS
        if self._forest.has_distribution(submission):
            gains += self._forest.gains(submission, by_forest)[1:]
        return candidates, [0.0, *gains][: len(candidates)]


@lru_cache
def prior_of(price: float) -> tuple[Gains, Gains]:
    """Return the differences of cost on a cluster without runs, by attention and by forest.

    They are an assumption, not a measurement of the site: before anything is known, a share on the
    request is taken to cost 3, 8 and 20% less at a price of 1, 3 and 10 mean runtimes.
    """
    warier = -0.03 * price / (1.0 + price / 20.0)
    return (warier / 2, warier, 0.0), (0.0, warier / 2, warier)
