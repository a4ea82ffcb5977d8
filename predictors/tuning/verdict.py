"""Judges a change by later runs: what it gains on them, and how much of that may be noise."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from predictors.memory.columns import Floats

BLOCKS = 10
"""The number of stretches of time into which the later runs are divided."""

_NOTHING = 1e-12


class Demand(Struct, frozen=True, kw_only=True):
    """What a gain must be to count.

    Attributes:
        least_gain: a smaller relative gain is none.
        errors: it must be more than this many standard errors.
    """

    least_gain: float = 0.002
    errors: float = 2.0


class Verdict(Struct, frozen=True, kw_only=True):
    """What a change gained on runs that it was not made on.

    Attributes:
        cases: how many runs there were.
        gain: relative, of the mean cost; negative where the change loses.
        error: the standard error of the gain; None where it cannot be known.
        wins: the gain is above what counts as one, and above its noise.
        loses: it is below zero, half as far: that is enough to take back what was adopted.
    """

    cases: int
    gain: float
    error: float | None
    wins: bool
    loses: bool


NO_CASES = Verdict(cases=0, gain=0.0, error=None, wins=False, loses=False)
"""Without later runs nothing is known."""


def compare(before: Floats, after: Floats, users: Sequence[str], demand: Demand) -> Verdict:
    """Judge a change by what each of the later runs costs without it and with it.

    Args:
        before: the costs without it, in the order in which the runs ended.
        after: those with it.
        users: whose the runs were.
        demand: what counts as a gain.
    """
    if not len(before):
        return NO_CASES
    scale = max(abs(float(before.mean())), _NOTHING)
    gains = (before - after) / scale
    return verdict_of(gains, users, demand)


def verdict_of(gains: Floats, users: Sequence[str], demand: Demand) -> Verdict:
    """Judge a change by what each of the later runs gains by it."""
    if not len(gains):
        return NO_CASES
    gain, error = float(gains.mean()), noise(gains, users)
    needed = max(demand.least_gain, demand.errors * error) if demand.errors else demand.least_gain
    return Verdict(
        cases=len(gains),
        gain=gain,
        error=error if np.isfinite(error) else None,
        wins=gain > needed,
        loses=-gain > needed / 2,
    )


def noise(gains: Floats, users: Sequence[str]) -> float:
    """The standard error of the mean of gains, none of which stands for itself alone.

    Runs of one user are alike, and a burst of a thousand identical jobs is no proof; nor are runs
    that a cluster saw on one day. So those of one user in one of BLOCKS stretches of time count as
    one observation; in another reckoning all runs of a stretch do. The larger error of the two is
    the answer.
    """
    blocks = np.arange(len(gains)) * BLOCKS // max(1, len(gains))
    _, owners = np.unique(np.array(users), return_inverse=True)
    return max(standard_error(gains, blocks), standard_error(gains, owners * BLOCKS + blocks))


def standard_error(gains: Floats, groups: NDArray[np.int64]) -> float:
    """Of the mean of gains that depend on each other within a group."""
    _, owners = np.unique(groups, return_inverse=True)
    sums = np.bincount(owners, weights=gains - gains.mean())
    if len(sums) < 2:
        return float("inf")
    return float(np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(gains))
