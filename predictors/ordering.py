"""Machine code that puts a few numbers in order, and finds places among numbers in order.

numba's own functions for this are made for numbers of every type: they take seconds to compile.
"""

import numpy as np
from numpy.typing import NDArray

from predictors.compiled import compiled

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@compiled
def place_of(values: Floats, sought: float) -> int:
    """The first place in ascending ``values`` that has no smaller value than the sought one."""
    first, stop = 0, len(values)
    while first < stop:
        middle = (first + stop) // 2
        if values[middle] < sought:
            first = middle + 1
        else:
            stop = middle
    return first


@compiled
def place_after(values: Floats, sought: float) -> int:
    """The first place in ascending ``values`` that has a greater value than the sought one."""
    first, stop = 0, len(values)
    while first < stop:
        middle = (first + stop) // 2
        if values[middle] <= sought:
            first = middle + 1
        else:
            stop = middle
    return first


@compiled
def ascending(values: Floats) -> Places:
    """The places of the values in ascending order; equal values stay in their order.

    Neighbouring runs of places, which are in order each, are merged into runs twice as long.
    """
    count = len(values)
    order, merged = np.empty(count, np.int64), np.empty(count, np.int64)
    for place in range(count):
        order[place] = place
    length = 1
    while length < count:
        for first in range(0, count, 2 * length):
            left, right = first, min(first + length, count)
            middle, stop = right, min(first + 2 * length, count)
            for place in range(first, stop):
                if left < middle and (right >= stop or values[order[left]] <= values[order[right]]):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        length *= 2
    return order
