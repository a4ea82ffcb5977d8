"""Rounds of a cluster: one over all tunables, and rounds in the simulated time of a replay."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import LearnedForest
from predictors.methods.knn import KnnParameters
from predictors.tuning.adoption import Adopted, RoundChange, adopt_or_revert
from predictors.tuning.forest_tunable import ForestTunable, Lesson
from predictors.tuning.knn_tunable import KnnRound, tune
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan
from predictors.tuning.search import ProgressReport, no_report
from predictors.tuning.tunables import FIRST, BestMethod, ReplayBuffer, TargetPrice, fill_buffer

PRICES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Prices that a round compares to reach an underestimation rate, in mean runtimes."""


class ClusterParameters(Struct, frozen=True, kw_only=True):
    """The tunables in force for a cluster.

    Attributes:
        knn: parameters of knn.
        price: of an underestimate, in mean runtimes, for methods with a distribution.
        forest: the trees of forest; None without.
        auto: the method that auto answers with.
    """

    knn: Adopted[KnnParameters]
    price: Adopted[float]
    auto: Adopted[str]
    forest: Adopted[LearnedForest | None] = Adopted(now=None)


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
        newest = sorted(completions, key=lambda run: run.end_time)[-plan.jobs :]
        capacity = min(len(newest), plan.learned + plan.test)
        prices = sorted({*PRICES, price}) if plan.seeks_price else [price]
        buffer = fill_buffer(newest, Attention(price=price), capacity=capacity, prices=prices)
        if needs_forest(in_force, plan):
            forest = Forest()
            for run in newest:
                forest.observe(run)
            of_forest, in_force, buffer = tune_forest(forest, buffer, in_force, plan)
            changes += of_forest
        more, in_force = tune_price_and_method(buffer, with_answering(in_force), plan)
        changes += more
    return ClusterRound(knn=knn, changes=changes, in_force=in_force)


def needs_forest(in_force: ClusterParameters, plan: TuningPlan) -> bool:
    """Return whether a round learns a forest, or compares the one in force."""
    return "forest" in plan.subjects or in_force.forest.now is not None


def tune_forest(
    forest: Forest,
    buffer: ReplayBuffer,
    in_force: ClusterParameters,
    plan: TuningPlan,
    lesson: Lesson | None = None,
) -> tuple[list[RoundChange], ClusterParameters, ReplayBuffer]:
    """Tune the forest at the price in force.

    Args:
        forest: observed the runs.
        buffer: the last of these runs, in order of their ends.
        in_force: the tunables in force.
        plan: of the round.
        lesson: forests that are learned on these runs; by default made here.

    Returns:
        The change, the tunables in force, and the runs that nothing was learned on, with the
        predictions of the forest in force; all runs if there is none.
    """
    later = buffer.last(later_runs(forest, buffer))
    lesson = lesson or Lesson(forest, len(later), later.prices)
    changes = []
    if "forest" in plan.subjects:
        tunable = ForestTunable(lesson, later, in_force.price.now, plan.demand)
        change, of_forest = adopt_or_revert(tunable, in_force.forest, *later.divide(plan.test))
        in_force = replace(in_force, forest=of_forest)
        changes.append(change)
    if in_force.forest.now is None:
        return changes, in_force, buffer
    later.note(Forest.name, lesson.estimates(in_force.forest.now))
    return changes, in_force, later


def later_runs(forest: Forest, buffer: ReplayBuffer) -> int:
    """Return the number of last runs that no forest is learned on: at most half of all."""
    return min(len(buffer), len(forest.runtimes()[0]) // 2)


def with_answering(in_force: ClusterParameters) -> ClusterParameters:
    """Return the tunables, with the first method for auto if that needs a forest and has none."""
    auto = in_force.auto
    if in_force.forest.now is None and Forest.name in {auto.now, auto.before}:
        return replace(in_force, auto=Adopted(now=FIRST))
    return in_force


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
        judging = [*older, *later]  # no method was learned on any of them
        change, of_method = adopt_or_revert(best, in_force.auto, older, later, judging)
        in_force = replace(in_force, auto=of_method)
        changes.append(change)
    return changes, in_force


class SimulatedRounds:
    """Runs the rounds that a service would run, and adopts what wins.

    There is a site for each price; all have the same runs, and each judges by its own price.

    Args:
        first: the method before the first round.
        prices: of the sites, in mean runtimes.
        plan: numbers of runs.
        every: number of runs between two rounds; 0 for no rounds.
        forest: observes the runs; None to choose among the other methods only.

    Attributes:
        changes_by_price: the changes of each round, with the number of runs that had ended and the
            price of the site.
    """

    def __init__(
        self,
        *,
        first: str,
        prices: Sequence[float],
        plan: TuningPlan,
        every: int,
        forest: Forest | None = None,
    ) -> None:
        self.changes_by_price: list[tuple[int, float, RoundChange]] = []
        self._plan = replace(plan, subjects=("forest", "auto"))
        self._every = every
        self._buffer = ReplayBuffer(plan.learned + plan.test, prices)
        self._forest = forest
        self._sites = [
            ClusterParameters(
                knn=Adopted(now=KnnParameters()),
                price=Adopted(now=price),
                auto=Adopted(now=first),
            )
            for price in prices
        ]
        self._ended = 0

    @property
    def changes(self) -> Sequence[tuple[int, RoundChange]]:
        """The changes of each round, with the number of runs that had ended."""
        return [(ended, change) for ended, _, change in self.changes_by_price]

    @property
    def sites(self) -> Sequence[ClusterParameters]:
        """The tunables in force at each price."""
        return self._sites

    @property
    def methods(self) -> Sequence[str]:
        """The method in force at each price."""
        return [site.auto.now for site in self._sites]

    @property
    def prices(self) -> Floats:
        """The prices of the sites."""
        return self._buffer.prices

    def observe(self, run: Completion, estimates: Mapping[str, Floats]) -> None:
        """Store a run that has ended and its predictions by method and price; tune if it is due.

        The forest, if there is one, has observed the run already.
        """
        if not self._every:
            return
        self._buffer.add(run, estimates)
        self._ended += 1
        if self._ended >= FEWEST_JOBS and (self._ended - FEWEST_JOBS) % self._every == 0:
            self._tune()

    def _tune(self) -> None:
        lesson = None
        if self._forest is not None:
            later = later_runs(self._forest, self._buffer)
            lesson = Lesson(self._forest, later, self._buffer.prices)
        for place, site in enumerate(self._sites):
            changes, buffer = list[RoundChange](), self._buffer
            if self._forest is not None:
                changes, site, buffer = tune_forest(  # noqa: PLW2901 - after its round
                    self._forest, buffer, site, self._plan, lesson
                )
            more, self._sites[place] = tune_price_and_method(
                buffer, with_answering(site), self._plan
            )
            price = site.price.now
            self.changes_by_price += [(self._ended, price, each) for each in (*changes, *more)]
