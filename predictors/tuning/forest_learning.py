"""Learns forests on a cluster's runs with scikit-learn."""

from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from predictors.memory.columns import Floats, Ids
from predictors.methods.attention_features import Singles
from predictors.methods.forest import Forest
from predictors.methods.forest_features import FEATURES
from predictors.methods.forest_trees import (
    NO_FEATURE,
    VERSIONS,
    LearnedForest,
    Trees,
    joined,
    packed,
    unpacked,
)

TREES = 32
SMALLEST_LEAF = 4
"""Fewest runs of a leaf when the trees are learned."""

FEATURE_SHARE = 1 / 3
"""Share of the features that are tried for each division."""

MOST_RUNS = 10_000
"""Number of runs that trees are learned on."""

OF_A_USER = MOST_RUNS // 2
"""Most of these runs that are of one user: trees that know a job array alone divide no other jobs.
"""

FEWEST_RUNS = 2_000
"""Fewest runs that trees are learned on."""

EQUAL_PARTS = 0.5
"""Share of attention in the distribution of a forest."""

JUDGED = 10_000
"""Most of the last runs that the trees which give the PIT values are not learned on."""


def learned_anew(forest: Forest, seed: int = 0) -> LearnedForest | None:
    """Return a forest that is learned on all stored runs; None on too few.

    Trees that are learned on the older runs alone come with it. They give PIT values and costs of
    the runs that the newest trees know.

    Args:
        forest: observed the runs.
    """
    features = forest.features()
    later = min(JUDGED, len(features) // 2)
    newest, judged = learn(forest, features, 0, seed), learn(forest, features, later, seed)
    if newest is None or judged is None:
        return None
    sets = [unpacked(each.trees, each.features) for each in (newest, judged)]
    return replace(
        newest,
        trees=packed(joined(sets)),
        attention=EQUAL_PARTS,
        calibrating=len(sets[1].roots),
        known=judged.until,
    )


def learn(forest: Forest, features: Singles, later: int, seed: int = 0) -> LearnedForest | None:
    """Learn trees on the runs of a forest before the last ``later`` ones; None on too few runs.

    The trees predict the logarithm of the runtime.

    Args:
        forest: observed the runs.
        features: of all runs, as they were at their submissions.
        later: number of last runs that nothing is learned on.
    """
    runtimes, requests, ends = forest.runtimes()
    known = np.flatnonzero(~np.isnan(features[: len(features) - later, 0]))
    chosen = known[are_newest(forest.users()[known])][-MOST_RUNS:]
    if len(chosen) < FEWEST_RUNS:
        return None
    targets = np.log1p(np.minimum(runtimes, requests)[chosen])
    useful = forest.useful_features(features.shape[1])
    trees = fit(features[chosen][:, useful], targets, seed)
    inner = trees.features != NO_FEATURE
    trees.features[inner] = useful[trees.features[inner]]
    return LearnedForest(
        trees=packed(trees),
        attention=0.0,
        runs=len(chosen),
        until=float(ends[chosen[-1]]),
        version=VERSIONS[features.shape[1] > len(FEATURES)],
    )


def are_newest(users: Ids) -> NDArray[np.bool_]:
    """Return which runs are among the OF_A_USER last ones of their user, by the user of each."""
    newest = np.zeros(len(users), np.bool_)
    for user in np.unique(users):
        newest[np.flatnonzero(users == user)[-OF_A_USER:]] = True
    return newest


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
