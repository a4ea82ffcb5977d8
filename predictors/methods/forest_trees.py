"""The trees of a forest as arrays, and a forest as it is stored.

A node's left child is the node after it. So a node is a feature, a threshold and its right child;
a leaf has NO_FEATURE. A job goes left if its feature is at most the threshold.
"""

from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO
from math import inf
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.memory.columns import Ids
from predictors.memory.fact_rows import PLACES
from predictors.methods.attention_features import Singles
from predictors.methods.forest_features import FEATURES, VERSION
from predictors.parameters import number, whole_number

NO_FEATURE = -1
"""Feature of a leaf."""

MOST_TREES = 64
"""Largest number of trees; with more a prediction would take too long."""

MOST_NODES = 1_000_000

VERSIONS = (VERSION, VERSION + 1)
"""Of forests without and with features of further facts."""


class UnusableForestError(ValueError):
    """These bytes are no forest that this release can use."""


class Trees(NamedTuple):
    """Trees, one after the other.

    Attributes:
        features: index of the feature that divides, by node.
        thresholds: by node.
        rights: right child, by node.
        roots: first node of each tree.
    """

    features: NDArray[np.int8]
    thresholds: Singles
    rights: Ids
    roots: Ids


class LearnedForest(Struct, frozen=True, kw_only=True):
    """A forest as a round learns and adopts it.

    Attributes:
        trees: the arrays, as a compressed file of numpy; the last ``calibrating`` of them do not
            predict.
        attention: share of all weight that the distribution of ``attention`` has, below 1.
        runs: number of runs that the trees were learned on.
        until: end of the last of them, Unix seconds.
        calibrating: number of trees that were learned on the older of these runs only. They give
            the PIT values of runs until ``until``, most of which they were not learned on.
        known: end of the last run that these were learned on, Unix seconds; inf without them.
        version: of the features.
    """

    trees: bytes
    attention: float
    runs: int
    until: float
    calibrating: int = 0
    known: float = inf
    version: int = VERSION

    def __post_init__(self) -> None:
        """Check share, number of trees and version.

        Raises:
            UnusableForestError: this release cannot use the forest.
        """
        if self.version not in VERSIONS:
            raise UnusableForestError(f"The forest was learned for features {self.version}.")
        number("attention", self.attention, 0, 0.99)
        whole_number("calibrating", self.calibrating, 0, MOST_TREES - 1)

    @property
    def features(self) -> int:
        """Number of features that its trees may divide by."""
        return len(FEATURES) + (PLACES if self.has_facts else 0)

    @property
    def has_facts(self) -> bool:
        """Whether trees may divide by further facts."""
        return self.version == VERSIONS[1]

    def summary(self) -> dict[str, Any]:
        """Return the forest without its trees, as JSON values."""
        return {"attention": self.attention, "runs": self.runs, "until": self.until}


def packed(trees: Trees) -> bytes:
    """Return trees as a compressed file of numpy."""
    file = BytesIO()
    np.savez_compressed(file, **trees._asdict())
    return file.getvalue()


@lru_cache(maxsize=8)
def unpacked(content: bytes, features: int = len(FEATURES)) -> Trees:
    """Return the trees in a file, which divide jobs by so many features.

    Raises:
        UnusableForestError: it is no file of trees, or a walk through them would not end.
    """
    try:
        with np.load(BytesIO(content), allow_pickle=False) as file:
            trees = Trees(*(file[name] for name in Trees._fields))
    except (BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
        raise UnusableForestError(f"This is no file of trees: {error}") from error
    check_trees(trees, features)
    return trees


def check_trees(trees: Trees, features: int) -> None:
    """Check the arrays of trees.

    Raises:
        UnusableForestError: a type or an index is wrong.
    """
    types = (np.int8, np.float32, np.int32, np.int32)
    arrays: tuple[NDArray[Any], ...] = tuple(trees)
    nodes, roots = len(trees.features.ravel()), trees.roots.ravel()
    shapes = (nodes, nodes, nodes, len(roots))
    for name, array, kind, size in zip(Trees._fields, arrays, types, shapes, strict=True):
        if array.dtype != kind or array.shape != (size,):
            raise UnusableForestError(f"{name} must be {size} numbers of type {kind.__name__}.")
    if not (0 < len(roots) <= MOST_TREES and 0 < nodes <= MOST_NODES):
        raise UnusableForestError(f"A forest has 1 to {MOST_TREES} trees.")
    inner = np.flatnonzero(trees.features != NO_FEATURE)
    rights = trees.rights[inner]
    is_inside = (roots >= 0).all() and (roots < nodes).all() and (rights < nodes).all()
    if not is_inside or (rights <= inner).any() or (len(inner) and inner[-1] == nodes - 1):
        raise UnusableForestError("A node of the trees has no child.")
    if (trees.features < NO_FEATURE).any() or (trees.features >= features).any():
        raise UnusableForestError("A node of the trees divides by an unknown feature.")


def joined(parts: Sequence[Trees]) -> Trees:
    """Return sets of trees as one set of trees."""
    firsts = np.cumsum([0, *(len(part.features) for part in parts)])[:-1]
    rights = [part.rights + first for part, first in zip(parts, firsts, strict=True)]
    roots = [part.roots + first for part, first in zip(parts, firsts, strict=True)]
    return Trees(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.thresholds for part in parts]),
        np.concatenate(rights).astype(np.int32),
        np.concatenate(roots).astype(np.int32),
    )


NO_TREES = Trees(
    np.empty(0, np.int8), np.empty(0, np.float32), np.empty(0, np.int32), np.empty(0, np.int32)
)
"""Trees of a cluster for which no round has learned a forest."""


def one_leaf(attention: float = 0.0) -> LearnedForest:
    """Return a forest of one tree, all of whose runs are in one leaf."""
    leaf = Trees(
        np.array([NO_FEATURE], np.int8),
        np.zeros(1, np.float32),
        np.zeros(1, np.int32),
        np.zeros(1, np.int32),
    )
    return LearnedForest(trees=packed(leaf), attention=attention, runs=0, until=0.0)


@compiled
def leaf_of(trees: Trees, tree: int, features: Singles) -> int:
    """Return the leaf (a node) of a tree into which a job with these features falls."""
    node = int(np.int64(trees.roots[tree]))
    while trees.features[node] >= 0:
        is_left = features[trees.features[node]] <= trees.thresholds[node]
        node = node + 1 if is_left else int(np.int64(trees.rights[node]))
    return node
