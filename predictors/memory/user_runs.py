"""The most recently ended runs of every user, for predictors that look at a few of them."""

from bisect import bisect_right
from math import inf

from predictors.base import Memory

SLACK = 16
"""Runs stored per user beyond those that a prediction needs.

A prediction may be requested for a moment in the past, after later completions were observed. It is
exact if at most SLACK of the user's runs ended after that moment. Otherwise it is made from fewer
runs, but never from runs that ended later. A run whose end time lies in the future by mistake
takes one of these places and none of the window's.
"""


class UserRuns:
    """One number for each of the most recently ended runs of every user.

    Runs are ordered by end time, and runs that ended together by the order in which they were
    added. A run of an unknown user (None) is not stored, so unknown users share no history. Up to
    ``window + SLACK`` runs are stored for every user.
    """

    def __init__(self, window: int) -> None:
        self.memory = Memory(jobs_per_user=window + SLACK)
        self._window = window
        self._users: dict[str | None, tuple[list[float], list[float]]] = {}

    def add(self, user: str | None, end_time: float, value: float) -> None:
        """Remember ``value`` for a run of ``user`` that ended at ``end_time``."""
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
        if len(ends) > self.memory.jobs_per_user:
            del ends[0], values[0]

    def before(self, user: str | None, time: float = inf) -> list[float]:
        """Values of the user's last ``window`` runs that had ended at ``time``, oldest first."""
        runs = self._users.get(user)
        if runs is None:
            return []
        ends, values = runs
        if ends[-1] <= time:
            return values[-self._window :]
        stop = bisect_right(ends, time)
        return values[max(0, stop - self._window) : stop]
