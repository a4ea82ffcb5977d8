"""The method that answers with the one that rounds have found best on the cluster."""

from collections.abc import Sequence
from typing import Any

from predictors.answers import DistributionMethod
from predictors.base import Memory, Question
from predictors.jobs import Completion, Prediction, Submission
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.least_cost import LeastCost
from predictors.parameters import number, whole_number
from predictors.tuning.cluster_round import SimulatedRounds
from predictors.tuning.plan import TuningPlan
from predictors.tuning.tunables import FIRST, estimates_of


class Auto:
    """Answers with attention, least-cost or forest, whichever costs least on the cluster.

    A prediction costs its error, and the price if it is an underestimate. A round after every
    ``every`` runs proposes the method whose predictions cost less. A proposal that wins on later
    runs by more than noise is in force until it loses. Before the first round attention answers.

    A service runs rounds in the background and stores what they adopt. This class runs them between
    two completions, for logs that are played in one process; each takes seconds.

    Args:
        price: penalty of an underestimate, in mean runtimes of the cluster (0 to 1000).
        every: number of runs between two rounds (100 to 100000); 0 for no rounds.

    Reference:
        Our own.
    """

    name = "auto"

    def __init__(self, *, price: float = 1.0, every: int = 10_000) -> None:
        self._price = number("price", price, 0, 1000)
        self._every = whole_number("every", every, 0, 100_000)
        self._least_cost = LeastCost(price=price)
        self._attention = Attention(price=price)
        self._forest = Forest(price=price)
        self._rounds = SimulatedRounds(
            first=FIRST, prices=(price,), plan=TuningPlan(), every=every, forest=self._forest
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force, without what rounds adopted."""
        return {"price": self._price, "every": self._every}

    @property
    def memory(self) -> Memory:
        """The memory of all methods; it does not hold what rounds adopted."""
        return self._attention.memory | self._least_cost.memory | self._forest.memory

    @property
    def rounds(self) -> SimulatedRounds:
        """The rounds so far."""
        return self._rounds

    def predict(self, submission: Submission) -> Prediction:
        """Predict by the method in force, under the name of that method."""
        return self._answering.predict(submission)

    def ask(self, submission: Submission, question: Question) -> Prediction:
        """Predict by the method in force, with median and interval."""
        return self._answering.ask(submission, question)

    def quantiles(
        self, submission: Submission, shares: Sequence[float], elapsed: float | None = None
    ) -> list[float] | None:
        """Return the runtimes that shares of jobs like this one do not exceed, in seconds."""
        return self._answering.quantiles(submission, shares, elapsed)

    def observe(self, completion: Completion) -> None:
        """Learn from a run, and run a round if one is due."""
        estimates = (
            estimates_of(completion, self._least_cost, self._attention, self._rounds.prices)
            if self._every
            else {}
        )
        self._least_cost.observe(completion)
        self._attention.observe(completion)
        self._forest.observe(completion)
        self._rounds.observe(completion, estimates)
        learned = self._rounds.sites[0].forest.now
        if self._forest.learned is not learned:
            self._forest = self._forest.retuned(learned)

    @property
    def _answering(self) -> DistributionMethod:
        [chosen] = self._rounds.methods
        methods = (self._attention, self._least_cost, self._forest)
        return next(method for method in methods if method.name == chosen)
