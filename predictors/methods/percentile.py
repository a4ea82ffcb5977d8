"""Scales the request by a percentile of the usages of similar recent jobs."""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable
from fractions import Fraction
from math import inf
from operator import attrgetter
from typing import Any

from predictors.base import COLD_START, Memory, capped, request_of
from predictors.jobs import Basis, Completion, Prediction, Submission
from predictors.memory.ranked_window import RankedWindow
from predictors.parameters import choice, number, whole_number

DAY = 86400.0

KEYS = {
    "user": ("user",),
    "project": ("project",),
    "user+project": ("user", "project"),
    "user+walltime": ("user", "requested_walltime"),
    "user+project+walltime": ("user", "project", "requested_walltime"),
}
"""The attributes that two jobs must share: Tang's four keys, and user+walltime for logs without
projects."""

ALIASES = {"double": "user+project", "triple": "user+project+walltime"}
"""Tang's names for two of the keys."""

MOST_JOBS = 50_000
"""Most jobs that a percentile is taken of, those that ended last. It bounds the memory of a key."""

GRACE_SECONDS = DAY
"""Seconds that runs are stored beyond the window, for predictions at a moment in the past."""

_BATCH = 63
"""Number of completions whose median end time moves the clock of the log."""

_NONE = array("d")


class Percentile:
    """Predicts request x A, with A a percentile of the usages of eligible past jobs.

    A past job is eligible if it has the same key and ended within the window before the
    submission: ``submit_time - window <= end_time <= submit_time``, both ends included. A is the
    smallest of their usages that at least p per cent of them do not exceed (nearest rank), and
    never less than the lower bound. A low percentile follows the jobs closely and underestimates
    more of them. With fewer than ``min_jobs`` eligible jobs the answer is the request. A job
    that lacks the first part of the key matches no other job. A user's jobs without a project
    match each other: where a site has no projects, the triple is user and walltime.

    Of more than 50,000 eligible jobs the latest 50,000 count. The answer is exact for submissions
    up to a day before the newest completions of the log; older runs are dropped. The log itself
    tells their age: the clock is the median end time of every 63 completions, so a few completions
    with an absurd end time drop nothing.

    Args:
        key: ``user``, ``project``, ``user+project`` (or ``double``), ``user+walltime``,
            ``user+project+walltime`` (or ``triple``). The paper's best is the triple.
        window_days: length of the window, 1 to 36500, or None for all history. The paper compares
            30, 60, 90, 180, 365 and all, and advises 30.
        percentile: 0 to 100. The paper advises 80 to 90; 100 is the largest usage.
        lower_bound: the least A (0 to 1); 0 turns it off.
        min_jobs: fewest eligible jobs that a percentile is taken of (1 to 50000).

    Reference:
        W. Tang, N. Desai, D. Buettner and Z. Lan, "Job scheduling with adjusted runtime
        estimates on production supercomputers", JPDC 73(7), 2013, section 4.
    """

    name = "percentile"

    def __init__(
        self,
        *,
        key: str = "triple",
        window_days: float | None = 30,
        percentile: float = 85,
        lower_bound: float = 0.5,
        min_jobs: int = 10,
    ) -> None:
        named = choice("key", key, (*KEYS, *ALIASES))
        self._key_name = ALIASES.get(named, named)
        self._key = _reader(*KEYS[self._key_name])
        self._days = window_days
        self._window = inf
        if window_days is not None:
            self._window = number("window_days", window_days, 1, 36500) * DAY
        self._percentile = number("percentile", percentile, 0, 100)
        self._share = share_of(self._percentile)
        self._lower_bound = number("lower_bound", lower_bound, 0, 1)
        self._min_jobs = whole_number("min_jobs", min_jobs, 1, MOST_JOBS)
        self._groups: OrderedDict[Hashable, RankedWindow] = OrderedDict()
        self._latest_ends: list[float] = []
        self._horizon = -inf

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force."""
        return {
            "key": self._key_name,
            "window_days": self._days,
            "percentile": self._percentile,
            "lower_bound": self._lower_bound,
            "min_jobs": self._min_jobs,
        }

    @property
    def memory(self) -> Memory:
        """The time window and the grace after it."""
        return Memory(window_seconds=self._window + GRACE_SECONDS)

    def predict(self, submission: Submission) -> Prediction:
        """Predict by Equation 2 with the percentile of the eligible jobs."""
        usages = self.eligible(submission)
        jobs = len(usages)
        if jobs < self._min_jobs:
            return request_of(submission, method=self.name, basis=_too_few(jobs))
        basis = Basis(jobs=jobs, reason="history")
        return capped(self._estimate(submission, usages), submission, method=self.name, basis=basis)

    def _estimate(self, submission: Submission, usages: "array[float]") -> float:
        """Return the estimate in seconds from enough eligible usages."""
        usage = usages[rank(len(usages), *self._share) - 1]
        return submission.requested_walltime * max(self._lower_bound, usage)

    def eligible(self, submission: Submission) -> "array[float]":
        """Return the usages of the jobs that are eligible for a submission, by size.

        The answer must not be changed, and holds until the next call.
        """
        group = self._groups.get(self._key(submission))
        if group is None:
            return _NONE
        time = submission.submit_time
        return group.between(time - self._window, time, MOST_JOBS)

    def observe(self, completion: Completion) -> None:
        """Remember the usage of the run (Equation 1) for the key of the job."""
        key = self._key(completion.submission)
        if key is None:
            return
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = RankedWindow()
        group.add(completion.end_time, completion.usage)
        if len(group) > MOST_JOBS * 9 // 8:
            group.forget(len(group) - MOST_JOBS)
        self._advance(completion.end_time)
        self._tidy()

    def _advance(self, end_time: float) -> None:
        """Advance the clock of the log to the median of a batch of end times."""
        self._latest_ends.append(end_time)
        if len(self._latest_ends) == _BATCH:
            median = sorted(self._latest_ends)[_BATCH // 2]
            self._horizon = max(self._horizon, median - self._window - GRACE_SECONDS)
            self._latest_ends.clear()

    def _tidy(self) -> None:
        """Drop runs that are too old from the next key in turn, and the key if none are left."""
        key, group = self._groups.popitem(last=False)
        group.forget_before(self._horizon)
        if group:
            self._groups[key] = group


def _too_few(jobs: int) -> Basis:
    return Basis(jobs=jobs, reason="too-few-jobs") if jobs else COLD_START


def share_of(percentile: float) -> tuple[int, int]:
    """Return numerator and denominator of a percentile, read as a decimal number."""
    return (Fraction(str(float(percentile))) / 100).as_integer_ratio()


def rank(jobs: int, numerator: int, denominator: int) -> int:
    """Return the rank of a percentile among ``jobs`` usages by size, the smallest being 1.

    Whole numbers decide, and no float.
    """
    return max(1, -(-jobs * numerator // denominator))


def _reader(first: str, *others: str) -> Callable[[Submission], Hashable]:
    """Return a function that reads the key of a job: None if its first part is unknown."""
    if not others:
        return attrgetter(first)
    read = attrgetter(first, *others)

    def key(submission: Submission) -> Hashable:
        values = read(submission)
        return None if values[0] is None else values

    return key
