"""Rounds as a service holds them in the background, held in simulated time while a log is played.

What was said of each run when it was submitted is kept, so that a round need not play it again.
"""

from collections.abc import Mapping, MutableMapping, Sequence

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.attention_weights import Weights
from predictors.tuning.adopting import Change, Held, settle
from predictors.tuning.fine_tuning import FineTuning
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan
from predictors.tuning.stretch import Noted, Stretch
from predictors.tuning.subjects import AttentionWeights, BestMethod
from predictors.tuning.verdict import Demand


class _OfOneSite(AttentionWeights):
    """Weights that are judged by a site's price; sites with the same weights propose the same.

    Args:
        demand: what counts as a gain.
        price: of the site.
        made: the proposals of this round, by the weights that they were made from.
    """

    def __init__(
        self, demand: Demand, price: float, made: MutableMapping[Weights, Weights | None]
    ) -> None:
        super().__init__(FineTuning(), demand, price)
        self._made = made

    def propose(self, now: Weights, older: Sequence[Noted]) -> Weights | None:
        """What another site has proposed in this round, else a new proposal."""
        if now not in self._made:
            self._made[now] = super().propose(now, older)
        return self._made[now]


class SimulatedRounds:
    """Holds a round whenever a service would, and puts in force what wins.

    There is a site for each price; they have the same runs, and each judges by its own price.

    Args:
        attention: as it is shipped.
        first: the method that answers before any round has chosen one.
        prices: of the sites.
        plan: on how many runs.
        every: runs between two rounds; 0: hold none.

    Attributes:
        attentions: as they are in force, by price.
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
        self._learning = attention
        self.attentions = [attention.reweighed(attention.weights, price=each) for each in prices]
        self.changes: list[tuple[int, Change]] = []
        self._plan = plan
        self._every = every
        self._stretch = Stretch(plan.learned + plan.test, prices)
        self._weights = [Held(now=attention.weights) for _ in prices]
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
            self._learning.observe(run)
            return
        self._stretch.note(run, self._learning, said)
        self._learning.observe(run)
        self._ended += 1
        if self._ended >= FEWEST_JOBS and (self._ended - FEWEST_JOBS) % self._every == 0:
            self._hold()

    def _hold(self) -> None:
        made: dict[Weights, Weights | None] = {}
        for place, price in enumerate(self.prices.tolist()):
            self._hold_at(place, price, made)

    def _hold_at(self, place: int, price: float, made: dict[Weights, Weights | None]) -> None:
        older, later = self._stretch.divided(self._plan.test)
        weights = _OfOneSite(self._plan.demand, price, made)
        change, held = settle(weights, self._weights[place], older, later)
        self.changes.append((self._ended, change))
        if held.now is not self._weights[place].now:
            self.attentions[place] = self.attentions[place].reweighed(held.now)
            older, later = self._stretch.asked_again(held.now).divided(self._plan.test)
        self._weights[place] = held
        best = BestMethod(place, price, self._plan.demand)
        change, self._methods[place] = settle(best, self._methods[place], older, later)
        self.changes.append((self._ended, change))
