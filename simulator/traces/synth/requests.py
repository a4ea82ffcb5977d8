"""The walltimes that users request: few round values, and often the maximum.

Reference:
    D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", JSSPP 2005:
    some twenty values serve nine jobs in ten, the maximum is one of the most popular ones, and
    the share of the request that is used is spread about evenly.
"""

from bisect import bisect_left

from numpy.random import Generator

HOUR = 3600

POPULAR = (
    *(minutes * 60 for minutes in (5, 10, 15, 20, 30, 45)),
    *(round(hours * HOUR) for hours in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 24, 48)),
)
"""The twenty values in seconds; the last is the maximum."""

MAXIMUM = POPULAR[-1]

MAXIMUM_SHARE = 0.08
"""Share of requests for the maximum, made without thinking."""

ODD_SHARE = 0.08
"""Share of requests for any number of minutes."""

LEAST_USAGE, MOST_USAGE = 0.05, 1.1
"""Smallest and largest share of a request that a user's job uses; beyond 1 it is killed."""


def request(expected: float, random: Generator) -> int:
    """The request in seconds of a user for a job that is expected to run ``expected`` seconds."""
    habit = random.random()
    if habit < MAXIMUM_SHARE:
        return MAXIMUM
    wanted = expected / random.uniform(LEAST_USAGE, MOST_USAGE)
    if habit > 1.0 - ODD_SHARE:
        return min(60 * (int(wanted) // 60 + 1), MAXIMUM)
    return POPULAR[min(bisect_left(POPULAR, wanted), len(POPULAR) - 1)]
