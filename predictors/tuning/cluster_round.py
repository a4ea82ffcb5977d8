"""A round looks at all that is learned of a cluster, and says what is to be in force."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.methods.attention import Attention
from predictors.methods.knn import KnnParameters
from predictors.tuning.adopting import Change, Held, settle
from predictors.tuning.plan import TuningPlan
from predictors.tuning.round import Round, tune
from predictors.tuning.search import ProgressReport, untold
from predictors.tuning.stretch import Stretch, stretch_of
from predictors.tuning.subjects import BestMethod, TargetPrice

PRICES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Among which the price is sought that reaches a rate."""


class Standing(Struct, frozen=True, kw_only=True):
    """All that is in force for a cluster.

    Attributes:
        knn: parameters.
        price: of an underestimate, in mean runtimes, of the methods that have one.
        auto: the method that answers.
    """

    knn: Held[KnnParameters]
    price: Held[float]
    auto: Held[str]


class ClusterRound(Struct, frozen=True, kw_only=True):
    """What a round did.

    Attributes:
        knn: its search for parameters of knn; None where the plan leaves that out.
        changes: what it did about each subject of its plan.
        standing: what is in force now.
    """

    knn: Round | None
    changes: Sequence[Change]
    standing: Standing

    @property
    def adopted(self) -> bool:
        """Whether anything new is in force."""
        return any(change.action == "adopted" for change in self.changes)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the search for parameters of knn, and all changes."""
        searched = {} if self.knn is None else to_builtins(self.knn)
        return {**searched, "changes": to_builtins(self.changes)}


def hold(
    completions: Sequence[Completion],
    standing: Standing,
    plan: TuningPlan,
    report: ProgressReport = untold,
) -> ClusterRound:
    """Look at a cluster's newest completions.

    Args:
        completions: of the cluster, in the order of their observation.
        standing: what is in force.
        plan: what to look at, and what to propose.
        report: called with the progress of the search for knn's parameters.

    Raises:
        TooShortHistoryError: there are too few completions.
    """
    plan.check(len(completions))
    knn, changes = None, []
    if "knn" in plan.subjects:
        knn, change, of_knn = tune(completions, standing.knn, plan, report)
        standing = replace(standing, knn=of_knn)
        changes.append(change)
    if set(plan.subjects) - {"knn"}:
        attention = Attention(price=standing.price.now)
        newest = completions[-plan.jobs :]
        asked = min(len(newest), plan.learned + plan.test)
        prices = sorted({*PRICES, standing.price.now}) if plan.seeks_price else [standing.price.now]
        stretch = stretch_of(newest, attention, asked=asked, prices=prices)
        more, standing = of_the_others(stretch, standing, plan)
        changes += more
    return ClusterRound(knn=knn, changes=changes, standing=standing)


def of_the_others(
    stretch: Stretch, standing: Standing, plan: TuningPlan
) -> tuple[list[Change], Standing]:
    """Propose a price, then the method that answers at the price in force."""
    older, later = stretch.divided(plan.test)
    changes = []
    if plan.seeks_price and plan.underestimation_rate is not None:
        price = TargetPrice(
            stretch.prices.tolist(), standing.auto.now, plan.underestimation_rate, plan.demand
        )
        change, of_price = settle(price, standing.price, older, later)
        standing = replace(standing, price=of_price)
        changes.append(change)
    if "auto" in plan.subjects:
        best = BestMethod(stretch.nearest(standing.price.now), standing.price.now, plan.demand)
        change, of_method = settle(best, standing.auto, older, later)
        standing = replace(standing, auto=of_method)
        changes.append(change)
    return changes, standing
