"""Numbers in time order, of which those in a moving window are sorted by size."""

from array import array
from bisect import bisect_left, bisect_right, insort

import numpy as np

_FAR = 32
"""A window that moves by more entries than this is sorted anew, which is then cheaper."""


class RankedWindow:
    """Numbers with a time each; answers the numbers of a time window in order of size.

    The last window stays sorted. A call for a window close to it moves the two ends entry by
    entry, so calls that follow the clock cost logarithmic time each. A call for a distant window
    sorts that window. Answers do not depend on earlier calls.
    """

    __slots__ = ("_first", "_ranked", "_stop", "_times", "_values")

    def __init__(self) -> None:
        self._times = array("d")
        self._values = array("d")
        self._first = 0
        self._stop = 0
        self._ranked = array("d")

    def __len__(self) -> int:
        return len(self._times)

    def add(self, time: float, value: float) -> None:
        """Add ``value`` behind the numbers of the same ``time``."""
        place = bisect_right(self._times, time)
        self._times.insert(place, time)
        self._values.insert(place, value)
        if place >= self._stop:
            return
        self._stop += 1
        if place <= self._first:
            self._first += 1
        else:
            insort(self._ranked, value)

    def between(self, since: float, until: float, most: int) -> "array[float]":
        """Return the latest ``most`` numbers with ``since <= time <= until``, in order of size.

        The caller must not change the answer, which is valid until the next call.
        """
        stop = bisect_right(self._times, until)
        first = max(bisect_left(self._times, since), stop - most)
        if (first, stop) != (self._first, self._stop):
            self._move(first, stop)
        return self._ranked

    def forget_before(self, time: float) -> None:
        """Drop numbers older than ``time`` when they are at least an eighth of all numbers.

        So dropping costs little per number, and a window without newer numbers becomes empty.
        """
        if len(self) and self._times[len(self) // 8] < time:
            self.forget(bisect_left(self._times, time))

    def forget(self, count: int) -> None:
        """Drop the oldest ``count`` numbers."""
        self._move(max(self._first, count), max(self._stop, count))
        del self._times[:count]
        del self._values[:count]
        self._first -= count
        self._stop -= count

    def _move(self, first: int, stop: int) -> None:
        """Make ``first:stop`` the sorted window."""
        if abs(first - self._first) + abs(stop - self._stop) > _FAR:
            self._sort(first, stop)
        else:
            self._slide(first, stop)
        self._first, self._stop = first, stop

    def _slide(self, first: int, stop: int) -> None:
        values, ranked = self._values, self._ranked
        for place in (*range(self._stop, stop), *range(first, self._first)):
            insort(ranked, values[place])
        for place in (*range(self._first, first), *range(stop, self._stop)):
            del ranked[bisect_left(ranked, values[place])]

    def _sort(self, first: int, stop: int) -> None:
        self._ranked = array("d", np.sort(self._values[first:stop]).tobytes())
