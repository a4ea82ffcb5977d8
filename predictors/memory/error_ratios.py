"""How far one method's predictions were off lately: what to expect of the next ones."""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from predictors.base import Memory

KEPT = 500
"""The latest predictions that are remembered."""


class RecentErrors:
    """Ratios of runtime to prediction of the jobs that ended last."""

    memory = Memory(latest_jobs=KEPT)

    def __init__(self) -> None:
        self._ratios: deque[float] = deque(maxlen=KEPT)

    def add(self, predicted: float, runtime: float) -> None:
        """Learn how a prediction compared with the truth, both in seconds."""
        self._ratios.append(runtime / predicted)

    def quantiles(self) -> Sequence[float]:
        """The ratios in ascending order."""
        return sorted(self._ratios)


def sample(ratios: Sequence[float], least: float, position: float) -> float | None:
    """One of the ascending ratios that exceed ``least``; None if there are none.

    Args:
        ratios: of ``RecentErrors.quantiles``.
        least: what the ratio of a running job is known to exceed; 0 for any other.
        position: in [0, 1), where among them.
    """
    first = bisect_right(ratios, least) if least > 0 else 0
    left = len(ratios) - first
    return ratios[first + int(position * left)] if left else None
