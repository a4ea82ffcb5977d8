"""Answers about a job from weighed past runs and the corrected levels of their distribution."""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from predictors.base import COLD_START, Question, capped, request_of
from predictors.compiled import compiled
from predictors.distribution import cheapest, left, levels, quantile
from predictors.jobs import Basis, Interval, PastRun, Prediction, Submission
from predictors.memory.calibration import (
    ENOUGH,
    Counts,
    corrected,
    ranked,
    share_within,
)
from predictors.memory.columns import Floats

EXPLAINED = 10
"""The most runs that an explanation names."""

YOUNG = "young-cluster"
"""The reason of an answer while too few runs have ended to say how sure it is."""

_NOT_RUNNING = -1.0
_NO_RATE = -1.0
_LEVEL, _SPREAD = 0, 1


class Weighed(Struct, frozen=True, kw_only=True):
    """What a method makes of past runs for one job.

    Attributes:
        values: runtimes in ascending order, none longer than the request.
        weights: theirs.
        price: of an underestimate, in seconds.
        basis: of the prediction.
        counts: how the cluster's last runs fell into what was predicted for them.
        runs: finds the runs of the same user, each with its weight.
    """

    values: Floats
    weights: Floats
    price: float
    basis: Basis
    counts: Counts
    runs: Callable[[], Sequence[tuple[PastRun, float]]]


def basis_of(own: int, others: int) -> Basis:
    """What a prediction rests on: runs of the user, else those of others alone."""
    return Basis(jobs=own, reason="history") if own else Basis(jobs=others, reason="others")


def answered(
    weighed: Weighed | None, submission: Submission, question: Question, *, method: str
) -> Prediction:
    """The prediction that answers a question.

    Args:
        weighed: what past runs say of the job; None if none does.
        submission: the job.
        question: what is asked.
        method: that answers.
    """
    request = float(submission.requested_walltime)
    elapsed = _NOT_RUNNING if question.elapsed is None else question.elapsed
    if weighed is None:
        can_be = Interval(lower=max(0.0, elapsed), upper=request, coverage=question.coverage)
        return replace(
            request_of(submission, method=method, basis=COLD_START),
            interval=sane(can_be),
            explanation=() if question.explain else None,
        )
    seconds, lower, median, upper, is_corrected = bounds(
        weighed.values,
        weighed.weights,
        (request, elapsed, weighed.price),
        weighed.counts,
        (question.coverage, question.underestimation_rate or _NO_RATE),
    )
    basis = weighed.basis
    prediction = capped(
        seconds,
        submission,
        method=method,
        basis=basis if is_corrected else Basis(jobs=basis.jobs, reason=YOUNG),
    )
    return Prediction(
        predicted_walltime=prediction.predicted_walltime,
        requested_walltime=prediction.requested_walltime,
        method=method,
        basis=prediction.basis,
        interval=sane(Interval(lower=lower, upper=upper, coverage=question.coverage)),
        median=median,
        explanation=heaviest(weighed, elapsed) if question.explain else None,
    )


def sane(interval: Interval) -> Interval:
    """The interval; of a job that has run past its request, the time it has run."""
    if interval.lower <= interval.upper:
        return interval
    return Interval(lower=interval.lower, upper=interval.lower, coverage=interval.coverage)


def heaviest(weighed: Weighed, elapsed: float) -> tuple[PastRun, ...]:
    """The runs that weigh most, heaviest first, with their shares of all weight.

    Of a running job they are among those that ran longer than it has.
    """
    alive = weighed.values > elapsed
    total = float(weighed.weights[alive].sum())
    runs = [(run, weight) for run, weight in weighed.runs() if run.runtime > elapsed]
    runs.sort(key=lambda each: each[1], reverse=True)
    return tuple(replace(run, weight=weight / total) for run, weight in runs[:EXPLAINED])


def quantiles_of(
    weighed: Weighed | None,
    submission: Submission,
    shares: Sequence[float],
    elapsed: float | None,
) -> list[float] | None:
    """The runtimes that ``shares`` of jobs do not exceed; None where that cannot be told.

    Args:
        weighed: what past runs say of the job; None if none does.
        submission: the job.
        shares: between 0 and 1.
        elapsed: how long it has been running.
    """
    if weighed is None or ranked(weighed.counts) < ENOUGH:
        return None
    found = np.array(shares, dtype=float)
    job = (
        float(submission.requested_walltime),
        _NOT_RUNNING if elapsed is None else float(elapsed),
        weighed.price,
    )
    many_quantiles(weighed.values, weighed.weights, job, weighed.counts, found)
    return [float(seconds) for seconds in found]


@compiled
def bounds(
    values: Floats,
    weights: Floats,
    job: tuple[float, float, float],
    counts: Counts,
    asked: tuple[float, float],
) -> tuple[float, float, float, float, bool]:
    """Prediction, lower end, median and upper end, and whether their levels are corrected.

    Args:
        values: runtimes in ascending order.
        weights: theirs.
        job: request, seconds since its start (negative if it has not started), price in seconds.
        counts: of the calibration.
        asked: coverage, and the rate of underestimates (negative for the least expected cost).
    """
    request, elapsed, price = job
    coverage, rate = asked
    count = len(values)
    is_corrected = ranked(counts) >= ENOUGH
    if not is_corrected:
        lower, upper = max(0.0, elapsed), request
        median = quantile(values, weights, count, request, 0.5)
        seconds = request
    elif elapsed < 0:
        spread = corrected(counts, _SPREAD, coverage)
        lower = quantile(values, weights, count, request, 0.5 - spread / 2)
        upper = quantile(values, weights, count, request, 0.5 + spread / 2)
        median = _up_to(values, weights, job, counts, 0.5)
        seconds = _up_to(values, weights, job, counts, 1.0 - rate) if rate > 0 else request
    else:
        lower = _up_to(values, weights, job, counts, 0.5 - coverage / 2)
        upper = _up_to(values, weights, job, counts, 0.5 + coverage / 2)
        median = _up_to(values, weights, job, counts, 0.5)
        seconds = _up_to(values, weights, job, counts, 1.0 - rate) if rate > 0 else request
    median = min(upper, max(lower, median))
    if rate < 0:
        if elapsed >= 0:
            values, weights = values.copy(), weights.copy()
            count = left(values, weights, count, elapsed)
        seconds = cheapest(values, weights, count, request, price) if count else request
    return seconds, lower, median, upper, is_corrected


@compiled
def many_quantiles(
    values: Floats,
    weights: Floats,
    job: tuple[float, float, float],
    counts: Counts,
    shares: Floats,
) -> None:
    """Replace each share by the runtime that this share of jobs does not exceed."""
    for index in range(len(shares)):
        shares[index] = _up_to(values, weights, job, counts, shares[index])


@compiled
def _up_to(
    values: Floats,
    weights: Floats,
    job: tuple[float, float, float],
    counts: Counts,
    share: float,
) -> float:
    """The runtime that ``share`` of jobs do not exceed, of those that ran as long as the job has.

    If a share s of jobs ends before ``elapsed``, ``share`` of the others is at s + share * (1 - s).
    """
    request, elapsed, _ = job
    count = len(values)
    if elapsed < 0:
        return quantile(values, weights, count, request, corrected(counts, _LEVEL, share))
    _, level = levels(values, weights, count, request, elapsed)
    ended = share_within(counts, level)
    level = corrected(counts, _LEVEL, ended + share * (1.0 - ended))
    return max(min(elapsed, request), quantile(values, weights, count, request, level))
