"""Answers about a job from weighed past runs and the corrected levels of their distribution."""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from predictors.base import COLD_START, SHORTEST_ESTIMATE, Question, request_of
from predictors.compiled import compiled
from predictors.distribution import cheapest, left, levels_at, passed, quantile_at
from predictors.jobs import Basis, Interval, PastRun, Prediction, Submission
from predictors.memory.calibration import Counts, corrected, ranked, share_within, shares_of_runs
from predictors.memory.columns import LEVEL, REQUEST, RUNTIME, SPREAD, Floats, within
from predictors.memory.rank_counts import ENOUGH, Shares

EXPLAINED = 10
"""The most runs that an explanation names."""

YOUNG = "young-cluster"
"""The reason of an answer while too few runs have ended to say how sure it is."""

_NOT_RUNNING = -1.0
_NO_RATE = -1.0
_LEVEL, _SPREAD = 0, 1

Placed = tuple[Floats, Floats, tuple[float, float]]
"""Runtimes, what ``passed`` says of their weights, and the job: request, seconds since start."""

Wanted = tuple[float, float, float]
"""Seconds since the job's start (negative if it has not started), coverage, and the rate of
underestimates (negative for the least expected cost)."""

Bounds = tuple[float, float, float, float, bool]
"""Prediction, lower end, median and upper end, and whether their levels are corrected."""


class Weighed(Struct, frozen=True, kw_only=True):
    """What a method makes of past runs for one job.

    Attributes:
        values: runtimes in ascending order, none longer than the request.
        weights: theirs.
        basis: of the prediction.
        counts: how the cluster's last runs fell into what was predicted for them.
        runs: finds the runs of the same user, each with the weight of those of its values that are
            longer than some seconds.
        price: of an underestimate, in seconds, where the method has one.
    """

    values: Floats
    weights: Floats
    basis: Basis
    counts: Counts
    runs: Callable[[float], Sequence[tuple[PastRun, float]]]
    price: float = 0.0


def basis_of(own: int, others: int) -> Basis:
    """What a prediction rests on: runs of the user, else those of others alone."""
    return Basis(jobs=own, reason="history") if own else Basis(jobs=others, reason="others")


def answered(
    weighed: Weighed | None, submission: Submission, question: Question, *, method: str
) -> Prediction:
    """The prediction that answers a question: the estimate of least expected cost, or for a rate.

    Args:
        weighed: what past runs say of the job; None if none does.
        submission: the job.
        question: what is asked.
        method: that answers.
    """
    if weighed is None:
        return unknown(submission, question, method=method)
    asked = wanted(question)
    request = float(submission.requested_walltime)
    job = (request, weighed.price)
    found = bounds(weighed.values, weighed.weights, job, weighed.counts, asked)
    prediction = told(found, submission, question, method=method, basis=weighed.basis)
    if not question.explain:
        return prediction
    return replace(prediction, explanation=heaviest(weighed, asked[0]))


def wanted(question: Question) -> Wanted:
    """The question as machine code takes it."""
    elapsed, rate = question.elapsed, question.underestimation_rate
    return (
        _NOT_RUNNING if elapsed is None else float(elapsed),
        float(question.coverage),
        rate or _NO_RATE,
    )


def unknown(submission: Submission, question: Question, *, method: str) -> Prediction:
    """The request, and the interval of all that can be, where no run says anything of the job."""
    request = float(submission.requested_walltime)
    elapsed = question.elapsed or 0.0
    can_be = Interval(lower=elapsed, upper=max(elapsed, request), coverage=question.coverage)
    return replace(
        request_of(submission, method=method, basis=COLD_START),
        interval=can_be,
        explanation=() if question.explain else None,
    )


def told(
    found: Bounds, submission: Submission, question: Question, *, method: str, basis: Basis
) -> Prediction:
    """The prediction that says what was found; nothing is explained.

    Args:
        found: by ``bounds``.
        submission: the job.
        question: what was asked.
        method: that answers.
        basis: of the answer, in a cluster that is not young.
    """
    seconds, lower, median, upper, is_corrected = found
    return Prediction(
        predicted_walltime=seconds,
        requested_walltime=submission.requested_walltime,
        method=method,
        basis=basis if is_corrected else Basis(jobs=basis.jobs, reason=YOUNG),
        interval=Interval(lower=lower, upper=upper, coverage=question.coverage),
        median=median,
    )


