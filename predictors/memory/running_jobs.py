"""The jobs of a cluster that are known to run, by user and kind, for predictions of like jobs.

A start counts from the time at which every process knows of it. So what ran when a job was
submitted is the same in each of them, now and after a restart.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from math import inf
from typing import NamedTuple

import numpy as np

from predictors.jobs import Completion, Submission, without_digits
from predictors.memory.columns import ELAPSED, ENDED, MOST_ELAPSED, NOBODY, RUNNING, Floats, Running

MOST_KNOWN = 50_000
"""Number of last starts that are remembered; more than there are runs in a table of runs."""

MOST_ENDED = 512
"""Number of last ends of like jobs that are remembered."""

Kind = tuple[str, str | None, float, int | None]
"""User, application without digits, request and processors of like jobs."""


class Start(NamedTuple):
    """A job that has started.

    Attributes:
        submission: of the job, with its id.
        start_time: Unix seconds.
        known_from: Unix seconds from which it counts.
        end_time: Unix seconds; inf while it runs.
    """

    submission: Submission
    start_time: float
    known_from: float
    end_time: float = inf


class LikeJobs:
    """Times of like jobs: start, time from which the start counts, and end."""

    def __init__(self) -> None:
        self._times = np.empty((4, 3))
        self._rows: dict[str, int] = {}
        self._jobs: list[str] = []
        self._ended: list[tuple[float, str]] = []

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self._jobs)

    @property
    def times(self) -> Floats:
        """The times by job, in no order."""
        return self._times[: len(self._jobs)]

    def add(self, job: str, start: Start) -> None:
        """Add a job that runs."""
        row = len(self._jobs)
        if row == len(self._times):
            self._times = np.concatenate((self._times, np.empty_like(self._times)))
        self._times[row] = start.start_time, start.known_from, inf
        self._rows[job] = row
        self._jobs.append(job)

    def start_of(self, job: str) -> float:
        """Return the start of a job, in Unix seconds."""
        return float(self._times[self._rows[job], 0])

    def end(self, job: str, end_time: float) -> None:
        """Note an end."""
        self.reopen(job)
        self._times[self._rows[job], 2] = end_time
        insort(self._ended, (end_time, job))

    def reopen(self, job: str) -> None:
        """Let a job run again."""
        end_time = float(self._times[self._rows[job], 2])
        if end_time < inf:
            self._times[self._rows[job], 2] = inf
            del self._ended[bisect_left(self._ended, (end_time, job))]

    @property
    def surplus(self) -> list[str]:
        """The jobs that ended before the last MOST_ENDED."""
        return [job for _, job in self._ended[: max(0, len(self._ended) - MOST_ENDED)]]

    def remove(self, job: str) -> None:
        """Forget a job."""
        self.reopen(job)
        row, last = self._rows.pop(job), self._jobs.pop()
        if last != job:
            self._times[row] = self._times[len(self._jobs)]
            self._rows[last], self._jobs[row] = row, last


class RunningJobs:
    """Starts and ends of a cluster's jobs, as a fold in the order in which they became known.

    Of a job that starts again its last run counts.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._alike: dict[Kind, LikeJobs] = {}

    def __len__(self) -> int:
        """Return the number of jobs that are remembered."""
        return len(self._kinds)

    def started(self, start: Start) -> None:
        """Note a start, of a job with a user, and its end if there is one.

        Ends are not bounded here: a process that begins anew reads them with the starts, and notes
        the last ones again in order.
        """
        kind, job = kind_of(start.submission), start.submission.job_id
        if kind is None or job is None:
            return
        if job in self._kinds:
            known = self._alike[self._kinds[job]].start_of(job)
            if known > start.start_time:
                return
            if known < start.start_time:
                self._forget(job)
        if job not in self._kinds:
            self._kinds[job] = kind
            self._alike.setdefault(kind, LikeJobs()).add(job, start)
        if start.end_time < inf:
            self._alike[self._kinds[job]].end(job, start.end_time)
        if len(self._kinds) > MOST_KNOWN:
            self._forget(next(iter(self._kinds)))

    def ended(self, completion: Completion) -> None:
        """Note the end of a run whose start is known."""
        if (job := self._known(completion)) is not None:
            kind = self._kinds[job]
            self._alike[kind].end(job, completion.end_time)
            self._forget_surplus(kind)

    def reopen(self, completions: Iterable[Completion]) -> None:
        """Let runs run again, whose ends are about to be noted in order; forget old ends."""
        for completion in completions:
            if (job := self._known(completion)) is not None:
                self._alike[self._kinds[job]].reopen(job)
        self.forget_surplus()

    def forget_surplus(self) -> None:
        """Forget jobs that ended before the last MOST_ENDED of their kinds."""
        for kind in list(self._alike):
            self._forget_surplus(kind)

    def like(self, submission: Submission) -> Running:
        """Return the jobs like this one that were known to run at its submission."""
        if not self._alike or (kind := kind_of(submission)) is None:
            return NOBODY
        known = self._alike.get(kind)
        if known is None:
            return NOBODY
        time = submission.submit_time
        return summary_of(known.times, time, time - submission.requested_walltime)

    def _known(self, completion: Completion) -> str | None:
        """Return the job of a run that ended after the known start; None if there is none."""
        job = completion.submission.job_id
        if job is None or job not in self._kinds:
            return None
        start = self._alike[self._kinds[job]].start_of(job)
        return job if start <= completion.end_time else None

    def _forget_surplus(self, kind: Kind) -> None:
        for job in self._alike[kind].surplus:
            self._forget(job)

    def _forget(self, job: str) -> None:
        kind = self._kinds.pop(job)
        self._alike[kind].remove(job)
        if not self._alike[kind]:
            del self._alike[kind]


def kind_of(submission: Submission) -> Kind | None:
    """Return what like jobs have in common; None without a user."""
    if submission.user is None:
        return None
    return (
        submission.user,
        without_digits(submission.application),
        submission.requested_walltime,
        submission.requested_processors,
    )


def summary_of(times: Floats, time: float, earliest: float) -> Running:
    """Return a summary of the runs that were known to run at a time.

    Args:
        times: start, time from which the start counts, and end, by run.
        time: Unix seconds.
        earliest: start of a run that had used up its request; of earlier ones the end was lost.
    """
    seen = times[times[:, 1] <= time]
    is_open = seen[:, 2] > time
    starts = np.sort(seen[is_open & (seen[:, 0] > earliest), 0])
    if not len(starts):
        return NOBODY
    summary = np.zeros_like(NOBODY)
    summary[RUNNING] = len(starts)
    summary[ENDED] = np.count_nonzero(~is_open & (seen[:, 0] >= starts[0]))
    places = np.linspace(len(starts) - 1, 0, min(MOST_ELAPSED, len(starts)))
    summary[ELAPSED : ELAPSED + len(places)] = time - starts[np.rint(places).astype(int)]
    return summary
