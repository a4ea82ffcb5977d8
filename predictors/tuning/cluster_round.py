"""Rounds of a cluster: one over all tunables, and rounds in the simulated time of a replay."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.memory.columns import Floats
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import LearnedForest
from predictors.methods.knn import KnnParameters
from predictors.tuning.adoption import Adopted, RoundChange, adopt_or_revert, as_json
from predictors.tuning.forest_tunable import EQUAL_PARTS, SHARES, ForestTrials
from predictors.tuning.genetic import ProgressReport, no_report
from predictors.tuning.knn_tunable import KnnRound, tune
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan
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
            of_forest, in_force, later = tune_forest(ForestTrials(forest, buffer), in_force, plan)
            buffer = later or buffer
            changes += of_forest
        more, in_force = tune_price_and_method(buffer, in_force, plan)
        changes += more
    return ClusterRound(knn=knn, changes=changes, in_force=in_force)


def needs_forest(in_force: ClusterParameters, plan: TuningPlan) -> bool:
    """Return whether a round learns a forest, or compares the one in force."""
    return "forest" in plan.subjects or in_force.forest.now is not None


def tune_forest(
    trials: ForestTrials, in_force: ClusterParameters, plan: TuningPlan
) -> tuple[list[RoundChange], ClusterParameters, ReplayBuffer | None]:
    """Renew the trees of the forest, and tune its share of attention at the price in force.

    The trees in force are learned on the newest runs. Trees that are learned in the same way on
    older runs stand for them in all comparisons.

    Returns:
        The change, the tunables in force, and the runs that these trees were not learned on, with
        the predictions of the forest; None without a forest.
    """
    forest, price = in_force.forest.now, in_force.price.now
    if not trials.is_possible or ("forest" not in plan.subjects and forest is None):
        return [], in_force, None
    share = EQUAL_PARTS if forest is None else forest.attention
    changes = []
    if "forest" in plan.subjects:
        buffer = trials.compared
        best = BestMethod(
            buffer.nearest(price), price, plan.demand, name=Forest.name, candidates=SHARES.values()
        )
        older, later = buffer.divide(plan.test)
        runs = [*older, *later]
        _, chosen = adopt_or_revert(best, Adopted(now=SHARES[share]), older, later, runs)
        is_same = forest is not None and chosen.now == SHARES[share]
        share = next(each for each, name in SHARES.items() if name == chosen.now)
        newest = trials.newest(share)
        in_force = replace(in_force, forest=Adopted(now=newest))
        changes.append(
            RoundChange(
                subject=Forest.name,
                action="renewed" if is_same else "adopted",
                before=as_json(forest),
                after=as_json(newest),
                verdict=best.judge(Attention.name, chosen.now, runs),
            )
        )
    return changes, in_force, trials.later.with_method(Forest.name, trials.estimates(share))


def tune_price_and_method(
    buffer: ReplayBuffer, in_force: ClusterParameters, plan: TuningPlan
) -> tuple[list[RoundChange], ClusterParameters]:
    """Tune the price, and then the method at the price in force."""
    older, later = buffer.divide(plan.test)
    dropped, in_force = drop_missing_forest(in_force)
    changes = []
    if plan.seeks_price and plan.underestimation_rate is not None:
        price = TargetPrice(
            buffer.prices.tolist(), in_force.auto.now, plan.underestimation_rate, plan.demand
        )
        change, of_price = adopt_or_revert(price, in_force.price, older, later)
        in_force = replace(in_force, price=of_price)
        changes.append(change)
    if "auto" in plan.subjects and not dropped and len(buffer) >= plan.fewest_judged:
        best = BestMethod(buffer.nearest(in_force.price.now), in_force.price.now, plan.demand)
        judging = [*older, *later]  # no method was learned on any of them
        change, of_method = adopt_or_revert(best, in_force.auto, older, later, judging)
        in_force = replace(in_force, auto=of_method)
        changes.append(change)
    return [*changes, *dropped], in_force


def drop_missing_forest(
    in_force: ClusterParameters,
) -> tuple[list[RoundChange], ClusterParameters]:
    """Let auto answer with the first method, if it answers with a forest and there is none now."""
    auto = in_force.auto
    if in_force.forest.now is not None or Forest.name not in {auto.now, auto.before}:
        return [], in_force
    if auto.now != Forest.name:
        return [], replace(in_force, auto=Adopted(now=auto.now))
    change = RoundChange(subject="auto", action="dropped", before=auto.now, after=FIRST)
    return [change], replace(in_force, auto=Adopted(now=FIRST))


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
        trials = ForestTrials(self._forest, self._buffer) if self._forest is not None else None
        for place, site in enumerate(self._sites):
            changes, after, later = list[RoundChange](), site, None
            if trials is not None:
                changes, after, later = tune_forest(trials, site, self._plan)
            more, self._sites[place] = tune_price_and_method(
                later or self._buffer, after, self._plan
            )
            price = site.price.now
            self.changes_by_price += [(self._ended, price, each) for each in (*changes, *more)]
