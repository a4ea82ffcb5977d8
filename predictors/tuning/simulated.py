"""Rounds as a service holds them in the background, held in simulated time while a log is played.

What was said of each run when it was submitted is kept, so that a round need not play it again.
"""

from collections.abc import Mapping, Sequence

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.tuning.adopting import Change, Held, settle
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan
from predictors.tuning.stretch import Stretch
from predictors.tuning.subjects import BestMethod


class SimulatedRounds:
    """Holds a round whenever a service would, and puts in force the method that wins.

    There is a site for each price; they have the same runs, and each judges by its own price.

    Args:
        first: the method that answers before any round has chosen one.
        prices: of the sites.
        plan: on how many runs.
        every: runs between two rounds; 0: hold none.

    Attributes:
        changes: what each round did, with the number of runs that had ended.
    """

    def __init__(
        self, *, first: str, prices: Sequence[float], plan: TuningPlan, every: int
    ) -> None:
        self.changes: list[tuple[int, Change]] = []
        self._plan = plan
        self._every = every
        self._stretch = Stretch(plan.learned + plan.test, prices)
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
        """Note a run that has ended; ``said`` is what each method answered, by price."""
        if not self._every:
            return
        self._stretch.note(run, said)
        self._ended += 1
        if self._ended >= FEWEST_JOBS and (self._ended - FEWEST_JOBS) % self._every == 0:
            self._hold()

    def _hold(self) -> None:
        older, later = self._stretch.divided(self._plan.test)
        for place, price in enumerate(self.prices.tolist()):
            best = BestMethod(place, price, self._plan.demand)
            change, self._methods[place] = settle(best, self._methods[place], older, later)
            self.changes.append((self._ended, change))
