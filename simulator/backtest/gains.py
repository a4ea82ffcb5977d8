"""Gains against today: a mean over the repetitions, and an interval over resampled weeks.

Repetitions with moved submissions show how chaotic a schedule is; weeks show how much one stretch
of a log differs from the next. The interval has both: each sample takes one repetition, and draws
blocks of consecutive weeks with replacement.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from simulator.backtest.plays import Play, Values
from simulator.backtest.site import WEEKS
from simulator.traces.trace import Integers

MATERIAL = 0.03
"""Smallest relative change of a mean that matters."""

FEWEST_WEEKS = 8
"""Fewest weeks of load for a verdict: fewer do not separate a gain from chance."""

FEWEST_JOBS_OF_WEEK = 10
"""Fewest jobs that are submitted in a week of load."""

WEEKS_OF_BLOCK = 2
"""Weeks that are drawn together: a long queue lasts from one week to the next."""

SAMPLES = 2000

COVERAGE = 0.9
"""Share of the samples within the interval."""

Measure = Literal["wait", "bounded_slowdown"]


@dataclass(frozen=True, slots=True)
class GainInterval:
    """A mean and the ends of an interval around it."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "GainInterval":
        """Return the mean, the lowest and the highest of at least one value."""
        return cls(float(np.mean(values)), float(min(values)), float(max(values)))

    @property
    def margin(self) -> float:
        """Half of the interval's width, for ``±``."""
        return (self.high - self.low) / 2

    @property
    def is_any(self) -> bool:
        """Whether anything changes, in any sample."""
        return bool(self.mean or self.low or self.high)

    @property
    def matters(self) -> bool:
        """Whether the mean is large enough to matter."""
        return abs(self.mean) >= MATERIAL

    @property
    def is_gain(self) -> bool:
        """Whether the whole interval is a gain, and the mean enough to matter."""
        return self.low > 0 and self.matters

    @property
    def is_loss(self) -> bool:
        """Whether the whole interval is a loss, and the mean enough to matter."""
        return self.high < 0 and self.matters


def of(plays: Sequence[Play], measure: Callable[[Play], float]) -> GainInterval:
    """Return the mean, lowest and highest of a measure over the repetitions."""
    return GainInterval.of([measure(play) for play in plays])


def mean_wait(plays: Sequence[Play]) -> float:
    """Return the mean wait over the repetitions, in seconds."""
    return of(plays, lambda play: play.wait).mean


def gain(
    today: Sequence[Play], plays: Sequence[Play], measure: Callable[[Play], float]
) -> GainInterval:
    """Return the relative decrease of a measure, over the repetitions that both have.

    Where a measure is 0 today, there is nothing to gain: the gain is 0, or the loss whole.
    """
    pairs = zip(today, plays, strict=False)
    return GainInterval.of([_share(measure(before), measure(after)) for before, after in pairs])


def _share(before: float, after: float) -> float:
    if before <= 0:
        return 0.0 if after <= 0 else -1.0
    return 1 - after / before


def resampled_gain(today: Sequence[Play], plays: Sequence[Play], measure: Measure) -> GainInterval:
    """Return the relative decrease of a measure, with an interval over repetitions and weeks.

    With fewer than two weeks of load the interval is that of the repetitions. Repetitions count
    that both have.
    """
    repetitions = min(len(today), len(plays))
    whole = gain(today, plays, lambda play: float(getattr(play, measure)))
    weeks = weeks_of_load(today[0])
    if len(weeks) < 2:
        return whole
    before, after = _sums(today, measure)[:, weeks], _sums(plays, measure)[:, weeks]
    repetition, drawn = _samples(repetitions, len(weeks))
    sums = [each[repetition[:, None], drawn].sum(axis=1) for each in (before, after)]
    gained = 1 - sums[1] / np.maximum(sums[0], 1.0)
    low, high = np.quantile(gained, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return GainInterval(whole.mean, min(float(low), whole.mean), max(float(high), whole.mean))


def weeks_of_load(play: Play) -> Integers:
    """Return the places of the weeks in which enough jobs were submitted."""
    if WEEKS not in play.groups:
        return np.zeros(0, np.int64)
    return np.flatnonzero(play.groups[WEEKS].jobs >= FEWEST_JOBS_OF_WEEK)


def _sums(plays: Sequence[Play], measure: Measure) -> Values:
    """Return sums over the jobs of each week, a row for each repetition."""
    groups = [play.groups[WEEKS] for play in plays]
    return np.array([each.jobs * np.nan_to_num(getattr(each, measure)) for each in groups])


def _samples(repetitions: int, weeks: int) -> tuple[Integers, Integers]:
    """Draw a repetition for each sample, and its weeks in blocks."""
    random = np.random.default_rng(0)
    block = min(WEEKS_OF_BLOCK, weeks)
    begins = random.integers(0, weeks, (SAMPLES, -(-weeks // block)))
    drawn = (begins[:, :, None] + np.arange(block)) % weeks
    return random.integers(0, repetitions, SAMPLES), drawn.reshape(SAMPLES, -1)[:, :weeks]


def months_gained(today: Sequence[Play], plays: Sequence[Play]) -> tuple[int, int]:
    """Return the number of months in which jobs wait less, and the number of months."""
    if "months" not in today[0].groups:
        return int(mean_wait(plays) < mean_wait(today)), 1
    before, after = (
        np.array([play.groups["months"].wait for play in each]).mean(axis=0)
        for each in (today, plays)
    )
    known = ~np.isnan(before) & ~np.isnan(after)
    return int(np.count_nonzero(after[known] < before[known])), int(np.count_nonzero(known))
