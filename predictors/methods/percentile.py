"""Scales the request by a percentile of the usages of similar recent jobs."""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import partial
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec.structs import replace

from predictors.base import COLD_START, Memory, Question, capped, request_of
from predictors.jobs import Basis, Completion, Prediction, Submission
from predictors.memory.calibration import MUCH, Calibration, rows_kept
from predictors.memory.columns import Floats, Window
from predictors.memory.job_table import JobTable
from predictors.memory.ranked_window import RankedWindow
from predictors.methods import percentile_search
from predictors.parameters import choice, number, whole_number
from predictors.uncertainty import (
    Weighed,
    answered_as,
    predicting,
    quantiles_of,
    told,
    unknown,
    wanted,
)

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
"""Seconds that runs are kept beyond the window, for predictions at a moment in the past."""

HISTORY = 10_000
"""Among how many of the cluster's last runs those are sought whose usages make a distribution."""

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

    Median and interval are those of a distribution: the usages of the latest 256 eligible runs,
    times the request, which weigh the same, at levels that are corrected as those of least-cost
    are. They are sought among the cluster's last 10000 runs. The paper has neither.

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
        self._fewest = min(self._min_jobs, percentile_search.MOST)
        self._parts = _parts_of(self._key_name)
        self._recent = JobTable(rows_kept(HISTORY), names_jobs=True)
        self._calibration = Calibration(self._recent, self._rank)
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
        """The time window and the grace after it, and the latest runs of the cluster."""
        seconds = self._window + GRACE_SECONDS
        return Memory(window_seconds=seconds, latest_jobs=self._recent.kept)

    def predict(self, submission: Submission) -> Prediction:
        """Equation 2 with the percentile of the jobs that are eligible now."""
        usages = self.eligible(submission)
        jobs = len(usages)
        if jobs < self._min_jobs:
            return request_of(submission, method=self.name, basis=_too_few(jobs))
        basis = Basis(jobs=jobs, reason="history")
        return capped(self._estimate(submission, usages), submission, method=self.name, basis=basis)

    def ask(self, submission: Submission, question: Question) -> Prediction:
        """The same with median and interval of the runs that are eligible now.

        The prediction of a running job is the percentile of those that ran longer.
        """
        if question.explain or question.elapsed is not None:
            return self._answered(submission, question)
        window = self._recent.window(submission)
        bins = self._calibration.bins(window)  # first: whoever asks has runs ranked as they end
        usages = self.eligible(submission)
        jobs = len(usages)
        if jobs < self._fewest:
            return replace(unknown(submission, question, method=self.name), basis=_too_few(jobs))
        if self._are_all(submission, jobs):
            request = float(submission.requested_walltime)
            values = np.frombuffer(usages)
            found = percentile_search.certain_of(values, request, bins, wanted(question))
        else:
            levels = bins, self._calibration.history
            about = self._about(submission, window)
            count, found = percentile_search.certain(about, levels, wanted(question))
            if min(count, jobs) < self._min_jobs:
                return self._answered(submission, question)
        if question.underestimation_rate is None:
            found = predicting(self._estimate(submission, usages), submission, found)
        basis = Basis(jobs=jobs, reason="history")
        return told(found, submission, question, method=self.name, basis=basis)

    def _estimate(self, submission: Submission, usages: "array[float]") -> float:
        """Seconds, of a job for which enough usages are eligible."""
        usage = usages[rank(len(usages), *self._share) - 1]
        return submission.requested_walltime * max(self._lower_bound, usage)

    def _are_all(self, submission: Submission, jobs: int) -> bool:
        """Whether the eligible jobs are those that make the distribution, and many of one user.

        Eligible are jobs of a key; the distribution is sought among the last rows of the cluster.
        They are the same unless jobs of the key were dropped, lie further back, or are too many.
        """
        fewest = max(MUCH, self._min_jobs)
        if not self._parts[0] or not fewest <= jobs <= percentile_search.MOST:
            return False
        if submission.submit_time - self._window < self._horizon:
            return False
        group = self._groups[self._key(submission)]
        return group.earliest > self._recent.end_before(HISTORY)

    def _answered(self, submission: Submission, question: Question) -> Prediction:
        """What ``ask`` answers, put together from the prediction and the distribution."""
        least = self._lower_bound * submission.requested_walltime

        def estimate(longer: Floats) -> float:
            return max(least, float(longer[rank(len(longer), *self._share) - 1]))

        plain = self.predict(submission)
        return answered_as(plain, self._weighed(submission), submission, question, estimate)

    def quantiles(
        self, submission: Submission, shares: Sequence[float], elapsed: float | None = None
    ) -> list[float] | None:
        """The runtimes that shares of jobs like this one do not exceed."""
        return quantiles_of(self._weighed(submission), submission, shares, elapsed)

    def eligible(self, submission: Submission) -> "array[float]":
        """The usages of the jobs that are eligible for a submission, by size.

        The answer must not be changed, and holds until the next call.
        """
        group = self._groups.get(self._key(submission))
        if group is None:
            return _NONE
        time = submission.submit_time
        return group.between(time - self._window, time, MOST_JOBS)

    def observe(self, completion: Completion) -> None:
        """Remember the run, and its usage (Equation 1) for the key of the job."""
        self._recent.add(completion, project_as_group=True)
        self._calibration.observed()
        self.observe_old(completion)

    def observe_old(self, completion: Completion) -> None:
        """Remember only the usage: that is all that matters of a run that is not among the latest.

        Who reads a long history calls it for runs that ended before the last
        ``memory.latest_jobs``.
        """
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

    def _weighed(self, submission: Submission) -> Weighed | None:
        """The eligible runs, which weigh the same; None where they are too few."""
        counts = self._calibration.at(submission)
        if self._key(submission) is None:
            return None
        values, rows = percentile_search.distribution(
            *self._about(submission, self._recent.window(submission))
        )
        if len(values) < self._fewest:
            return None
        return Weighed.equally(values, rows, counts, partial(self._recent.runs_of, submission.user))

    def _about(self, submission: Submission, window: Window) -> percentile_search.About:
        return (
            self._recent.columns,
            window,
            HISTORY,
            self._parts,
            (
                self._recent.group_of(submission.project),
                float(submission.requested_walltime),
                float(submission.submit_time) - self._window,
            ),
        )

    def _rank(self, begin: int, end: int) -> None:
        percentile_search.rank(
            self._recent.columns,
            (self._recent.first, begin, end),
            (HISTORY, self._fewest),
            self._parts,
            self._window,
        )

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
    """Numerator and denominator of a percentile, as the decimal number it was written as."""
    return (Fraction(str(float(percentile))) / 100).as_integer_ratio()


def rank(jobs: int, numerator: int, denominator: int) -> int:
    """The place of a percentile among ``jobs`` usages by size, the smallest being 1.

    Whole numbers decide, and no float.
    """
    return max(1, -(-jobs * numerator // denominator))


def _parts_of(key: str) -> percentile_search.Key:
    """Whether user, project and requested walltime belong to a key."""
    attributes = KEYS[key]
    return "user" in attributes, "project" in attributes, "requested_walltime" in attributes


def _reader(first: str, *others: str) -> Callable[[Submission], Hashable]:
    """A function that reads the key of a job: None if the first part of the key is unknown."""
    if not others:
        return attrgetter(first)
    read = attrgetter(first, *others)

    def key(submission: Submission) -> Hashable:
        values = read(submission)
        return None if values[0] is None else values

    return key
