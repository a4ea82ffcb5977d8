"""Keeps past runs in the leaves of a forest, and weighs them by the leaves that a job shares.

In every tree the runs of a leaf are linked from the newest to the oldest, as the table links the
runs of a user. A run enters its leaves when it ends, by its features as they were at its
submission. So a forest that was learned long ago still answers from the newest runs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from predictors.compiled import compiled
from predictors.memory.columns import END, RUNTIME, Columns, Floats, Ids, JobQuery, RowIds, within
from predictors.memory.job_table import JobTable, WeakCall

IN_LEAF = 16
"""Number of the newest runs of a leaf that count."""

NO_LEAF = -1
"""Leaf of a run without features, and row before the first one of a leaf."""


class Leaves(NamedTuple):
    """Runs by leaf.

    Attributes:
        leaf: by tree and row.
        previous: row of the previous run in the same leaf, by tree and row.
        newest: row of the last run, by leaf.
    """

    leaf: Ids
    previous: Ids
    newest: Ids


@compiled
def link_leaves(leaves: Leaves, begin: int, end: int) -> None:
    """Put rows at the ends of the chains of their leaves."""
    for row in range(begin, end):
        for tree in range(len(leaves.leaf)):
            leaf = leaves.leaf[tree, row]
            if leaf >= 0:
                leaves.previous[tree, row] = leaves.newest[leaf]
                leaves.newest[leaf] = row


@compiled
def unlink_leaves(leaves: Leaves, begin: int, end: int) -> None:
    """Take the last rows out of the chains of their leaves."""
    for row in range(end - 1, begin - 1, -1):
        for tree in range(len(leaves.leaf)):
            leaf = leaves.leaf[tree, row]
            if leaf >= 0:
                leaves.newest[leaf] = leaves.previous[tree, row]


@compiled
def weigh_leaves(
    columns: Columns, previous: Ids, heads: Ids, rows: tuple[int, float], job: JobQuery
) -> tuple[tuple[Floats, Floats], RowIds, int]:
    """Return the runs that share leaves with a job, and the number of trees that have some.

    Each tree gives the same weight to the IN_LEAF newest runs of its leaf. The weights of all trees
    sum to 1. A run that shares several leaves occurs as often.

    Args:
        heads: a row from which the runs of the job's leaf are linked, by tree.
        rows: the first row, and the time (Unix seconds) at which a run must have ended.

    Returns:
        Runtimes in ascending order with weights, their rows, and the number.
    """
    first, time = rows
    numbers = columns[0]
    most = len(heads) * IN_LEAF
    values, weights, found = np.empty(most), np.empty(most), np.empty(most, np.int64)
    count = trees = 0
    for tree in range(len(heads)):
        begin, row = count, int(np.int64(heads[tree]))
        while row >= first and count < begin + IN_LEAF:
            if numbers[END, row] <= time:
                values[count] = within(numbers[RUNTIME, row], job.request)
                found[count] = row
                count += 1
            row = int(np.int64(previous[tree, row]))
        trees += count > begin
        for index in range(begin, count):
            weights[index] = 1.0 / (count - begin)
    for index in range(count):
        weights[index] /= trees
    order = np.argsort(values[:count], kind="mergesort")
    return (values[order], weights[order]), found[order], trees


ComputeLeaves = Callable[[int, int, Ids], None]
"""Writes the leaves of rows, from the first on and before the second, by tree and row."""


class LeafIndex:
    """The leaves of a table's runs, computed when they are needed.

    Args:
        nodes: number of nodes of all trees.
        linked: number of last rows that are in leaves at least.
    """

    def __init__(
        self, table: JobTable, trees: int, nodes: int, compute: ComputeLeaves, linked: int
    ) -> None:
        self._table = table
        self._changes = table.watch()
        self._compute = WeakCall(compute)
        self._linked = linked
        self._moved = table.moved
        self._stop = 0
        # Of one tree alone the arrays would have another memory layout than of several.
        empty = np.full((2, max(trees, 2), 0), NO_LEAF, np.int32, order="F")
        self._leaves = Leaves(empty[0], empty[1], np.full(nodes, NO_LEAF, np.int32))

    @property
    def leaves(self) -> Leaves:
        """The leaves of all rows of the table."""
        self._follow_moves()
        table, stop = self._table, self._table.first + len(self._table)
        changed = max(0, min(self._stop, self._changes.take() - table.moved))
        unlink_leaves(self._leaves, changed, self._stop)
        begin = max(changed, table.first, stop - self._linked)
        self._leaves.leaf[:, changed:begin] = NO_LEAF
        if begin < stop:
            self._compute(begin, stop, self._leaves.leaf)
            link_leaves(self._leaves, begin, stop)
        self._stop = stop
        return self._leaves

    def _follow_moves(self) -> None:
        """Move rows as the table has moved its rows, and make room for as many."""
        leaf, previous, newest = self._leaves
        back, self._moved = self._table.moved - self._moved, self._table.moved
        if back:
            for rows in (leaf, previous):
                rows[:, :-back] = rows[:, back:].copy()
            for places in (previous, newest):
                np.maximum(places - back, NO_LEAF, out=places)
            self._stop = max(0, self._stop - back)
        rows = self._table.columns[0].shape[1]
        if rows > leaf.shape[1]:
            longer = [np.full((len(leaf), rows), NO_LEAF, np.int32, order="F") for _ in range(2)]
            for new, old in zip(longer, (leaf, previous), strict=True):
                new[:, : old.shape[1]] = old
            self._leaves = Leaves(longer[0], longer[1], newest)
