"""Rounds of a cluster: one over all tunables, and rounds in the simulated time of a replay."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.knn import KnnParameters
from predictors.tuning.adoption import Adopted, RoundChange, adopt_or_revert
from predictors.tuning.knn_tunable import KnnRound, tune
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan
from predictors.tuning.search import ProgressReport, no_report
from predictors.tuning.tunables import BestMethod, ReplayBuffer, TargetPrice, fill_buffer

PRICES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Prices that a round compares to reach an underestimation rate, in mean runtimes."""


class ClusterParameters(Struct, frozen=True, kw_only=True):
    """The tunables in force for a cluster.

    Attributes:
        knn: parameters of knn.
        price: of an underestimate, in mean runtimes, for methods with a distribution.
        auto: the method that auto answers with.
    """

    knn: Adopted[KnnParameters]
    price: Adopted[float]
    auto: Adopted[str]


class ClusterRound(Struct, frozen=True, kw_only=True):
    """Result of a round.

    Attributes:
        knn: the search for parameters of knn; None if the plan leaves it out.
        changes: one for each tunable of the plan.
        in_force: the tunables in force after the round.
    """

    knn: KnnRound | None
    changes: Sequence[RoundChange]
    in_force: ClusterParameters

    @property
    def adopted(self) -> bool:
        """Whether a proposal was adopted."""
        return any(change.action == "adopted" for change in self.changes)

    def as_dict(self) -> dict[str, Any]:
        """Return the search for parameters of knn and all changes as JSON values."""
        searched = {} if self.knn is None else to_builtins(self.knn)
        return {**searched, "changes": to_builtins(self.changes)}


def tune_cluster(
    completions: Sequence[Completion],
    in_force: ClusterParameters,
    plan: TuningPlan,
    report: ProgressReport = no_report,
) -> ClusterRound:
    """Run a round on a cluster's newest completions.

    Args:
        completions: of the cluster, in the order of their observation.
        in_force: the tunables in force.
        plan: the jobs and the tunables of the round.
        report: called with the progress of the search for knn's parameters.

    Raises:
        TooShortHistoryError: there are too few completions.
    """
    plan.check(len(completions))
    knn, changes = None, []
    if "knn" in plan.subjects:
        knn, change, of_knn = tune(completions, in_force.knn, plan, report)
        in_force = replace(in_force, knn=of_knn)
        changes.append(change)
    if set(plan.subjects) - {"knn"}:
        price = in_force.price.now
        newest = completions[-plan.jobs :]
        capacity = min(len(newest), plan.learned + plan.test)
        prices = sorted({*PRICES, price}) if plan.seeks_price else [price]
        buffer = fill_buffer(newest, Attention(price=price), capacity=capacity, prices=prices)
        more, in_force = tune_price_and_method(buffer, in_force, plan)
        changes += more
    return ClusterRound(knn=knn, changes=changes, in_force=in_force)


def tune_price_and_method(
    buffer: ReplayBuffer, in_force: ClusterParameters, plan: TuningPlan
) -> tuple[list[RoundChange], ClusterParameters]:
    """Tune the price, and then the method at the price in force."""
    older, later = buffer.divide(plan.test)
    changes = []
    if plan.seeks_price and plan.underestimation_rate is not None:
        price = TargetPrice(
            buffer.prices.tolist(), in_force.auto.now, plan.underestimation_rate, plan.demand
        )
        change, of_price = adopt_or_revert(price, in_force.price, older, later)
        in_force = replace(in_force, price=of_price)
        changes.append(change)
    if "auto" in plan.subjects:
        best = BestMethod(buffer.nearest(in_force.price.now), in_force.price.now, plan.demand)
        change, of_method = adopt_or_revert(best, in_force.auto, older, later)
        in_force = replace(in_force, auto=of_method)
        changes.append(change)
    return changes, in_force


class SimulatedRounds:
    """Runs the rounds that a service would run, and adopts the method that wins.

    There is a site for each price; all have the same runs, and each judges by its own price.

    Args:
        first: the method before the first round.
        prices: of the sites, in mean runtimes.
        plan: numbers of runs.
        every: number of runs between two rounds; 0 for no rounds.

    Attributes:
        changes: the change of each round, with the number of runs that had ended.
    """

    def __init__(
        self, *, first: str, prices: Sequence[float], plan: TuningPlan, every: int
    ) -> None:
        self.changes: list[tuple[int, RoundChange]] = []
        self._plan = plan
        self._every = every
        self._buffer = ReplayBuffer(plan.learned + plan.test, prices)
        self._methods = [Adopted(now=first) for _ in prices]
        self._ended = 0

    @property
    def methods(self) -> Sequence[str]:
        """The method in force at each price."""
        return [adopted.now for adopted in self._methods]

    @property
    def prices(self) -> Floats:
        """The prices of the sites."""
        return self._buffer.prices

    def observe(self, run: Completion, estimates: Mapping[str, Floats]) -> None:
        """Store a run that has ended and its predictions by method and price; tune if it is due."""
        if not self._every:
            return
        self._buffer.add(run, estimates)
        self._ended += 1
        if self._ended >= FEWEST_JOBS and (self._ended - FEWEST_JOBS) % self._every == 0:
            self._tune()

    def _tune(self) -> None:
        older, later = self._buffer.divide(self._plan.test)
        for place, price in enumerate(self.prices.tolist()):
            best = BestMethod(place, price, self._plan.demand)
            change, self._methods[place] = adopt_or_revert(best, self._methods[place], older, later)
            self.changes.append((self._ended, change))
