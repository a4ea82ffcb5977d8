"""Error against underestimation: methods are compared where they underestimate equally often."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from predictors.measures import Seconds, mean_absolute_error, underestimation_rate


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of a method.

    Attributes:
        setting: what was set, such as ``beta=0.1``.
        underestimation_rate: share of the jobs that ran longer than predicted.
        error: mean absolute error in seconds.
    """

    setting: str
    underestimation_rate: float
    error: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A method at several settings, from those that underestimate least."""

    name: str
    points: Sequence[Point]

    def error_at(self, share: float) -> float:
        """Mean absolute error where ``share`` of the jobs is underestimated, in seconds.

        Between two points it is interpolated. A curve that nowhere underestimates as much is
        taken at its last point, which is fair to others: it underestimates less there. NaN where
        every point underestimates more.
        """
        shares = [point.underestimation_rate for point in self.points]
        if share < shares[0]:
            return float("nan")
        return float(np.interp(share, shares, [point.error for point in self.points]))


def point_of(setting: str, predicted: Seconds, actual: Seconds) -> Point:
    """How one setting did."""
    return Point(
        setting,
        underestimation_rate=underestimation_rate(predicted, actual),
        error=mean_absolute_error(predicted, actual),
    )


def curve_of(name: str, points: Sequence[Point]) -> Curve:
    """The curve through points in any order."""
    return Curve(name, sorted(points, key=lambda point: (point.underestimation_rate, point.error)))
