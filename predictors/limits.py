"""The probability that a job will end at its limit: a logistic model, recalibrated online.

The weights of the features are the same for all clusters: ``research/limits.py`` learned them from
public logs. Ended runs recalibrate the logit, see ``hit_calibration``. So a probability is the same
in every process and after any restart.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from predictors.base import Memory
from predictors.compiled import compiled, of_same_types
from predictors.jobs import Completion, Submission, without_digits
from predictors.memory.censored import NOT_KNOWN, walltime_within
from predictors.memory.columns import PROCESSORS, REQUEST, RUNTIME, Columns, Floats
from predictors.memory.hit_calibration import (
    WINDOW,
    Sums,
    no_sums,
    probability_of,
    recalibrated,
    running_logit,
    slide,
)
from predictors.memory.job_table import LATE_JOBS, UNCHANGED, JobTable
from predictors.memory.limit_features import HISTORY, LAST_RUNS, Job, Rows, features_at

ENOUGH = 200
"""Fewest runs of a cluster that a probability is given with."""

CAPACITY = HISTORY + WINDOW + 2 * LATE_JOBS

NEARLY = 0.98
"""Largest share of the request that the table holds as runtime of a run that met no limit."""

CHAIN = "chain"
"""Reason of a job whose like were cut and followed at once by another, again and again."""

LIKELY = 0.2
"""Probability from which on a longer request is suggested."""

LONGER_SHARE = 0.9
"""Share of the jobs that a longer request holds."""

CHAIN_LINKS = 2
"""Fewest hits, among a user's last runs, that a like job followed at once in a chain."""

Found = tuple[int, int, int, bool, float, float]
"""Runs, like runs, hits, whether the job is of a chain, probability and longer walltime."""


class LimitRisk(Struct, frozen=True, kw_only=True, gc=False):
    """The probability that a job will end at its limit, and a request that would be enough.

    Attributes:
        probability: None where nothing is known.
        reason: ``history``; ``chain`` for a job that goes on where one like it was cut: again and
            again, or by its dependency; ``others`` without runs of the user; ``young-cluster``;
            ``no-user``.
        runs: number of the user's last runs with its application, request and processors.
        hits: number of them that ended at the limit.
        longer_walltime: quantile at LONGER_SHARE of the runtimes of such jobs, with a margin, in
            seconds; None where it is not beyond the request, or not known.
        longer_reason: ``history``, or why there is none: ``unlikely`` below LIKELY, ``chain``,
            ``too-few-uncut``, ``enough`` where the request holds as many, ``largest-limit`` where
            the queue allows none, or that of the probability.
    """

    probability: float | None
    reason: str
    runs: int = 0
    hits: int = 0
    longer_walltime: float | None = None
    longer_reason: str = "unlikely"

    def warns(self, least: float) -> bool:
        """Return whether the user should be warned from a probability of ``least`` on."""
        return self.probability is not None and self.probability >= least and self.reason != CHAIN

    def within(self, request: float, longest: float | None) -> "LimitRisk":
        """Return the risk with a longer walltime that a queue's largest limit allows."""
        if longest is None or self.longer_walltime is None or self.longer_walltime <= longest:
            return self
        if longest > request:
            return replace(self, longer_walltime=longest)
        return replace(self, longer_walltime=None, longer_reason="largest-limit")


def nothing_known(reason: str) -> LimitRisk:
    """Return an answer without a probability."""
    return LimitRisk(probability=None, reason=reason, longer_reason=reason)


NO_USER, YOUNG = nothing_known("no-user"), nothing_known("young-cluster")


