"""The method that answers with another one: the one that rounds have found best on the cluster."""

from collections.abc import Sequence
from typing import Any

from predictors.base import Memory, Question
from predictors.jobs import Completion, Prediction, Submission
from predictors.methods.attention import Attention
from predictors.methods.least_cost import LeastCost
from predictors.parameters import number, whole_number
from predictors.tuning.plan import TuningPlan
from predictors.tuning.simulated import SimulatedRounds
from predictors.tuning.stretch import said_of
from predictors.tuning.subjects import FIRST


class Auto:
    """Answers with attention or least-cost, whichever costs less on the cluster.

    An answer costs its error, and the price where it is too short. A round after every ``every``
    runs proposes the method whose answers cost less; what wins on later runs by more than noise is
    in force until it loses. Before the first choice attention answers.

    A service holds the rounds in the background and stores what they adopt. This class holds them
    where it stands, between two completions, for logs that are played in one process; as each
    takes seconds, more seldom.

    Args:
        price: of an underestimate, in mean runtimes of the cluster (0 to 1000).
        every: runs between two rounds (100 to 100000); 0: no rounds, attention answers.

    Reference:
        Our own.
    """

    name = "auto"

    def __init__(self, *, price: float = 1.0, every: int = 10_000) -> None:
        self._price = number("price", price, 0, 1000)
        self._every = whole_number("every", every, 0, 100_000)
        self._least_cost = LeastCost(price=price)
        self._attention = Attention(price=price)
        self._rounds = SimulatedRounds(first=FIRST, prices=(price,), plan=TuningPlan(), every=every)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force; what rounds adopted is none of them."""
        return {"price": self._price, "every": self._every}

    @property
    def memory(self) -> Memory:
        """That of the two methods; what rounds adopted is not in the last runs alone."""
        return self._attention.memory | self._least_cost.memory

    @property
    def rounds(self) -> SimulatedRounds:
        """What rounds did."""
        return self._rounds

    def predict(self, submission: Submission) -> Prediction:
        """The answer of the method that is in force, under that method's name."""
        return self._answering.predict(submission)

    def ask(self, submission: Submission, question: Question) -> Prediction:
        """The same with median and interval."""
        return self._answering.ask(submission, question)

    def quantiles(
        self, submission: Submission, shares: Sequence[float], elapsed: float | None = None
    ) -> list[float] | None:
        """The runtimes that shares of jobs like this one do not exceed."""
        return self._answering.quantiles(submission, shares, elapsed)

    def observe(self, completion: Completion) -> None:
        """Learn from a run, and hold a round if one is due."""
        said = (
            said_of(completion, self._least_cost, self._attention, self._rounds.prices)
            if self._every
            else {}
        )
        self._rounds.observe(completion, said)
        self._least_cost.observe(completion)
        self._attention.observe(completion)

    @property
    def _answering(self) -> Attention | LeastCost:
        [chosen] = self._rounds.methods
        return self._least_cost if chosen == LeastCost.name else self._attention
