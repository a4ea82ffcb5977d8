"""Starts as they were told while jobs waited: their scores beside the scheduler's, and calibration.

Three tell: walltimed, the scheduler's own plan, and past waits (the median of those of the queue's
last jobs that are longer than the job has waited, as Brevik et al. 2006 bound waits by past ones).
Intervals are conformalized (Romano et al. 2019): their ends are moved by quantiles of what earlier
intervals missed, relative to their width, for each horizon. An end that missed more starts than it
should is moved further (adaptive conformal inference, Gibbs & Candès 2021): the errors of jobs that
wait together are alike, and those of last week are not those of this one.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from statistics import median
from typing import Literal, Self

import numpy as np
from msgspec import Struct, field

HOUR, WEEK = 3600.0, 7 * 24 * 3600.0

Horizon = Literal["hour", "six-hours", "later"]

HORIZONS: Mapping[Horizon, float] = {"hour": HOUR, "six-hours": 6 * HOUR, "later": float("inf")}
"""Seconds to come that each horizon has at most."""

MOST_MISSES = 1500
"""Most intervals of a horizon that calibration looks at, the latest ones."""

ENOUGH = 100
"""Fewest of them; with fewer, ends are moved as they were at other sites."""

FIRST_MOVES: Mapping[Horizon, tuple[float, float]] = {
    "hour": (0.0, 3.4),
    "six-hours": (0.0, 0.5),
    "later": (0.1, 0.1),
}
"""Widths by which both ends were moved after months of five logs: medians (results/starts.txt)."""

ENOUGH_TO_JUDGE = 100
"""Fewest intervals of which it is told how many held."""

SHORTEST = 1800.0
"""Least width by which what an interval missed is divided, in seconds.

With a minute, the misses of intervals that were too sure make others wider by days.
"""

MOST_ERRORS = 500
"""Most first forecasts whose errors are remembered."""

MOST_WAITS = 500
"""Most waits of a queue that are remembered."""

ENOUGH_WAITS = 10


class Missed(Struct, frozen=True, array_like=True, gc=False):
    """An interval and the start that came.

    Attributes:
        before: seconds by which the start was before the interval as it was played, in widths.
        after: likewise after it; both are negative within.
        is_held: whether the interval that was shown held the start.
        is_early: whether the start was before that interval.
    """

    before: float
    after: float
    is_held: bool
    is_early: bool = False

    @property
    def is_late(self) -> bool:
        """Return whether the start was after the interval that was shown."""
        return not (self.is_held or self.is_early)


class ToldRecord(Struct, kw_only=True):
    """The last told starts of a cluster, of jobs that have started.

    Attributes:
        misses: by horizon, as forecast; one interval of each job and horizon.
        errors: distances of first forecasts from the starts, in seconds.
        waits: of all started jobs, by queue.
    """

    misses: dict[str, list[Missed]] = field(default_factory=dict)
    errors: list[float] = field(default_factory=list)
    waits: dict[str, list[float]] = field(default_factory=dict)

    @property
    def usual_error(self) -> float | None:
        """Return the median error of first forecasts; None of too few."""
        return median(self.errors) if len(self.errors) >= ENOUGH_WAITS else None

    def observed_coverage(self) -> float | None:
        """Return the share of shown intervals that held the start; None of too few."""
        held = [each.is_held for missed in self.misses.values() for each in missed]
        return sum(held) / len(held) if len(held) >= ENOUGH_TO_JUDGE else None


def horizon_of(seconds: float) -> Horizon:
    """Return the horizon of a start that is so many seconds ahead."""
    return next(name for name, most in HORIZONS.items() if seconds < most)


class Calibration:
    """Moves the ends of intervals so that each end misses a share of starts.

    Args:
        record: the last told starts.
        coverage: share of the starts that intervals are to hold; None without intervals.
    """

    def __init__(self, record: ToldRecord, coverage: float | None) -> None:
        outside = (1 - (coverage or 0.0)) / 2
        self._moves = dict(FIRST_MOVES) | {
            name: (
                move([each.before for each in missed], [each.is_early for each in missed], outside),
                move([each.after for each in missed], [each.is_late for each in missed], outside),
            )
            for name, missed in record.misses.items()
            if len(missed) >= ENOUGH
        }

    def interval(self, lower: float, start: float, upper: float) -> tuple[float, float]:
        """Return the moved ends; all are seconds from now, and the start stays between them."""
        before, after = self._moves[horizon_of(start)]
        width = max(SHORTEST, upper - lower)
        return (
            max(0.0, min(start, lower - before * width)),
            max(start, upper + after * width),
        )


def move(missed: Sequence[float], were_outside: Sequence[bool], outside: float) -> float:
    """Return by how many widths an end is moved outwards.

    Args:
        missed: widths by which starts were beyond the end as it was played.
        were_outside: whether they were beyond the end as it was shown.
        outside: share of the starts that may be beyond it.
    """
    too_many = sum(were_outside) / len(were_outside) - outside
    return quantile(missed, min(1.0, 1 - outside + too_many))


def quantile(values: Sequence[float], share: float) -> float:
    """Return the least value that at least a share of values, and of one more, do not exceed."""
    place = min(len(values), ceil(share * (len(values) + 1)))
    return float(np.partition(np.array(values), place - 1)[place - 1])


class PastWaits:
    """The sorted waits of the last jobs of each queue."""

    def __init__(self, waits: Mapping[str, Sequence[float]]) -> None:
        self._waits = waits

    @classmethod
    def of(cls, waits: Mapping[str, Sequence[float]]) -> Self:
        """Return those of waits in any order."""
        return cls({queue: sorted(known) for queue, known in waits.items()})

    def wait_of(self, queue: str, waited: float) -> float | None:
        """Return the median of the waits that are longer; None of too few."""
        known = self._waits.get(queue, ())
        longer = known[bisect_right(known, waited) :]
        return median(longer) if len(longer) >= ENOUGH_WAITS else None


def with_waits(
    before: Mapping[str, Sequence[float]], waits: Sequence[tuple[str, float]]
) -> dict[str, list[float]]:
    """Return the waits by queue with new ones, the latest last."""
    found: dict[str, list[float]] = defaultdict(list)
    for queue, known in before.items():
        found[queue] = list(known)
    for queue, wait in waits:
        found[queue].append(wait)
    return {queue: known[-MOST_WAITS:] for queue, known in found.items()}
