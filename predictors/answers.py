"""Answers of methods with a distribution: prediction, interval, median, mean, explanation."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from predictors.base import (
    COLD_START,
    REQUESTED,
    SHORTEST_ESTIMATE,
    USUAL,
    Memory,
    Question,
    capped,
    request_of,
)
from predictors.candidates import (
    CAUTIOUS_RATE,
    CHOSEN,
    LEAST_COST_SO_FAR,
    NO_RATE,
    USUAL_DECISION,
    Decision,
    Wanted,
    choose,
    estimate_with_request,
    gains_in,
)
from predictors.censoring import censored, revised
from predictors.compiled import compiled, of_same_types
from predictors.distribution import NO_ROW, Evidence, cumulative, levels_at, quantile_at
from predictors.jobs import Basis, Completion, Interval, PastRun, Prediction, Submission
from predictors.memory.calibration import (
    NOTHING,
    Calibrated,
    Calibration,
    Counts,
    GroupWeights,
    corrected,
    familiarity_at,
    group_weights,
    runs_counted,
    share_within,
)
from predictors.memory.choice import (
    KNOWN,
    STRANGERS,
    CostSums,
    Gains,
    gains_of_strangers,
    gains_of_user,
)
from predictors.memory.columns import (
    NOBODY,
    NONCONFORMITY,
    PIT,
    REQUEST,
    RUNNING,
    RUNTIME,
    UNKNOWN,
    USER,
    Columns,
    Floats,
    JobQuery,
    RowWindow,
    Running,
    within,
)
from predictors.memory.fact_rows import JobFacts, likeness, shared
from predictors.memory.histograms import ENOUGH, Histograms
from predictors.memory.job_table import JobTable
from predictors.memory.running_jobs import RunningJobs
from predictors.parameters import number

EXPLAINED = 10
"""Most runs that an explanation names."""

YOUNG = "young-cluster"
"""Reason of an answer while too few runs have ended to correct levels."""

NOT_RUNNING = -1.0
"""Elapsed seconds of a job that waits."""

MEAN_LEVELS = 7
"""Number of quantiles, each with the same probability mass, whose mean is the mean runtime; odd, so
that one of them is the median, which is known."""

_LEVEL, _WIDTH = 0, 1

Choosing = tuple[Counts, CostSums]
"""Counts of the calibration, and sums of the costs of candidates."""

Limits = tuple[float, float]
"""Requested walltime, and seconds since the job's start or NOT_RUNNING."""


Bounds = tuple[int, int, float, float, float, float, float, bool, bool]
"""A prediction in numbers: runs of the user, and of others; seconds predicted, lower bound, median,
mean and upper bound, which mean nothing without any run; whether levels were corrected; and whether
the request answers, as the candidate that has cost least. A named tuple takes Python microseconds
to build from machine code."""


