"""The ratios of runtime to prediction of one method's latest predictions."""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from predictors.base import Memory

CAPACITY = 500
"""Number of ratios."""


ENOUGH_RATIOS = 20
"""Fewest ratios for an interval: the range of 19 futures, nominally 90%, contains one more ratio
with probability 0.85 with 20 of them, 0.79 with 10, and 0 with one."""


class ErrorRatios:
    """Ratios of runtime to prediction of the jobs that ended last."""

    memory = Memory(latest_jobs=10 * CAPACITY)  # some methods predict only one run in seven

    def __init__(self) -> None:
        self._ratios: deque[float] = deque(maxlen=CAPACITY)

    def add(self, predicted: float, runtime: float) -> None:
        """Learn how a prediction compared with the truth, both in seconds."""
        self._ratios.append(runtime / predicted)

    def ascending(self) -> Sequence[float]:
        """Return the ratios in ascending order."""
        return sorted(self._ratios)


def sample(ratios: Sequence[float], least: float, position: float) -> float | None:
    """One of the ascending ratios that exceed ``least``; None if there are none.

    Args:
        ratios: the answer of ``ErrorRatios.ascending``.
        least: lower bound of the ratio of a running job; 0 for any other job.
        position: place among the ratios that exceed ``least``, in [0, 1).
    """
    first = bisect_right(ratios, least) if least > 0 else 0
    left = len(ratios) - first
    return ratios[first + int(position * left)] if left else None
