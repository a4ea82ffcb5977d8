"""Penalty scheduling ranks users by the accuracy of their requests and ages waiting jobs."""

from bisect import bisect_right
from math import floor, fsum, inf, isfinite

from msgspec import Struct

from predictors.base import Memory
from predictors.compiled import compiled
from predictors.jobs import Completion
from predictors.memory.user_runs import UserRuns

ACCURACY_JOBS = 10
"""Number of a user's most recently ended jobs whose mean usage is the user's accuracy."""

STEP_SECONDS = 150.0
"""Seconds between two steps in which waiting jobs are aged."""

CEILING = 1e300
"""The highest priority. Among jobs that reach it, older submissions go first."""

LONGEST_WAIT_STEPS = 10_000_000
"""A wait of this many steps (47 years) or more ages a job no further."""

_NEGLIGIBLE = 1e-20
"""A falling term whose share of the sum is smaller than this changes no digit of the sum."""


class Group(Struct, frozen=True, kw_only=True, gc=False):
    """Users whose accuracy is in [lower, upper), in [lower, upper] for the last group."""

    name: str
    lower: float
    upper: float
    priority: int


_TABLE_1 = (
    (0.00, 1),
    (0.05, 10),
    (0.10, 20),
    (0.15, 25),
    (0.20, 30),
    (0.30, 35),
    (0.40, 40),
    (0.52, 43),
    (0.64, 46),
    (0.78, 49),
)
_LOWER = tuple(lower for lower, _ in _TABLE_1)

GROUPS: tuple[Group, ...] = tuple(
    Group(name=f"g{place}", lower=lower, upper=upper, priority=priority)
    for place, ((lower, priority), upper) in enumerate(
        zip(_TABLE_1, (*_LOWER[1:], 1.0), strict=True), start=1
    )
)
"""The groups g1 to g10 of Rocchetti et al., Table 1. The table leaves 0 open; here 0 is in g1."""

_PLACES = {group.name: place for place, group in enumerate(GROUPS)}


class UserAccuracy(Struct, frozen=True, kw_only=True, gc=False):
    """The accuracy of a user's requests, and the priority that follows from it.

    Attributes:
        accuracy: mean usage of the last jobs, in [0, 1].
        jobs: number of jobs in that mean, ten at most.
        group: g1 to g10.
        priority: the initial priority of the group.
    """

    user: str
    accuracy: float
    jobs: int
    group: str
    priority: int


class GroupShare(Struct, frozen=True, kw_only=True, gc=False):
    """One accuracy group and its users.

    Attributes:
        lower: smallest accuracy of the group.
        upper: end of the group's interval.
        includes_upper: whether an accuracy of ``upper`` is in the group, as in g10.
        users: number of users whose accuracy is in the group now.
        user_share: their share of all users with history.
    """

    group: str
    lower: float
    upper: float
    includes_upper: bool
    priority: int
    users: int
    user_share: float


class Accuracies:
    """The accuracy and the group of every user of a cluster, a fold over its completions.

    Args:
        default_group: the group of users without history.

    Reference:
        N. Rocchetti et al. 2017, "Penalty Scheduling Policy Applying User Estimates and Aging
        for Supercomputing Centers", section 3.
    """

    def __init__(self, *, default_group: str = "g5") -> None:
        self.default_group = group_named(default_group)
        self._usages = UserRuns(ACCURACY_JOBS)
        self._places: dict[str, int] = {}
        self._users = [0] * len(GROUPS)

    @property
    def memory(self) -> Memory:
        """A few runs of every user."""
        return self._usages.memory

    def observe(self, completion: Completion) -> None:
        """Learn from a run that has ended; interactive sessions end early and do not count."""
        user = completion.submission.user
        if user is None or completion.interactive:
            return
        self._usages.add(user, completion.end_time, completion.usage)
        self._place(user)

    def of(self, user: str | None, at: float = inf) -> UserAccuracy | None:
        """Return a user's accuracy from runs that had ended at ``at`` (Unix seconds), or None."""
        usages = self._usages.before(user, at)
        if user is None or not usages:
            return None
        accuracy = fsum(usages) / len(usages)
        group = group_of(accuracy)
        return UserAccuracy(
            user=user,
            accuracy=accuracy,
            jobs=len(usages),
            group=group.name,
            priority=group.priority,
        )

    def groups(self) -> list[GroupShare]:
        """Return the present users of each group, g1 first."""
        users = max(1, sum(self._users))
        return [
            GroupShare(
                group=group.name,
                lower=group.lower,
                upper=group.upper,
                includes_upper=group is GROUPS[-1],
                priority=group.priority,
                users=self._users[place],
                user_share=self._users[place] / users,
            )
            for place, group in enumerate(GROUPS)
        ]

    def _place(self, user: str) -> None:
        """Move the user from the previous group to the group of their present accuracy."""
        before = self._places.get(user)
        if before is not None:
            self._users[before] -= 1
        usages = self._usages.before(user)
        place = _place_of(fsum(usages) / len(usages))
        self._users[place] += 1
        self._places[user] = place


