"""Rounds as a service holds them in the background, held in simulated time while a log is played.

What was said of each run when it was submitted is kept, so that a round need not play it again.
"""

from collections.abc import Mapping, Sequence

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.tuning.adopting import Change, Held, settle
from predictors.tuning.fine_tuning import FineTuning
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan
from predictors.tuning.stretch import Stretch
from predictors.tuning.subjects import AttentionWeights, BestMethod


class SimulatedRounds:
    """Holds a round whenever a service would, and puts in force what wins.

    Args:
        attention: as it is shipped.
        first: the method that answers before any round has chosen one.
        prices: at each of them the best method is chosen by itself.
        plan: on how many runs.
        every: runs between two rounds; 0: hold none.

    Attributes:
        attention: as it is in force.
        methods: that answers, by price.
        changes: what each round did, with the number of runs that had ended.
    """

    def __init__(
        self,
        attention: Attention,
        *,
        first: str,
        prices: Sequence[float],
        plan: TuningPlan,
        every: int,
    ) -> None:
        self.attention = attention
        self.changes: list[tuple[int, Change]] = []
        self._plan = plan
        self._every = every
        self._stretch = Stretch(plan.learned + plan.test, prices)
        self._weights = Held(now=attention.weights)
        self._methods = [Held(now=first) for _ in prices]
        self._ended = 0

    @property
    def methods(self) -> Sequence[str]:
        """The method that answers at each price."""
        return [held.now for held in self._methods]

    @property
    def prices(self) -> Floats:
        """The prices themselves."""
        return self._stretch.prices

    def observe(self, run: Completion, said: Mapping[str, Floats]) -> None:
        """Learn from a run that has ended; ``said`` is what each method answered, by price."""
        if not self._every:
            self.attention.observe(run)
            return
        self._stretch.note(run, self.attention, said)
        self.attention.observe(run)
        self._ended += 1
        if self._ended >= FEWEST_JOBS and (self._ended - FEWEST_JOBS) % self._every == 0:
            self._hold()

    def _hold(self) -> None:
        older, later = self._stretch.divided(self._plan.test)
        weights = AttentionWeights(FineTuning(), self._plan.demand, self.prices.tolist())
        change, self._weights = settle(weights, self._weights, older, later)
        self.changes.append((self._ended, change))
        if self._weights.now is not self.attention.weights:
            self.attention = self.attention.reweighed(self._weights.now)
            older, later = self._stretch.asked_again(self._weights.now).divided(self._plan.test)
        for place, price in enumerate(self.prices):
            best = BestMethod(place, float(price), self._plan.demand)
            change, self._methods[place] = settle(best, self._methods[place], older, later)
            self.changes.append((self._ended, change))
