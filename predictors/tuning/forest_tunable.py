"""Learns forests on a cluster's runs with scikit-learn, and judges them on later runs."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec.structs import replace

from predictors.memory.columns import Floats
from predictors.methods.attention_features import Singles
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import (
    NO_FEATURE,
    LearnedForest,
    Trees,
    joined,
    packed,
)
from predictors.tuning.adoption import NO_CASES, Demand, Verdict, compare
from predictors.tuning.tunables import ReplayBuffer, RunRecord, costs_of

TREES = 16
SMALLEST_LEAF = 4
"""Fewest runs of a leaf when the trees are learned."""

FEATURE_SHARE = 1 / 3
"""Share of the features that are tried for each division."""

MOST_RUNS = 10_000
"""Number of runs that trees are learned on."""

FEWEST_RUNS = 2_000
"""Fewest runs that trees are learned on."""

SHARES = (0.0, 0.5)
"""Shares of attention that a round compares."""


class Lesson:
    """Forests that are learned on a cluster's runs, and their predictions for later runs.

    Args:
        forest: observed the cluster's runs.
        later: number of last runs that nothing is learned on.
        prices: of an underestimate, in mean runtimes.
        seed: of scikit-learn.
    """

    def __init__(self, forest: Forest, later: int, prices: Floats, seed: int = 0) -> None:
        self._forest = forest
        self._later = later
        self._prices = prices
        self._seed = seed
        self._predicted: dict[LearnedForest | None, Floats] = {}

    @cached_property
    def learned(self) -> LearnedForest | None:
        """The trees learned on the runs before the later ones; None on too few runs."""
        return learn(self._forest, self._later, self._seed)

    def estimates(self, learned: LearnedForest | None) -> Floats:
        """Return the predictions of a forest for the later runs, by run and price, in seconds."""
        if learned not in self._predicted:
            forest = self._forest.retuned(learned)
            self._predicted[learned] = forest.estimates_of_last(self._later, self._prices)
        return self._predicted[learned]


class ForestTunable:
    """The forest of a cluster.

    Args:
        lesson: forests and predictions.
        buffer: the later runs.
        price: of an underestimate, in mean runtimes.
        demand: the least gain that counts.
    """

    name = Forest.name

    def __init__(self, lesson: Lesson, buffer: ReplayBuffer, price: float, demand: Demand) -> None:
        self._lesson = lesson
        self._places = {id(run): place for place, run in enumerate(buffer.records)}
        self._column = buffer.nearest(price)
        self._price = price
        self._demand = demand

    def propose(
        self,
        now: LearnedForest | None,  # noqa: ARG002 - part of the protocol
        older: Sequence[RunRecord],
    ) -> LearnedForest | None:
        """Return learned trees with the share of attention that costs less on the older runs."""
        learned = self._lesson.learned
        if learned is None or not older:
            return None
        forests = [replace(learned, attention=share) for share in SHARES]
        return min(forests, key=lambda each: float(self._costs(each, older).mean()))

    def judge(
        self, old: LearnedForest | None, new: LearnedForest | None, later: Sequence[RunRecord]
    ) -> Verdict:
        """Judge how much less the predictions of the new forest cost."""
        if not later:
            return NO_CASES
        users = [run.user for run in later]
        return compare(self._costs(old, later), self._costs(new, later), users, self._demand)

    def _costs(self, learned: LearnedForest | None, runs: Sequence[RunRecord]) -> Floats:
        places = [self._places[id(run)] for run in runs]
        predicted = self._lesson.estimates(learned)[places, self._column]
        return costs_of(predicted, np.array([run.runtime for run in runs]), self._price)


def learn(forest: Forest, later: int, seed: int = 0) -> LearnedForest | None:
    """Learn trees on the runs of a forest before the last ``later`` ones; None on too few runs.

    A run counts by its features as they were at its submission. The trees predict the logarithm of
    the runtime.
    """
    features = forest.features()
    runtimes, requests, ends = forest.runtimes()
    chosen = np.flatnonzero(~np.isnan(features[: len(features) - later, 0]))[-MOST_RUNS:]
    if len(chosen) < FEWEST_RUNS:
        return None
    targets = np.log1p(np.minimum(runtimes, requests)[chosen])
    trees = fit(features[chosen], targets, seed)
    return LearnedForest(
        trees=packed(trees), attention=0.0, runs=len(chosen), until=float(ends[chosen[-1]])
    )


def fit(features: Singles, targets: Floats, seed: int) -> Trees:
    """Return trees of scikit-learn as arrays."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415 - takes a second, in rounds

    forest = RandomForestRegressor(
        TREES,
        min_samples_leaf=SMALLEST_LEAF,
        max_features=FEATURE_SHARE,
        random_state=seed,
        n_jobs=1,
    )
    forest.fit(features, targets)
    return joined([arrays_of(each.tree_) for each in forest.estimators_])


def arrays_of(tree: Any) -> Trees:
    """Return a tree of scikit-learn as arrays; it stores a left child right after its parent.

    Thresholds become the next smaller number of 32 bits, as features are: so each job goes the same
    way.
    """
    is_leaf = tree.children_left < 0
    thresholds = tree.threshold.astype(np.float32)
    above = thresholds > tree.threshold
    thresholds[above] = np.nextafter(thresholds[above], np.float32(-np.inf))
    return Trees(
        np.where(is_leaf, NO_FEATURE, tree.feature).astype(np.int8),
        np.where(is_leaf, np.float32(0), thresholds),
        np.where(is_leaf, 0, tree.children_right).astype(np.int32),
        np.zeros(1, np.int32),
    )
