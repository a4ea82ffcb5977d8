"""The measures of how good predictions are, each defined once."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]
Flags = NDArray[np.bool_]

BAD_UNDERESTIMATE = 1800.0
"""An underestimate by more than these seconds is a bad one (Tang et al. 2013, section 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionMeasures:
    """The measures of one method's predictions.

    The shares of the classes NA, OE, UE and BE (Tang et al.) sum to 1. They say how a prediction
    changed the request: a job that ran longer than its unadjusted request is NA, and counts in
    ``underestimation_rate``.

    Attributes:
        jobs: number of jobs that were predicted.
        accuracy: mean of Tang et al.'s Equation 3.
        median_accuracy: median of Tang et al.'s Equation 3.
        underestimation_rate: share of the jobs that ran longer than predicted.
        unused_ratio: time by which predictions exceed runtimes, summed over the jobs, divided by
            the sum of the runtimes: what a scheduler reserves in vain for each hour of runtime.
        not_adjusted: NA, the share of jobs whose prediction is their request.
        overestimated: OE, predicted below the request, and not below the runtime.
        underestimated: UE, predicted below request and runtime, by 30 minutes at most.
        badly_underestimated: BE, the same by more than 30 minutes.
        interval_coverage: share of the intervals that hold the runtime; ``None`` without any.
    """

    jobs: int
    mean_absolute_error: float
    median_absolute_error: float
    accuracy: float
    median_accuracy: float
    underestimation_rate: float
    unused_ratio: float
    not_adjusted: float
    overestimated: float
    underestimated: float
    badly_underestimated: float
    interval_coverage: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """Return the measures by name, for JSON."""
        return asdict(self)


class NoJobsError(ValueError):
    """There is no job to measure."""


def measure(
    predicted: Seconds,
    requested: Seconds,
    actual: Seconds,
    *,
    lower: Seconds | None = None,
    upper: Seconds | None = None,
) -> PredictionMeasures:
    """Measure the predictions of one method, job by job.

    Args:
        requested: the walltimes that the users requested.
        lower: lower ends of the intervals; NaN where there is none.
        upper: upper ends of the intervals; NaN where there is none.

    Raises:
        NoJobsError: the arrays are empty.
    """
    if len(actual) == 0:
        raise NoJobsError("There is no job to measure.")
    accuracies = accuracy(predicted, actual)
    na, oe, ue, be = (float(share.mean()) for share in classes(predicted, requested, actual))
    return PredictionMeasures(
        jobs=len(actual),
        mean_absolute_error=mean_absolute_error(predicted, actual),
        median_absolute_error=float(np.median(np.abs(predicted - actual))),
        accuracy=float(accuracies.mean()),
        median_accuracy=float(np.median(accuracies)),
        underestimation_rate=underestimation_rate(predicted, actual),
        unused_ratio=unused_ratio(predicted, actual),
        not_adjusted=na,
        overestimated=oe,
        underestimated=ue,
        badly_underestimated=be,
        interval_coverage=coverage(lower, upper, actual),
    )


def mean_absolute_error(predicted: Seconds, actual: Seconds) -> float:
    """Return the mean distance of the predictions from the runtimes, in seconds."""
    return float(np.abs(predicted - actual).mean())


def underestimation_rate(predicted: Seconds, actual: Seconds) -> float:
    """Return the share of the jobs that ran longer than predicted."""
    return float((predicted < actual).mean())


def unused_ratio(predicted: Seconds, actual: Seconds) -> float:
    """Return the time by which predictions exceed runtimes per time of runtime; 0 without any."""
    total = float(actual.sum())
    return float(np.maximum(predicted - actual, 0.0).sum()) / total if total else 0.0


def accuracy(predicted: Seconds, actual: Seconds) -> Seconds:
    """Return the smaller of prediction and runtime over the larger (Tang et al. 2013, Eq 3).

    The accuracy is 1 where both are 0.
    """
    larger = np.maximum(predicted, actual)
    equal = np.ones_like(larger)
    return np.divide(np.minimum(predicted, actual), larger, out=equal, where=larger > 0)


def classes(
    predicted: Seconds, requested: Seconds, actual: Seconds
) -> tuple[Flags, Flags, Flags, Flags]:
    """Return flags of the jobs that are NA, OE, UE and BE; every job is one of them."""
    adjusted = predicted < requested
    short = adjusted & (predicted < actual)
    bad = short & (actual - predicted > BAD_UNDERESTIMATE)
    return ~adjusted, adjusted & ~short, short & ~bad, bad


def coverage(lower: Seconds | None, upper: Seconds | None, actual: Seconds) -> float | None:
    """Return the share of the intervals that contain the runtime, both ends included."""
    if lower is None or upper is None:
        return None
    given = ~np.isnan(lower)
    if not given.any():
        return None
    return float(np.mean((lower[given] <= actual[given]) & (actual[given] <= upper[given])))


def error_per_group(
    predicted: Seconds, actual: Seconds, groups: NDArray[np.int64], count: int
) -> Seconds:
    """Return the mean absolute error in seconds of each of ``count`` groups, such as users."""
    jobs = np.maximum(np.bincount(groups, minlength=count), 1)
    return np.bincount(groups, weights=np.abs(predicted - actual), minlength=count) / jobs


NEIGHBOURS = 100
"""Jobs up to this many submissions apart are compared: they may stand in one queue."""

CLEARLY = 2.0
"""Runtimes of two jobs are compared where one is at least this multiple of the other."""


def ordered_share(lengths: Seconds, actual: Seconds) -> float:
    """Return the share of job pairs that lengths put in the right order of runtimes.

    A pair counts as much as its runtimes differ, which is what a wrong order costs in waits; equal
    lengths are half right. NaN without a pair to compare.

    Args:
        lengths: requests or predictions of jobs in the order of submission.
        actual: their runtimes.
    """
    right = total = 0.0
    for apart in range(1, min(NEIGHBOURS + 1, len(actual))):
        first, second = actual[:-apart], actual[apart:]
        differs = np.maximum(first, second) >= CLEARLY * np.minimum(first, second)
        weights = np.where(differs, np.abs(first - second), 0.0)
        signs = np.sign(first - second) * np.sign(lengths[:-apart] - lengths[apart:])
        right += float((weights * (1.0 + signs)).sum()) / 2
        total += float(weights.sum())
    return right / total if total else float("nan")
