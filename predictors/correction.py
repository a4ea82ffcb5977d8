"""New estimates for a job that has run longer than its estimate."""

from collections.abc import Callable, Mapping
from math import inf

Correction = Callable[[float, float, float], float]
"""(predicted, requested, elapsed) -> the estimate of the whole runtime now, in seconds."""

_MINUTE = 60.0
_HOUR = 3600.0

TSAFRIR_STEPS = (
    *(minutes * _MINUTE for minutes in (1, 5, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 5, 10, 20, 50, 100)),
)
"""Seconds above the first prediction after each correction."""


def next_estimate(predicted: float, requested: float, elapsed: float) -> float:
    """Doubles the estimate until it exceeds the elapsed time or reaches the request.

    The request is the hard limit: a job killed there outlives nothing. An estimate that the
    job has not outlived yet stands. Klusáček & Soysal 2020, section 2.2.

    Args:
        predicted: any earlier estimate, 0 < predicted <= requested.
        requested: the walltime requested by the user.
        elapsed: how long the job has been running; finite, at least 0.

    Raises:
        ValueError: an argument is not such a number.
    """
    _check(predicted, requested, elapsed)
    estimate = predicted
    # Doubling is exact even for the smallest of floats, so it ends within 2,100 rounds.
    while estimate <= elapsed and estimate < requested:
        estimate *= 2
    return min(estimate, requested)


def request_at_once(predicted: float, requested: float, elapsed: float) -> float:
    """Falls back to the request as soon as the job outlives its prediction.

    Takes and refuses what ``next_estimate`` does.
    """
    _check(predicted, requested, elapsed)
    return predicted if elapsed < predicted else requested


def tsafrir_steps(predicted: float, requested: float, elapsed: float) -> float:
    """Adds growing steps to the prediction: 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50, 100 h.

    The first steps are small, because many jobs exceed their prediction by little. The steps
    count from the *first* prediction e, as in the simulator behind the published schedules
    (pyss as extended by Gaussier et al. 2015): the estimates are e + 1 min, e + 5 min,
    e + 15 min, .... The answer is the first estimate that exceeds the elapsed time, so the
    caller need not count corrections. The answer is never more than the request, and it is the
    request after the last step. Takes and refuses what ``next_estimate`` does.

    Reference: the idea is from Tsafrir, Etsion and Feitelson 2007.
    """
    _check(predicted, requested, elapsed)
    if elapsed < predicted:
        return predicted
    later = (predicted + step for step in TSAFRIR_STEPS if predicted + step > elapsed)
    return min(requested, next(later, requested))


CORRECTIONS: Mapping[str, Correction] = {
    "double": next_estimate,
    "request": request_at_once,
    "tsafrir": tsafrir_steps,
}


def _check(predicted: float, requested: float, elapsed: float) -> None:
    """Refuse values that no job can have, NaN included."""
    if not 0 < requested < inf:
        raise ValueError(f"requested_walltime must be greater than 0, not {requested}.")
    if not 0 < predicted <= requested:
        raise ValueError(
            "predicted_walltime must be greater than 0 and at most the request "
            f"({requested}), not {predicted}."
        )
    if not 0 <= elapsed < inf:
        raise ValueError(f"elapsed must be at least 0, not {elapsed}.")
