"""The most recently ended runs of every user, for predictors that look at a few of them."""

from bisect import bisect_left, bisect_right
from heapq import heappush, heappushpop
from math import inf

from predictors.base import Memory

SLACK = 16
"""Runs stored per user beyond those that a prediction needs.

A prediction may be requested for a moment in the past, after later completions were observed. It is
exact if at most SLACK of the user's runs ended after that moment. Otherwise it is made from fewer
runs, but never from runs that ended later. A run whose end time lies in the future by mistake
takes one of these places and none of the window's.
"""


LATEST_RUNS = 10_000
"""Runs of the cluster that methods remember which predict from a few runs of the user.

So a job that has waited long is predicted as of its submission, whatever its user has run since.
"""


class UserRuns:
    """One number for each of the most recently ended runs of every user.

    Runs are ordered by end time, and runs that ended together by the order in which they were
    added. A run of an unknown user (None) is not stored, so unknown users share no history. Up to
    ``window + SLACK`` runs are stored for every user, and those among the latest of the cluster.

    Args:
        window: number of a user's runs that a prediction needs.
        latest: number of the cluster's latest runs that are stored, too. A prediction for a moment
            in the past is exact if no more runs than these ended after it.
    """

    def __init__(self, window: int, *, latest: int = 0) -> None:
        self.memory = Memory(jobs_per_user=window + SLACK, latest_jobs=latest)
        self._window = window
        self._users: dict[str | None, tuple[list[float], list[float]]] = {}
        self._latest_ends: list[float] = []
        self._added = 0

    def add(self, user: str | None, end_time: float, value: float) -> None:
        """Remember ``value`` for a run of ``user`` that ended at ``end_time``."""
        self._note_end(end_time)
        if user is None:
            return
        runs = self._users.get(user)
        if runs is None:
            self._users[user] = ([end_time], [value])
            return
        ends, values = runs
        place = bisect_right(ends, end_time)
        ends.insert(place, end_time)
        values.insert(place, value)
        if forgotten := self._forgotten(ends):
            del ends[:forgotten], values[:forgotten]

    def before(self, user: str | None, time: float = inf) -> list[float]:
        """Values of the user's last ``window`` runs that had ended at ``time``, oldest first."""
        runs = self._users.get(user)
        if runs is None:
            return []
        ends, values = runs
        if ends[-1] <= time:
            return values[-self._window :]
        stop = bisect_right(ends, time)
        return values[max(self._forgotten(ends), stop - self._window) : stop]

    def _note_end(self, end_time: float) -> None:
        """Note the end of a run of the cluster; now and then drop runs of users who run no more."""
        latest = self.memory.latest_jobs
        if not latest:
            return
        if len(self._latest_ends) < latest:
            heappush(self._latest_ends, end_time)
        else:
            heappushpop(self._latest_ends, end_time)
        self._added += 1
        if self._added % latest == 0:
            for ends, values in self._users.values():
                forgotten = self._forgotten(ends)
                del ends[:forgotten], values[:forgotten]

    def _forgotten(self, ends: list[float]) -> int:
        """Return the number of a user's first runs that are not remembered any more."""
        beyond = len(ends) - self.memory.jobs_per_user
        if beyond <= 0:
            return 0
        if not self.memory.latest_jobs:
            return beyond
        if len(self._latest_ends) < self.memory.latest_jobs:
            return 0
        return min(beyond, bisect_left(ends, self._latest_ends[0]))
