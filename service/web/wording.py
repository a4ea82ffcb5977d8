"""Figures and times in words that people read."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from markupsafe import Markup

from terminal import words

NOTHING = "\N{EN DASH}"
"""Text in place of an unknown figure."""

duration: Callable[[float | None], str] = partial(words.duration, unknown=NOTHING)

walltime: Callable[[float | None], str] = partial(words.walltime, unknown=NOTHING)


def share(value: float | None) -> str:
    """Return a share as a percentage, with a digit more where it is small."""
    if value is None:
        return NOTHING
    percent = 100.0 * value
    return f"{percent:.1f}%" if 0.0 < percent < 10.0 else f"{percent:.0f}%"


def count(value: float | None) -> str:
    """Return a number with its thousands apart."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"


def breakable(text: str) -> Markup:
    """Return a name such as ``QOSMaxCpuPerUserLimit`` that may be broken before its capitals."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z])", text))


def moment(at: float | None, kind: str = "moment") -> str | Markup:
    """Return a time that the page's script shows in the viewer's zone; UTC without it."""
    if at is None:
        return NOTHING
    try:
        when = datetime.fromtimestamp(at, UTC)
    except (OverflowError, ValueError, OSError):  # a time of a log may be any number
        return NOTHING
    text = when.strftime("%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}" data-as="{}">{}</time>').format(
        when.strftime("%Y-%m-%dT%H:%M:%SZ"), kind, text
    )


def date(at: float) -> str:
    """Return a day in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def measured(value: float | None, unit: str) -> str | Markup:
    """Return a figure of a chart in the chart's unit."""
    if unit == "moment":
        return moment(value)
    return {"duration": duration, "share": share, "count": count}[unit](value)
