"""Suggests a request: long enough for most runs, and of a length that people write."""

from collections.abc import Sequence
from math import ceil

MINUTE, HOUR = 60.0, 3600.0

STEPS = ((HOUR, 5 * MINUTE), (6 * HOUR, 15 * MINUTE), (24 * HOUR, HOUR), (float("inf"), 6 * HOUR))
"""Requests up to the first are rounded up to a multiple of the second, in seconds."""


def suggested_request(
    levels: Sequence[float], runtimes: Sequence[float] | None, share: float, request: float
) -> float | None:
    """Return the shortest usual request that holds ``share`` of the runs, in seconds.

    Return None if no runtimes are known, or if it would not be shorter than ``request``.

    Args:
        levels: shares of the runs, ascending.
        runtimes: seconds that these shares of the runs do not exceed.
        share: share of the runs that the request should hold.
        request: present request, in seconds.
    """
    if runtimes is None:
        return None
    enough = next(
        (seconds for level, seconds in zip(levels, runtimes, strict=True) if level >= share), None
    )
    if enough is None:
        return None
    wanted = rounded_up(enough)
    return wanted if wanted < request else None


def rounded_up(seconds: float) -> float:
    """Return the next full step of ``STEPS``, in seconds."""
    step = next(step for most, step in STEPS if seconds <= most)
    return max(1, ceil(seconds / step)) * step
