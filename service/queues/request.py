"""A request that would do: long enough for most runs, and a length that people write."""

from collections.abc import Sequence
from math import ceil

MINUTE, HOUR = 60.0, 3600.0

STEPS = ((HOUR, 5 * MINUTE), (6 * HOUR, 15 * MINUTE), (24 * HOUR, HOUR), (float("inf"), 6 * HOUR))
"""Requests up to the first are rounded up to a multiple of the second, in seconds."""


def suggested_request(
    levels: Sequence[float], runtimes: Sequence[float] | None, share: float, request: float
) -> float | None:
    """The shortest usual request that holds ``share`` of the runs, in seconds.

    None where nothing is known of the runs, or where it would not be shorter than ``request``.

    Args:
        levels: shares of the runs, ascending.
        runtimes: what these shares of the runs do not exceed.
        share: that should be held.
        request: as it is now.
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
    """The next length that people write: full minutes, quarters of an hour, hours."""
    step = next(step for most, step in STEPS if seconds <= most)
    return max(1, ceil(seconds / step)) * step
