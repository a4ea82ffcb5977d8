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
    unpacked,
)
from predictors.tuning.tunables import ReplayBuffer, RunRecord

TREES = 16
SMALLEST_LEAF = 4
"""Fewest runs of a leaf when the trees are learned."""

FEATURE_SHARE = 1 / 3
"""Share of the features that are tried for each division."""

MOST_RUNS = 10_000
"""Number of runs that trees are learned on."""

FEWEST_RUNS = 2_000
"""Fewest runs that trees are learned on."""

EQUAL_PARTS = 0.5
"""Share of attention in the distribution of a first forest."""

SHARES = {EQUAL_PARTS: "forest and attention", 0.0: "forest alone"}
"""Shares of attention that a round compares, each with a name for its predictions."""


class ForestTrials:
    """Forests that are learned on a cluster's runs, and their predictions for later runs.

    Args:
        forest: observed the cluster's runs.
        buffer: the last of these runs, in order of their ends.
        seed: of scikit-learn.

    Attributes:
        later: the last runs, at most half of all. Trees that predict them are learned on the runs
            before.
    """

    def __init__(self, forest: Forest, buffer: ReplayBuffer, seed: int = 0) -> None:
        self.later = buffer.last(len(forest.runtimes()[0]) // 2)
        self._forest = forest
        self._seed = seed
        self._predicted: dict[float, Floats] = {}

    @cached_property
    def _features(self) -> Singles:
        return self._forest.features()

    @cached_property
    def _judged(self) -> LearnedForest | None:
        return learn(self._forest, self._features, len(self.later), self._seed)

    @cached_property
    def _newest(self) -> LearnedForest | None:
        newest, judged = learn(self._forest, self._features, 0, self._seed), self._judged
        if newest is None or judged is None:
            return newest
        trees = [unpacked(each.trees) for each in (newest, judged)]
        return replace(newest, trees=packed(joined(trees)), calibrating=len(trees[1].roots))

    @property
    def is_possible(self) -> bool:
        """Whether there are enough runs before the later ones."""
        return self._judged is not None

    @property
    def compared(self) -> ReplayBuffer:
        """The later runs with the predictions of forests with all shares of attention."""
        buffer = self.later
        for share, name in SHARES.items():
            buffer = buffer.with_method(name, self.estimates(share))
        return buffer

    def newest(self, attention: float) -> LearnedForest | None:
        """Return trees learned on the newest runs, and those that were judged, which calibrate.

        None on too few runs.

        Args:
            attention: share of attention.
        """
        return self._newest and replace(self._newest, attention=attention)

    def estimates(self, attention: float) -> Floats:
        """Return the predictions for the later runs, by run and price, in seconds.

        Args:
            attention: share of attention.
        """
        if attention not in self._predicted:
            judged = self._judged and replace(self._judged, attention=attention)
            forest = self._forest.copied(judged)
            found = forest.estimates_of_last(len(self.later), self.later.prices)
            predict_strangers(forest, self.later.records, found)
            self._predicted[attention] = found
        return self._predicted[attention]


def predict_strangers(forest: Forest, runs: Sequence[RunRecord], estimates: Floats) -> None:
    """Predict runs of users without runs, whose estimates are NaN, as at their submissions.

    The price does not count for them. The runs are taken in order of their submissions, so that
    levels are corrected by windows that only move on.
    """
    strangers = np.flatnonzero(np.isnan(estimates[:, 0])).tolist()
    for place in sorted(strangers, key=lambda place: runs[place].submission.submit_time):
        estimates[place] = forest.predict(runs[place].submission).predicted_walltime


def learn(forest: Forest, features: Singles, later: int, seed: int = 0) -> LearnedForest | None:
    """Learn trees on the runs of a forest before the last ``later`` ones; None on too few runs.

    The trees predict the logarithm of the runtime.

    Args:
        forest: observed the runs.
        features: of all runs, as they were at their submissions.
        later: number of last runs that nothing is learned on.
        seed: of scikit-learn.
    """
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
