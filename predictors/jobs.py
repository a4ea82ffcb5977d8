"""Domain types: a job at its submission, a job at its end, and a prediction.

Durations are seconds, times are Unix seconds, processors are cores, memory is KiB per
processor. Unknown is ``None``, never ``-1`` or ``0``.

The types are msgspec structs. They behave as frozen keyword-only dataclasses and are built ten
times faster, which counts because learning from a million completions builds two million of them.
"""

import re
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from predictors.facts import Facts

DEFAULT_CLUSTER = "default"

LONGEST = 1e9
"""Seconds, 31 years; a longer run or wait is a sentinel or an error of a clock."""

MOST_MEMORY = 1e15
"""KiB, an exabyte; more is a sentinel or a typing error."""

MOST_PROCESSORS = 2**31 - 1
"""Largest number of processors; no machine has more, and unset numbers of 32 bits are larger."""

LATEST_TIME = 1e11
"""Unix seconds of the year 5138; a later time is a sentinel or an error of a clock."""


class Status(StrEnum):
    """The end of a run, in the words of the HTTP contract."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    NODE_FAIL = "node_fail"
    OUT_OF_MEMORY = "out_of_memory"
    PREEMPTED = "preempted"
    UNKNOWN = "unknown"


def usage_of(runtime: float, requested: float) -> float:
    """Return the share of the requested walltime that a run used, clipped to [0, 1].

    The same number is usage_wall (Klusáček & Soysal 2020, Formula 1), R (Tang et al. 2013,
    Eq 1) and A (Rocchetti et al. 2017, section 3).
    """
    return min(1.0, max(0.0, runtime / requested))


_DIGITS = re.compile(r"\d+")


@lru_cache(maxsize=10_000)
def without_digits(application: str | None) -> str | None:
    """Return the name of an application with # for its digits: ``step_#.sh`` for ``step_12.sh``.

    A name of digits alone stays as it is.
    """
    if application is None or application.isdigit():
        return application
    return _DIGITS.sub("#", application)


ENDED_OTHERWISE = frozenset({Status.NODE_FAIL, Status.OUT_OF_MEMORY, Status.PREEMPTED})
"""Ends of runs that did not end at their limit, whatever their runtime."""


def runtime_at_limit(limit: float) -> float:
    """Return the runtime from which on a run without the status ``timeout`` ended at its limit.

    That is 60 s or 1% before the limit, whichever is longer, but at most a tenth of the limit.
    """
    return limit - max(0.01 * limit, min(60.0, 0.1 * limit))


class Submission(Struct, frozen=True, kw_only=True, gc=False):
    """A job at its submission.

    Attributes:
        requested_walltime: seconds, > 0.
        submit_time: Unix seconds.
        cluster: the job's cluster; predictions use the history of this cluster only.
        job_id: the resource manager's name for the job; a submit filter has none yet.
        project: Slurm account, PBS project.
        queue: Slurm partition.
        application: job name or executable.
        requested_processors: cores.
        requested_memory: KiB per processor.
        facts: further facts; None if there are none.
    """

    requested_walltime: float
    submit_time: float
    cluster: str = DEFAULT_CLUSTER
    job_id: str | None = None
    user: str | None = None
    group: str | None = None
    project: str | None = None
    queue: str | None = None
    application: str | None = None
    requested_processors: int | None = None
    requested_memory: float | None = None
    facts: Facts | None = None


class Completion(Struct, frozen=True, kw_only=True, gc=False):
    """One run of a job that has ended, with the submission as it was.

    A job may run more than once (requeue): ``(cluster, job_id, start_time)`` names a run.

    Attributes:
        runtime: seconds.
        interactive: whether a person sat before it, who ends it when done.
        extended_to: its limit at the end in seconds, if that was longer than requested.
    """

    submission: Submission
    start_time: float
    end_time: float
    runtime: float
    status: Status = Status.UNKNOWN
    interactive: bool = False
    extended_to: float | None = None

    @property
    def usage(self) -> float:
        """``runtime / requested_walltime``, clipped to [0, 1]."""
        return usage_of(self.runtime, self.submission.requested_walltime)

    @property
    def met_limit(self) -> bool:
        """Whether the run reached the limit that was requested, see ``runtime_at_limit``."""
        return self._reached(self.submission.requested_walltime)

    @property
    def was_cut(self) -> bool:
        """Whether the run ended at its limit, which may have been extended."""
        return self._reached(self.extended_to or self.submission.requested_walltime)

    def _reached(self, limit: float) -> bool:
        if self.status in ENDED_OTHERWISE:
            return False
        return self.status == Status.TIMEOUT or self.runtime >= runtime_at_limit(limit)


class Basis(Struct, frozen=True, kw_only=True, gc=False):
    """The number of past jobs that a prediction is made from, and a reason in one word."""

    jobs: int
    reason: str


class Interval(Struct, frozen=True, kw_only=True, gc=False):
    """Bounds in seconds that hold the runtime with probability ``coverage``."""

    lower: float
    upper: float
    coverage: float


class PastRun(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A run of the same user that a prediction rests on.

    Attributes:
        job_id: None if unknown.
        runtime: seconds.
        requested_walltime: seconds.
        end_time: Unix seconds.
        weight: its share of the weight of all support points.
        shared: names of further facts that it shares with the job and that count.
    """

    job_id: str | None
    runtime: float
    requested_walltime: float
    end_time: float
    weight: float
    shared: tuple[str, ...] = ()


class Prediction(Struct, frozen=True, kw_only=True, gc=False):
    """The predicted runtime of a job in seconds, with the method and its basis.

    Attributes:
        median: seconds; None from methods without a distribution.
        mean: seconds; likewise. It may lie outside the interval.
        explanation: runs of most weight, heaviest first; None unless requested.
    """

    predicted_walltime: float
    requested_walltime: float
    method: str
    basis: Basis
    interval: Interval | None = None
    median: float | None = None
    mean: float | None = None
    explanation: tuple[PastRun, ...] | None = None


def in_agreement(prediction: Prediction) -> Prediction:
    """Return the prediction as it is shown: rounded, its numbers within its interval.

    The estimate of least expected cost may lie beyond a central interval. What is recorded and
    scored is the interval as it was predicted.
    """
    request, interval = prediction.requested_walltime, prediction.interval
    mean, median, explanation = prediction.mean, prediction.median, prediction.explanation
    planned = milliseconds(prediction.predicted_walltime, request)
    if explanation is not None:
        explanation = tuple(replace(run, weight=round(run.weight, 4)) for run in explanation)
    if interval is not None:
        lower, upper = planned, planned
        if median is not None:
            median = milliseconds(median, request)
            lower, upper = min(lower, median), max(upper, median)
        interval = Interval(
            lower=min(milliseconds(interval.lower, request), lower),
            upper=max(milliseconds(interval.upper, request), upper),
            coverage=interval.coverage,
        )
    return Prediction(
        predicted_walltime=planned,
        requested_walltime=request,
        method=prediction.method,
        basis=prediction.basis,
        interval=interval,
        median=median,
        mean=None if mean is None else milliseconds(mean, request),
        explanation=explanation,
    )


def milliseconds(seconds: float, request: float) -> float:
    """Return seconds to the millisecond; rounding crosses no request, which stays as it is."""
    rounded = round(seconds, 3)
    return max(request, rounded) if seconds >= request else min(request, rounded)
