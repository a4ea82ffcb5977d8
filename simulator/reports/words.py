"""Durations, shares and counts as people say them."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def duration(seconds: float, *, beside: float | None = None) -> str:
    """Such as ``40 s``, ``12 min``, ``3.4 h`` or ``2.1 days``.

    Whoever compares it with the seconds ``beside`` it finds both in the same unit.
    """
    size = abs(seconds if beside is None else beside)
    if size < 59.5:
        return f"{seconds:.0f} s"
    if size < 89.5 * MINUTE:
        return f"{seconds / MINUTE:.0f} min"
    if size < 99.5 * HOUR:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:,.1f} days"


def share(part: float) -> str:
    """Such as ``12%``, with one decimal below 10%."""
    return f"{part:.0%}" if abs(part) >= 0.0995 or part == 0 else f"{part:.1%}"


def less_or_more(gained: float) -> str:
    """Such as ``12% less than``, ``6.1% more than`` or ``as much as``."""
    if abs(gained) < 0.0005:
        return "as much as"
    return f"{share(gained)} less than" if gained > 0 else f"{share(-gained)} more than"


def one_in(part: float) -> str:
    """A share as one of how many, where this is clearer than a percentage."""
    return f"one job in {1 / part:.0f}" if 0 < part <= 0.5 else f"{share(part)} of the jobs"


def big(number: float) -> str:
    """A count in thousands or millions, such as ``41,300`` or ``2.41 million``."""
    if abs(number) >= 999_500:
        return f"{number / 1e6:,.2f} million"
    if abs(number) < 100:
        return f"{number:,.1f}"
    return f"{number:,.0f}" if abs(number) < 10_000 else f"{round(number, -2):,.0f}"