def group_named(name: str) -> Group:
    """Return the group called ``name``.

    Raises:
        ValueError: there is no such group.
    """
    if name not in _PLACES:
        raise ValueError(f"default_group must be one of {', '.join(_PLACES)}, not {name!r}.")
    return GROUPS[_PLACES[name]]


def group_of(accuracy: float) -> Group:
    """Return the group of an accuracy in [0, 1]."""
    return GROUPS[_place_of(accuracy)]


def _place_of(accuracy: float) -> int:
    return bisect_right(_LOWER, accuracy) - 1


def aged_priority(initial: float, waiting_seconds: float, requested_walltime: float) -> float:
    """Return the priority of a job that has waited, in [initial, CEILING].

    Rocchetti et al., Equation 1: priority_1 = g and priority_{i+1} = g + priority_i * w_i / r,
    with g the initial priority, r the request and w_i = (i - 1) * 150 s the wait at step i. A
    wait of n whole steps is answered by priority_{n+1}. Unrolled it is g times

        1 + (n-1)s + (n-1)(n-2)s^2 + (n-1)(n-2)(n-3)s^3 + ...    with s = 150 / r

    which is summed until its terms no longer count. All terms are positive, so nothing cancels,
    and the result is closer to the truth than the recursion in floating point.

    Args:
        initial: g, greater than 0.
        waiting_seconds: a negative wait (from clocks that disagree) counts as 0.
        requested_walltime: r in seconds, greater than 0.

    Raises:
        ValueError: an argument is not such a number.
    """
    if not 0 < initial <= CEILING:
        raise ValueError(f"initial must be greater than 0 and at most {CEILING}, not {initial}.")
    if not 0 < requested_walltime < inf:
        raise ValueError(f"requested_walltime must be greater than 0, not {requested_walltime}.")
    if not isfinite(waiting_seconds):
        raise ValueError(f"waiting_seconds must be finite, not {waiting_seconds}.")
    steps = min(max(floor(waiting_seconds / STEP_SECONDS), 1), LONGEST_WAIT_STEPS)
    return aged(float(initial), steps - 1, STEP_SECONDS / requested_walltime)


def warm_up() -> None:
    """Compile ``aged``, or load it from the cache, so that no request waits for the compiler."""
    aged_priority(1.0, 0.0, 1.0)


@compiled
def aged(initial: float, steps: int, step: float) -> float:
    """Sum up initial * (1 + steps*step + steps*(steps-1)*step^2 + ...), at most CEILING.

    The terms rise while their quotient ``steps * step`` exceeds 1, then fall ever faster: the
    sum takes a number of terms that grows with the square root of ``steps`` at most. This is
    ``aged_priority`` without its checks, for loops that are compiled themselves.
    """
    total = initial
    term = initial
    while steps > 0:
        quotient = steps * step
        term *= quotient
        total += term
        if total >= CEILING:
            return CEILING
        if quotient < 1.0 and term < total * _NEGLIGIBLE:
            break
        steps -= 1
    return total
