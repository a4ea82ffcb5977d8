"""Error against underestimation: compares methods at equal underestimation rates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from predictors.measures import Seconds, mean_absolute_error, underestimation_rate


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of a method.

    Attributes:
        setting: the parameter and its value, such as ``beta=0.1``.
        underestimation_rate: share of the jobs that ran longer than predicted.
        error: mean absolute error in seconds.
    """

    setting: str
    underestimation_rate: float
    error: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A method at several settings, in the order of their underestimation rates."""

    name: str
    points: Sequence[Point]

    def error_at(self, share: float) -> float:
        """Mean absolute error in seconds where ``share`` of the jobs is underestimated.

        The error is interpolated between two points. If every point underestimates less than
        ``share``, the answer is the error of the last point. If every point underestimates more,
        the answer is NaN.
        """
        shares = [point.underestimation_rate for point in self.points]
        if share < shares[0]:
            return float("nan")
        return float(np.interp(share, shares, [point.error for point in self.points]))


def point_of(setting: str, predicted: Seconds, actual: Seconds) -> Point:
    """Compute rate and error of one setting's predictions."""
    return Point(
        setting,
        underestimation_rate=underestimation_rate(predicted, actual),
        error=mean_absolute_error(predicted, actual),
    )


def curve_of(name: str, points: Sequence[Point]) -> Curve:
    """Return the curve through points in any order."""
    return Curve(name, sorted(points, key=lambda point: (point.underestimation_rate, point.error)))
