"""The order ``sjf-aging`` of a queue, the shortest first with a bound on precedence; site factors.

The simulator's policies, Slurm's site factors and the formula for PBS all take the order from here.
"""

from math import log10

LENGTH_FACTOR = 4

MOST_PRECEDENCE = 24 * 3600
"""A job stands behind jobs submitted up to this many seconds later; and at most ``LENGTH_FACTOR``
times its own length later."""


FULL_PRIORITY = 1e6
"""Priority by accuracy and aging from which on a site factor is the largest."""

SITE_FACTOR_STEPS = 100
"""Number of levels of site factors; with more, nearly equal jobs would be updated for ever."""


def aged_length(
    submit: int, length: int, factor: int = LENGTH_FACTOR, most: int = MOST_PRECEDENCE
) -> int:
    """Return the key of a job, which does not change while it waits; the least is first.

    Every waiting job ages alike, so age less length is an order that never changes.
    """
    return submit + min(factor * length, most)


def largest_site_factor(age_weight: int, longest_age: float) -> int:
    """Return what waiting for ``MOST_PRECEDENCE`` seconds adds to a priority of Slurm.

    Args:
        age_weight: PriorityWeightAge.
        longest_age: PriorityMaxAge in seconds.
    """
    return int(age_weight * MOST_PRECEDENCE // longest_age)


def site_factor(
    length: int, largest: int, factor: int = LENGTH_FACTOR, most: int = MOST_PRECEDENCE
) -> int:
    """Return the SiteFactor of a job under Slurm's priority/multifactor.

    Where ``largest`` is what waiting for ``most`` seconds adds to a priority, and no other factor
    counts, the order is that of ``aged_length``.
    """
    return largest * (most - min(factor * length, most)) // most


def accuracy_factor(priority: float, largest: int) -> int:
    """Return the SiteFactor of a job by its priority of ``predictors.accuracy_groups``."""
    share = min(1.0, log10(max(1.0, priority)) / log10(FULL_PRIORITY))
    return largest * int(share * SITE_FACTOR_STEPS) // SITE_FACTOR_STEPS
