"""The order ``response-ratio`` of a queue: the wait in proportion to the length.

The key is that of highest response ratio next (P. Brinch Hansen, 1971), with a constant in place of
the length in the numerator, and lengths held between two bounds. Every job comes first some day, at
any load. The simulator's policies, Slurm's site factors and the formula for PBS all take the order
from here.
"""

from math import log

OFFSET = 4 * 3600
"""Seconds that are added to each wait: the shorter of two new jobs is first."""

SHORTEST, LONGEST = 600, 12 * 3600
"""Seconds; shorter jobs count as the first, longer ones as the second."""

OVERDUE_SHARE = 0.75
"""A job that has waited for this share of the longest wait of the last quarter goes first."""

QUARTER = 91 * 86400
"""Seconds that longest waits are remembered."""

FEWEST_SECONDS = 14 * 86400
"""Time after which a queue knows how long its longest waits are."""

GROWTH = 1.05
"""Ratio of two successive steps: a site factor is renewed when its job's ratio grew by that."""

MOST_STEPS = 200
"""Steps up to the largest site factor: a job of 10 minutes that has waited for six weeks."""

USUAL_SITE_FACTOR = 10_000
"""The largest site factor where there are no other weights; so a step is 50."""


def response_ratio(
    wait: int, length: int, offset: int = OFFSET, shortest: int = SHORTEST, longest: int = LONGEST
) -> float:
    """Return the key of a job that has waited for some seconds; the greatest is first."""
    return (wait + offset) / min(longest, max(shortest, length))


def steps_of_ratio(ratio: float, lowest: float) -> int:
    """Return the number of steps from the lowest ratio, which is that of a long new job."""
    return min(MOST_STEPS, int(log(max(1.0, ratio / lowest)) / log(GROWTH) + 1e-9))


def steps_of_overdue(wait: int) -> int:
    """Return the number of steps of an overdue job, which grows with its wait."""
    return MOST_STEPS + 1 + int(log(1.0 + wait / 3600.0) / log(GROWTH))


def largest_ratio_factor(age_weight: int, other_weights: int) -> int:
    """Return the largest site factor: the sum of other weights; without, a step outweighs ages."""
    return other_weights or max(USUAL_SITE_FACTOR, MOST_STEPS * age_weight)


def factor_of_steps(steps: int, largest: int) -> int:
    """Return the SiteFactor of a number of steps; that of MOST_STEPS is ``largest``."""
    return largest * steps // MOST_STEPS