def heaviest(weighed: Weighed, elapsed: float) -> tuple[PastRun, ...]:
    """The runs that weigh most, heaviest first, with their shares of all weight.

    Of a running job what counts of a run are its values that are longer than the job has run.
    """
    total = float(weighed.weights[weighed.values > elapsed].sum())
    if not total:
        return ()
    runs = sorted(weighed.runs(elapsed), key=lambda each: each[1], reverse=True)
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
    )
    many_quantiles(weighed.values, weighed.weights, job, weighed.counts, found)
    return [float(seconds) for seconds in found]


@compiled
def rank_row(
    numbers: Floats, row: int, values: Floats, weights: Floats, shortest: float = 0.0
) -> None:
    """Note where the runtime of a row fell in what was predicted for it.

    Args:
        numbers: of the runs.
        row: of the run.
        values: runtimes that were predicted, in ascending order.
        weights: theirs.
        shortest: seconds that shorter runtimes count as, where the method has no shorter value.
    """
    reached = passed(weights, len(values))
    runtime = max(shortest, numbers[RUNTIME, row])
    lowest, highest = levels_at(values, reached, numbers[REQUEST, row], runtime)
    numbers[LEVEL, row] = lowest
    numbers[SPREAD, row] = 2.0 * max(0.0, lowest - 0.5, 0.5 - highest)


@compiled
def bounds(
    values: Floats, weights: Floats, job: tuple[float, float], counts: Counts, asked: Wanted
) -> Bounds:
    """What is to be said of a job.

    Args:
        values: runtimes in ascending order.
        weights: theirs.
        job: request, and price of an underestimate in seconds.
        counts: of the calibration.
        asked: about it.
    """
    request, price = job
    elapsed, coverage, rate = asked
    count = len(values)
    reached = passed(weights, count)
    shares = shares_of_runs(counts)
    is_corrected = shares[0] >= ENOUGH
    seconds = request
    if not is_corrected:
        lower = max(0.0, elapsed)
        upper = max(lower, request)
        median = quantile_at(values, reached, request, 0.5)
    else:
        placed = (values, reached, (request, elapsed))
        if elapsed < 0:
            spread = corrected(counts, shares, _SPREAD, coverage)
            lower = quantile_at(values, reached, request, 0.5 - spread / 2)
            upper = quantile_at(values, reached, request, 0.5 + spread / 2)
        else:
            lower = _up_to(placed, counts, shares, 0.5 - coverage / 2)
            upper = max(lower, _up_to(placed, counts, shares, 0.5 + coverage / 2))
        median = _up_to(placed, counts, shares, 0.5)
        if rate > 0:
            seconds = _up_to(placed, counts, shares, 1.0 - rate)
    median = min(upper, max(lower, median))
    if lower <= SHORTEST_ESTIMATE:  # no method tells runs of a second from those of none
        lower = max(0.0, elapsed)
    if rate < 0:
        if elapsed >= 0:
            values, weights = values.copy(), weights.copy()
            count = left(values, weights, count, elapsed)
        seconds = cheapest(values, weights, count, request, price) if count else request
    return within(seconds, request), lower, median, upper, is_corrected


@compiled
def many_quantiles(
    values: Floats, weights: Floats, job: tuple[float, float], counts: Counts, shares: Floats
) -> None:
    """Replace each share by the runtime that this share of jobs does not exceed.

    ``job`` is its request, and the seconds since its start.
    """
    placed, ranks = (values, passed(weights, len(values)), job), shares_of_runs(counts)
    for index in range(len(shares)):
        shares[index] = _up_to(placed, counts, ranks, shares[index])


@compiled
def _up_to(placed: Placed, counts: Counts, shares: Shares, share: float) -> float:
    """The runtime that ``share`` of jobs do not exceed, of those that ran as long as the job has.

    If a share s of jobs ends before ``elapsed``, ``share`` of the others is at s + share * (1 - s).
    """
    values, reached, (request, elapsed) = placed
    if elapsed < 0:
        level = corrected(counts, shares, _LEVEL, share)
        return quantile_at(values, reached, request, level)
    _, level = levels_at(values, reached, request, elapsed)
    ended = share_within(counts, level)
    level = corrected(counts, shares, _LEVEL, ended + share * (1.0 - ended))
    return max(min(elapsed, request), quantile_at(values, reached, request, level))