class DistributionMethod:
    """Base of methods that predict from a distribution of the job's runtime.

    A method defines ``name``, ``bounds`` and ``evidence``.

    Attributes:
        running: the jobs that are known to run.

    Args:
        price: penalty of an underestimate, in mean runtimes of the cluster (0 to 1000).
        recent: the last runs of the cluster.
    """

    name: str
    _calibration: Calibration

    def __init__(self, price: float, recent: JobTable) -> None:
        self._price = float(number("price", price, 0, 1000))
        self._recent = recent
        self.running = RunningJobs()

    @property
    def price(self) -> float:
        """The penalty of an underestimate, in mean runtimes."""
        return self._price

    @property
    def memory(self) -> Memory:
        """The latest runs of the cluster, and of every user."""
        return Memory(jobs_per_user=self._recent.kept, latest_jobs=self._recent.capacity)

    def bounds(
        self,
        submission: Submission,
        window: RowWindow,
        wanted: Wanted,
        calibrated: Calibrated,
        running: Running,
    ) -> Bounds:
        """Return the prediction of a known user's job in numbers.

        Args:
            window: the rows of runs that may count for it.
            calibrated: what levels are corrected by.
            running: like jobs that run.
        """
        raise NotImplementedError

    def evidence(self, submission: Submission) -> Evidence:
        """Return the distribution of a job's runtime, without support points if there is none."""
        raise NotImplementedError

    def predict(self, submission: Submission) -> Prediction:
        """Predict the estimate of least expected cost; a user without runs gets that of ``ask``."""
        return self.decide(submission, USUAL_DECISION)

    def decide(self, submission: Submission, decision: Decision) -> Prediction:
        """Predict like ``predict``, by another decision over the same distribution."""
        own, predicted, is_request = 0, 0.0, False
        if self.has_distribution(submission):
            window = self._recent.window(submission)
            if decision is LEAST_COST_SO_FAR:
                self._calibration.histograms_at(window)
            own, _, predicted, *_, is_request = self._bounds(
                submission, window, USUAL, NOTHING, decision
            )
        if not own or is_request:
            return without_distribution(self.ask(submission, USUAL, decision))
        basis = Basis(jobs=own, reason="history")
        return capped(predicted, submission, method=self.name, basis=basis)

    def ask(
        self, submission: Submission, question: Question, decision: Decision = USUAL_DECISION
    ) -> Prediction:
        """Predict with median, mean and interval; without evidence the request, from 0 to it.

        A user without runs is predicted from those of others, once levels can be corrected, so
        that CAUTIOUS_RATE of such jobs are underestimated.
        """
        if not self.has_distribution(submission):
            return without_evidence(submission, question, method=self.name)
        window = self._recent.window(submission)
        histograms = self._calibration.histograms_at(window)
        own, others, predicted, lower, median, mean, upper, is_corrected, is_request = self._bounds(
            submission, window, question, histograms, decision
        )
        if not (own or (others and is_corrected)):
            return without_evidence(submission, question, method=self.name)
        basis = basis_of(own, others)
        prediction = Prediction(
            predicted_walltime=predicted,
            requested_walltime=submission.requested_walltime,
            method=REQUESTED if is_request else self.name,
            basis=basis if is_corrected else Basis(jobs=basis.jobs, reason=YOUNG),
            interval=Interval(lower=lower, upper=upper, coverage=question.coverage),
            median=median,
            mean=mean,
        )
        if not question.explain:
            return prediction
        return replace(prediction, explanation=self._explanation(submission, elapsed_of(question)))

    def quantiles(
        self, submission: Submission, shares: Sequence[float], elapsed: float | None = None
    ) -> list[float] | None:
        """Return the runtimes in seconds that given shares of like jobs do not exceed."""
        evidence = self._evidence(submission)
        if evidence is None:
            return None
        counts = self._calibration.at(submission)
        if runs_counted(counts) < ENOUGH:
            return None
        request = float(submission.requested_walltime)
        job = (request, NOT_RUNNING if elapsed is None else float(elapsed))
        found = np.array(shares, dtype=float)
        replace_shares(evidence.values, evidence.weights, job, counts, found)
        return [float(seconds) for seconds in found]

    def observe(self, completion: Completion) -> None:
        """Store the run among the recent ones, with what ran like it at its submission."""
        self._recent.add(completion, self.running.like(completion.submission))
        self._calibration.observed()

    def has_later(self, end_time: float, runs: int) -> bool:
        """Return whether more than a number of stored runs ended after a time."""
        return self._recent.has_later(end_time, runs)

    def gains(self, submission: Submission) -> tuple[bool, Gains]:
        """Return whether the user has earlier runs, and the differences of cost of candidates."""
        window, calibration = self._recent.window(submission), self._calibration
        calibration.histograms_at(window)
        columns, user = self._recent.columns, self._recent.ids_of(submission)[0]
        return gains_at(columns, window, user, calibration.costs)

    def cluster_gains(self) -> tuple[Gains, Gains]:
        """Return the differences of cost on the cluster: for known users, and for strangers."""
        cluster = self._calibration.costs.cluster
        known = gains_of_user(np.zeros_like(cluster[KNOWN]), cluster[KNOWN])
        return known, gains_of_strangers(cluster[STRANGERS])

    def has_distribution(self, submission: Submission) -> bool:
        """Return whether the method can weigh runs for a job."""
        return submission.user is not None

    def _bounds(
        self,
        submission: Submission,
        window: RowWindow,
        question: Question,
        histograms: Histograms,
        decision: Decision,
    ) -> Bounds:
        """Answer a question in one call of machine code."""
        rate, elapsed = float(question.underestimation_rate or decision.rate), elapsed_of(question)
        _, share, weight = decision
        wanted = (self._price, float(question.coverage), rate, elapsed, share, weight)
        calibration, running = self._calibration, self.running.like(submission)
        calibrated = (histograms, calibration.scored, calibration.costs)
        return self.bounds(submission, window, wanted, calibrated, running)

    def _evidence(self, submission: Submission) -> Evidence | None:
        """Return the evidence about a job; None without any run."""
        if not self.has_distribution(submission):
            return None
        evidence = with_facts_now(self.evidence(submission), self._recent.facts_of(submission))
        if (running := self.running.like(submission)) is not NOBODY:
            evidence, _ = revised_now(evidence, running, float(submission.requested_walltime))
        return evidence if evidence.own + evidence.others else None

    def _explanation(self, submission: Submission, elapsed: float) -> tuple[PastRun, ...]:
        """Return the user's runs of most weight, heaviest first, with their shares of all weight.

        Of a running job only support points count that are longer than it has run. Of runs with
        equal weights the newer comes first.
        """
        evidence = self._evidence(submission)
        if evidence is None:
            return ()
        longer = evidence.values > elapsed
        total = float(evidence.weights[longer].sum())
        user = self._recent.ids_of(submission)[0]
        if not total or user == UNKNOWN:
            return ()
        users, found = self._recent.columns[1][USER], dict[int, float]()
        rows, weights = evidence.rows[longer].tolist(), evidence.weights[longer].tolist()
        for row, weight in zip(rows, weights, strict=True):
            if row != NO_ROW and users[row] == user:
                found[row] = found.get(row, 0.0) + weight
        heaviest = sorted(found, key=lambda row: (-found[row], -row))[:EXPLAINED]
        runs = [self._recent.run_at(row, found[row] / total) for row in heaviest]
        table, _, weights = self._recent.facts_of(submission)
        if submission.facts is None or not weights.any():
            return tuple(runs)
        pairs = zip(runs, heaviest, strict=True)
        facts = submission.facts
        return tuple(replace(run, shared=shared(table, row, facts, weights)) for run, row in pairs)


