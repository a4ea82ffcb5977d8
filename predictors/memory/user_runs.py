"""The most recently ended runs of every user, for predictors that look at a few of them."""

from bisect import bisect_right
from math import inf

import numpy as np
from numpy.typing import NDArray

from predictors.base import Memory
from predictors.compiled import compiled

SLACK = 16
"""Runs kept per user beyond those a prediction needs.

A prediction may be asked for a moment in the past: a completion that ended after the submission
may have been observed before the prediction is asked for. The prediction is exact as long as no
more than this many of the user's runs ended after that moment. Otherwise it is made from fewer
runs, but never from runs that ended later. A run whose end time lies in the future by mistake
takes one of these places and none of the window's.
"""


class UserRuns:
    """One number for each of the most recently ended runs of every user.

    Runs are ordered by end time, and runs that ended together by the order in which they were
    added. A run of an unknown user (None) is not kept, so unknown users share no history. Up to
    ``window + SLACK`` runs are kept for every user ever seen.
    """

    def __init__(self, window: int) -> None:
        self.memory = Memory(jobs_per_user=window + SLACK)
        self._window = window
        self._users: dict[str | None, tuple[list[float], list[float]]] = {}

    def __len__(self) -> int:
        """How many users have runs."""
        return len(self._users)

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


RunColumns = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]
"""The same for users that are numbers, in machine code: end times and values by user, and how many
each has."""


def run_columns(users: int, window: int) -> RunColumns:
    """Room for the last runs of each user."""
    shape = (users, window + SLACK)
    return np.zeros(shape), np.zeros(shape), np.zeros(users, np.int64)


@compiled
def add_run(runs: RunColumns, user: int, end_time: float, value: float) -> None:
    """What ``UserRuns.add`` does."""
    if user < 0:
        return
    ends, values, counts = runs
    place = count = counts[user]
    while place > 0 and ends[user, place - 1] > end_time:
        place -= 1
    if count < ends.shape[1]:
        counts[user] += 1
        for index in range(count, place, -1):
            ends[user, index], values[user, index] = ends[user, index - 1], values[user, index - 1]
    elif place > 0:
        place -= 1
        for index in range(place):
            ends[user, index], values[user, index] = ends[user, index + 1], values[user, index + 1]
    else:
        return
    ends[user, place], values[user, place] = end_time, value


@compiled
def runs_before(runs: RunColumns, user: int, time: float, window: int) -> tuple[int, int]:
    """What ``UserRuns.before`` answers, as places among the values of a user."""
    if user < 0:
        return 0, 0
    ends, _, counts = runs
    stop = counts[user]
    while stop > 0 and ends[user, stop - 1] > time:
        stop -= 1
    return max(0, stop - window), stop