class LimitHits:
    """Predicts which jobs of a cluster will end at their limits, a fold over its completions.

    Features are as of the submission; the recalibration is by all runs observed.
    """

    memory = Memory(latest_jobs=CAPACITY)

    def __init__(self) -> None:
        self._recent = JobTable(CAPACITY)
        self._changes = self._recent.watch()
        self._sums = no_sums(0)
        self._counted = (0, 0)

    def observe(self, completion: Completion) -> None:
        """Store a run that has ended; a hit as one that ran for its request."""
        submission = with_application_stem(completion.submission)
        request = submission.requested_walltime
        runtime = request if completion.met_limit else min(completion.runtime, NEARLY * request)
        self._recent.add(replace(completion, submission=submission, runtime=runtime))

    def of(
        self, submission: Submission, elapsed: float | None = None, *, follows: bool = False
    ) -> LimitRisk:
        """Return the probability that a job will end at its limit.

        Args:
            submission: the job.
            elapsed: seconds that it has run, so that shorter runs count no more; None before it
                starts.
            follows: whether it waits for another job, and starts also if that one was cut.
        """
        if submission.user is None:
            return NO_USER
        if len(self._recent) < ENOUGH:
            return YOUNG
        if self._changes.first != UNCHANGED:
            self._count()
        runs, like, hits, is_chain, probability, longer = risk_at(
            self._recent.columns,
            *self._asked(submission),
            self._sums,
            0.0 if elapsed is None else float(elapsed),
            follows,
        )
        request = submission.requested_walltime
        return LimitRisk(
            probability=float(probability),
            reason=CHAIN if is_chain else "history" if runs else "others",
            runs=like,
            hits=hits,
            longer_walltime=float(longer) if longer > request else None,
            longer_reason=_reason_of(longer, request, probability, is_chain=is_chain),
        )

    def core_hours(self) -> tuple[float, float]:
        """Return the core hours of the last runs that ended at their limits, and of the others."""
        numbers, _, _ = self._recent.columns
        stop = self._recent.first + len(self._recent)
        rows = slice(max(self._recent.first, stop - WINDOW), stop)
        cores = np.nan_to_num(numbers[PROCESSORS, rows], nan=1.0)
        hours = cores * numbers[RUNTIME, rows] / 3600.0
        is_hit = numbers[RUNTIME, rows] >= numbers[REQUEST, rows]
        return float(hours[is_hit].sum()), float(hours[~is_hit].sum())

    def features(self, submission: Submission) -> Floats:
        """Return the features of a job, from which weights are learned."""
        return features_at(self._recent.columns, *self._asked(submission))[0]

    def _asked(self, submission: Submission) -> tuple[Rows, Job]:
        """Return the rows that may count for a job, and the job."""
        application = without_digits(submission.application)
        rows, user, number = self._recent.rows_of(submission.user, application)
        request, processors = submission.requested_walltime, submission.requested_processors
        submit = float(submission.submit_time)
        return rows, (user, number, float(request), float(processors or 1), submit)

    def _count(self) -> None:
        """Count the last runs in place of those that were counted before."""
        table, changed = self._recent, self._changes.take()
        first, moved = table.first, table.moved
        stop = first + len(table)
        before = self._counted if changed >= self._counted[1] else (moved, moved)
        begin = max(first, stop - WINDOW)
        if len(self._sums) <= table.users:
            self._sums, before = no_sums(table.users), (moved, moved)
        spans = (before[0] - moved, before[1] - moved), (begin, stop)
        slide(table.columns, self._sums, first, *spans)
        self._counted = (begin + moved, stop + moved)


def _reason_of(longer: float, request: float, probability: float, *, is_chain: bool) -> str:
    """Return the reason of a longer walltime, or of its lack."""
    if longer > request:
        return "history"
    if is_chain:
        return CHAIN
    if probability < LIKELY:
        return "unlikely"
    return "too-few-uncut" if longer == NOT_KNOWN else "enough"


def with_application_stem(submission: Submission) -> Submission:
    """Return the submission with the stem of its application: # for each run of digits."""
    application = without_digits(submission.application)
    if application == submission.application:
        return submission
    return replace(submission, application=application)


@of_same_types
@compiled
def risk_at(  # noqa: PLR0913, PLR0917 - machine code takes no keywords
    columns: Columns,
    rows: Rows,
    job: Job,
    sums: Sums,
    elapsed: float,
    follows: bool,  # noqa: FBT001 - likewise
) -> Found:
    """Return the probability of a job, the runs behind it, and the walltime that holds its like."""
    features, past = features_at(columns, rows, job)
    found = running_logit(columns, rows, job, features, elapsed)
    probability = probability_of(recalibrated(sums, job[0], elapsed / job[2], found))
    is_chain = past.last_like > 0 and past.links >= CHAIN_LINKS
    is_chain = is_chain or (follows and past.last_same > 0)
    longer = NOT_KNOWN
    if probability >= LIKELY and not is_chain:
        longer = walltime_within(columns, (*rows, LAST_RUNS), job, LONGER_SHARE, elapsed)
    return past.runs, past.like, past.hits, is_chain, round(probability, 4), longer
