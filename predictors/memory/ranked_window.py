"""Numbers in time order, of which those inside a moving window are kept in order of size too."""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

import numpy as np

_FAR = 32
"""A window that moves over more entries than this is sorted anew, which is then cheaper."""


class RankedWindow:
    """Numbers with a time each, to be asked for the numbers of a time window by size.

    The last window asked for stays sorted. A question about one close to it moves its two ends
    entry by entry; so questions that follow the clock cost logarithmic time each, however
    often they are asked. A question about a distant window sorts that window. Answers do not
    depend on the questions before.
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
        """Add a number; behind those of the same time."""
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

    def between(self, since: float, until: float, most: int) -> Sequence[float]:
        """The numbers with ``since <= time <= until``, the latest ``most`` of them, by size.

        The answer must not be changed, and holds until the next call.
        """
        stop = bisect_right(self._times, until)
        first = max(bisect_left(self._times, since), stop - most)
        if (first, stop) != (self._first, self._stop):
            self._move(first, stop)
        return self._ranked

    def forget_before(self, time: float) -> None:
        """Drop numbers older than ``time``, but only once they are an eighth of all.

        So dropping costs little per number, and a window with no newer number becomes empty.
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