def without_distribution(prediction: Prediction) -> Prediction:
    """Return the prediction without interval, median and mean, as ``predict`` gives it."""
    return replace(prediction, interval=None, median=None, mean=None)


def elapsed_of(question: Question) -> float:
    """Return the seconds since the job's start, or NOT_RUNNING."""
    return NOT_RUNNING if question.elapsed is None else float(question.elapsed)


def basis_of(own: int, others: int) -> Basis:
    """Return the basis of a prediction: runs of the user, without any those of others."""
    return Basis(jobs=own, reason="history") if own else Basis(jobs=others, reason="others")


def without_evidence(submission: Submission, question: Question, *, method: str) -> Prediction:
    """Return the request, with the interval from the elapsed time to the request."""
    request = float(submission.requested_walltime)
    elapsed = question.elapsed or 0.0
    possible = Interval(lower=elapsed, upper=max(elapsed, request), coverage=question.coverage)
    return replace(
        request_of(submission, method=method, basis=COLD_START),
        interval=possible,
        explanation=() if question.explain else None,
    )


@compiled
def score_row(
    numbers: Floats, row: int, values: Floats, weights: Floats, shortest: float = 0.0
) -> None:
    """Write a run's PIT value and nonconformity score.

    Args:
        values: support points that were predicted for it, in ascending order, in seconds.
        shortest: seconds that shorter runtimes count as, where no support point is shorter.
    """
    reached = cumulative(weights)
    runtime = max(shortest, numbers[RUNTIME, row])
    lowest, highest = levels_at(values, reached, numbers[REQUEST, row], runtime)
    numbers[PIT, row] = lowest
    numbers[NONCONFORMITY, row] = 2.0 * max(0.0, lowest - 0.5, 0.5 - highest)


@compiled
def with_facts(evidence: Evidence, facts: JobFacts) -> Evidence:
    """Return a distribution with more weight on runs that are like a job in its facts."""
    if not facts[2].any():
        return evidence
    values, weights, rows, own, others, mean_runtime = evidence
    return Evidence(values, likeness(rows, weights, facts), rows, own, others, mean_runtime)


with_facts_now = of_same_types(with_facts)
"""``with_facts`` for calls from Python."""


@compiled
def bounds_of(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    evidence: Evidence,
    job: JobQuery,
    wanted: Wanted,
    calibrated: Choosing,
    running: Running,
    facts: JobFacts,
) -> Bounds:
    """Return the prediction of a job in numbers.

    Args:
        evidence: the distribution of the job's runtime, without facts.
        wanted: without a rate, users without runs get CAUTIOUS_RATE.
        calibrated: counts of the calibration, and sums of the costs of candidates.
        running: like jobs that run.
    """
    counts, sums = calibrated
    price, own, others = wanted[0], evidence.own, evidence.others
    found, is_revised = revised(with_facts(evidence, facts), running, job.request)
    if wanted[4] == CHOSEN:
        gains = gains_in((counts[1], job.user), sums)
        wanted = choose(wanted, gains, counts[1], running[RUNNING])
    _, coverage, rate, elapsed, request_share, weight = wanted
    if weight > 0.0 and running[RUNNING] > 0.0 and own > 0 and not is_revised:
        found = censored(found, running, job.request, weight)
    is_request = request_share >= 1.0 and rate < 0.0 and elapsed <= 0.0
    if rate == NO_RATE and own == 0:
        rate = CAUTIOUS_RATE
    seconds, lower, median, mean, upper, is_corrected = predict_interval(
        found.values,
        found.weights,
        (job.request, elapsed),
        (price * evidence.mean_runtime, 0.0 if request_share >= 1.0 else request_share),
        (coverage, rate),
        counts,
    )
    if is_request:
        seconds = job.request
    return own, others, seconds, lower, median, mean, upper, is_corrected, is_request


