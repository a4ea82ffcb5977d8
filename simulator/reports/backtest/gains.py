"""Gains of a method against the requests over all repetitions: a mean and an interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.reports.backtest.repetitions import Play

MATERIAL = 0.03
"""A smaller change of a mean matters to nobody, whether or not it is more than chance."""


@dataclass(frozen=True, slots=True)
class PlayRange:
    """The mean over the repetitions, and the lowest and highest of them."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "PlayRange":
        """The interval of at least one value."""
        return cls(float(np.mean(values)), float(min(values)), float(max(values)))

    @property
    def margin(self) -> float:
        """Half of the interval's width, for ``±``."""
        return (self.high - self.low) / 2

    @property
    def matters(self) -> bool:
        """Whether the mean is large enough to matter to somebody."""
        return abs(self.mean) >= MATERIAL

    @property
    def is_gain(self) -> bool:
        """Whether every repetition gains, and enough to matter."""
        return self.low > 0 and self.matters

    @property
    def is_loss(self) -> bool:
        """Whether every repetition loses, and enough to matter."""
        return self.high < 0 and self.matters


def of(plays: Sequence[Play], measure: Callable[[Play], float]) -> PlayRange:
    """The interval of a measure over the repetitions."""
    return PlayRange.of([measure(play) for play in plays])


def mean_wait(plays: Sequence[Play]) -> float:
    """The mean wait over the repetitions, in seconds."""
    return of(plays, lambda play: play.wait).mean


def gain(
    today: Sequence[Play], plays: Sequence[Play], measure: Callable[[Play], float]
) -> PlayRange:
    """Relative decrease of a measure against the requests, repetition by repetition.

    Where a measure is 0 by requests, there is nothing to gain: the gain is 0, or the loss whole.
    """
    pairs = zip(today, plays, strict=True)
    return PlayRange.of([_share(measure(before), measure(after)) for before, after in pairs])


def _share(before: float, after: float) -> float:
    if before <= 0:
        return 0.0 if after <= 0 else -1.0
    return 1 - after / before
