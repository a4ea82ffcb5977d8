"""Sets of nodes as rows of words, ``BITS`` nodes in each, the lowest node in the lowest bit."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.engine.compiled import inlined, kernel

BITS = 32
"""Nodes in a word. A word is a signed number of 64 bits, so that no operation overflows."""

ALL = (1 << BITS) - 1

Sets = Any
"""An array of rows, each of which is a set of nodes."""


def set_of(members: Iterable[int], nodes: int) -> NDArray[np.int64]:
    """Return a row with the given nodes of a cluster of ``nodes``."""
    row = np.zeros(-(-nodes // BITS), np.int64)
    for node in members:
        row[node // BITS] |= 1 << (node % BITS)
    return row


def members_of(row: NDArray[np.int64]) -> list[int]:
    """Return the nodes of a row in ascending order."""
    return [
        BITS * word + bit
        for word, bits in enumerate(row.tolist())
        for bit in range(BITS)
        if bits >> bit & 1
    ]


@inlined
def ones(bits: int) -> int:
    """Return the number of nodes in a word."""
    bits = bits - ((bits >> 1) & 0x55555555)
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F
    return ((bits * 0x01010101) >> 24) & 0xFF


@kernel
def count(sets: Sets, row: int) -> int:
    """Return the number of nodes in a set."""
    total = 0
    for word in range(sets.shape[1]):
        total += ones(sets[row, word])
    return total


@inlined
def clear(sets: Sets, row: int) -> None:
    """Make a set empty."""
    for word in range(sets.shape[1]):
        sets[row, word] = 0


@inlined
def copy(target: Sets, row: int, source: Sets, other: int) -> None:
    """Make a set equal to another."""
    for word in range(target.shape[1]):
        target[row, word] = source[other, word]


@inlined
def keep_common(target: Sets, row: int, source: Sets, other: int) -> None:
    """Take the nodes out of a set that another lacks."""
    for word in range(target.shape[1]):
        target[row, word] &= source[other, word]


@inlined
def keep_first(sets: Sets, row: int) -> None:
    """Take all nodes but the first out of a set."""
    is_found = False
    for word in range(sets.shape[1]):
        bits = sets[row, word]
        sets[row, word] = 0 if is_found else bits & -bits
        is_found |= bits != 0


@inlined
def add(target: Sets, row: int, source: Sets, other: int) -> None:
    """Add the nodes of another set."""
    for word in range(target.shape[1]):
        target[row, word] |= source[other, word]


@inlined
def remove(target: Sets, row: int, source: Sets, other: int) -> None:
    """Take out the nodes of another set."""
    for word in range(target.shape[1]):
        target[row, word] &= ~source[other, word]


@inlined
def meets(sets: Sets, row: int, others: Sets, other: int) -> bool:
    """Return whether two sets have a node in common."""
    common = 0
    for word in range(sets.shape[1]):
        common |= sets[row, word] & others[other, word]
    return common != 0


@inlined
def lies_in(sets: Sets, row: int, others: Sets, other: int) -> bool:
    """Return whether all nodes of a set are in another."""
    lacking = 0
    for word in range(sets.shape[1]):
        lacking |= sets[row, word] & ~others[other, word]
    return lacking == 0