@compiled
def predict_interval(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    values: Floats,
    weights: Floats,
    job: Limits,
    decision: tuple[float, float],
    levels: tuple[float, float],
    counts: Counts,
) -> tuple[float, float, float, float, float, bool]:
    """Return prediction, lower end, median, mean, upper end, and whether levels were corrected.

    Args:
        values: support points in ascending order, in seconds.
        job: its request and elapsed time.
        decision: seconds that an underestimate costs beside its error, and share of the request.
        levels: coverage, and share of underestimated jobs or below 0 for the least expected cost.
    """
    request, elapsed = job
    coverage, rate = levels
    reached = cumulative(weights)
    group = group_weights(counts)
    is_corrected = runs_counted(counts) >= ENOUGH
    seconds = request
    if not is_corrected:
        lower = max(0.0, elapsed)
        upper = max(lower, request)
        median = quantile_at(values, reached, request, 0.5)
    else:
        if elapsed < 0:
            width = corrected(counts, group, _WIDTH, coverage)
            lower = quantile_at(values, reached, request, 0.5 - width / 2)
            upper = quantile_at(values, reached, request, 0.5 + width / 2)
        else:
            lower = _quantile(values, reached, job, counts, group, 0.5 - coverage / 2)
            upper = _quantile(values, reached, job, counts, group, 0.5 + coverage / 2)
            upper = max(lower, upper)
        median = _quantile(values, reached, job, counts, group, 0.5)
        if rate > 0:
            seconds = _quantile(values, reached, job, counts, group, 1.0 - rate)
    mean = max(elapsed, _mean(values, reached, job, counts, group, median))
    median = min(upper, max(lower, median))
    if lower <= SHORTEST_ESTIMATE:  # no method distinguishes runs of a second from those of none
        lower = max(0.0, elapsed)
    if rate < 0:
        first = int(np.searchsorted(values, elapsed, side="right"))
        seconds = estimate_with_request(values[first:], weights[first:], request, decision)
    return within(seconds, request), lower, median, within(mean, request), upper, is_corrected


@compiled
def _mean(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    values: Floats, reached: Floats, job: Limits, counts: Counts, group: GroupWeights, median: float
) -> float:
    """Return the mean runtime; takes what ``_quantile`` takes, and the median.

    The mean of quantiles at corrected levels is nearer to the truth than the weighted mean of the
    support points where requests are far too long, as the longest support point is the request.
    """
    is_corrected, total = runs_counted(counts) >= ENOUGH, median
    for step in range(MEAN_LEVELS):
        level = (step + 0.5) / MEAN_LEVELS
        if level == 0.5:
            continue
        if is_corrected:
            total += _quantile(values, reached, job, counts, group, level)
        else:
            total += quantile_at(values, reached, job[0], level)
    return total / MEAN_LEVELS


revised_now = of_same_types(revised)
"""``revised`` for calls from Python."""


@of_same_types
@compiled
def gains_at(columns: Columns, window: RowWindow, user: int, sums: CostSums) -> tuple[bool, Gains]:
    """Return whether a user has earlier runs, and the differences of cost of candidates.

    Args:
        window: the rows that may count for the job.
        user: id of the job's user.
        sums: of the runs that had ended when the job was submitted.
    """
    familiarity = familiarity_at(columns, window)
    return familiarity > 0, gains_in((familiarity, user), sums)


@compiled
def replace_shares(
    values: Floats, weights: Floats, job: Limits, counts: Counts, shares: Floats
) -> None:
    """Replace each share by the runtime that this share of jobs does not exceed, in seconds."""
    reached, group = cumulative(weights), group_weights(counts)
    for index in range(len(shares)):
        shares[index] = _quantile(values, reached, job, counts, group, shares[index])


@compiled
def _quantile(  # noqa: PLR0913, PLR0917 - machine code takes no struct
    values: Floats, reached: Floats, job: Limits, counts: Counts, group: GroupWeights, share: float
) -> float:
    """Return the runtime that ``share`` of jobs do not exceed that ran as long as the job.

    If a share s of jobs ends before ``elapsed``, ``share`` of the others is at s + share * (1 - s).
    """
    request, elapsed = job
    if elapsed < 0:
        level = corrected(counts, group, _LEVEL, share)
        return quantile_at(values, reached, request, level)
    _, level = levels_at(values, reached, request, elapsed)
    ended = share_within(counts, group, level)
    level = corrected(counts, group, _LEVEL, ended + share * (1.0 - ended))
    return max(min(elapsed, request), quantile_at(values, reached, request, level))
