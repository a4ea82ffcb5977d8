"""Durations, times, shares and counts as people and resource managers write them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import inf
from statistics import median_high
from typing import Any, NamedTuple

LONGEST_NAME = 256
"""Most characters of the name of a cluster, a user or a job."""

PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
"""Pattern of names: no control characters and no separators of lines."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

_CLOCK = re.compile(r"(?:(\d{1,6})-)?(\d{1,9}(?::\d{1,9}){0,3})(?:\.\d*)?")

SHORTEST = 0.0005
"""Seconds; a shorter duration is no time in words."""


def duration(seconds: float | None, *, beside: float | None = None, unknown: str = "-") -> str:
    """Return a duration such as ``0.3 s``, ``40 s``, ``12 min``, ``3.4 h`` or ``2.1 days``.

    Reports, pages and commands all use this function.

    Args:
        seconds: may be negative.
        beside: seconds of another duration, in whose unit this one is written: ``<1 min`` where it
            would be rounded to nothing.
        unknown: returned for None.
    """
    if seconds is None:
        return unknown
    unit = _UNITS[_unit_of(seconds if beside is None else beside)]
    text = unit.say(seconds)
    is_nothing = not any(digit in "123456789" for digit in text)
    if is_nothing:
        return f"<{unit.least}" if seconds >= SHORTEST else text.removeprefix("-")
    return text


def usual(durations: Iterable[float | None]) -> float | None:
    """Return the median of those that are known and not 0, in whose unit a column is written."""
    known = [each for each in durations if each]
    return median_high(known) if known else None


def walltime(seconds: float | None, *, unknown: str = "-") -> str:
    """Return a walltime as Slurm writes it, such as ``6:00:00`` or ``2-00:00:00``."""
    if seconds is None:
        return unknown
    days, rest = divmod(round(seconds), 86400)
    minutes, second = divmod(rest, 60)
    hours, minute = divmod(minutes, 60)
    clock = f"{hours}:{minute:02}:{second:02}"
    return f"{days}-{clock:0>8}" if days else clock


def clock(value: Any) -> float | None:
    """Return the seconds of ``[days-]hours:minutes:seconds``; leading parts may be missing.

    >>> clock("00:01:30"), clock("1-00:00:00"), clock("45"), clock("soon")
    (90.0, 86400.0, 45.0, None)
    """
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if not match:
        return None
    parts = [*map(int, match[2].split(":"))]
    sizes = (1, 60, 3600, 86400)
    seconds = sum(part * size for part, size in zip(reversed(parts), sizes, strict=False))
    return float(seconds + int(match[1] or 0) * 86400)


def slurm_walltime(written: str) -> float | None:
    """Return the seconds of a walltime as Slurm reads it, rounded up to whole minutes.

    Forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
    days-hours:minutes:seconds. None is no walltime, or 0.

    >>> slurm_walltime("90"), slurm_walltime("1:30:01"), slurm_walltime("1-12")
    (5400.0, 5460.0, 129600.0)
    """
    days, dash, rest = written.rpartition("-")
    parts = rest.split(":")
    if len(parts) > 3:
        return None
    if dash:
        parts += ["00"] * (3 - len(parts))
    elif len(parts) == 1:
        parts.append("00")
    seconds = clock(f"{days}{dash}{':'.join(parts)}")
    return -(-seconds // MINUTE) * MINUTE if seconds else None


def in_words(content: Any) -> str:
    """Return parameters, a price or a method on one line."""
    if content is None:
        return "-"
    if isinstance(content, dict):
        return ", ".join(f"{name} {in_words(value)}" for name, value in content.items())
    if isinstance(content, float):
        return f"{content:.3g}"
    if isinstance(content, list | tuple):
        return "+".join(map(str, content)) or "none"
    return str(content)


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Two durations in the unit of the first, or in the next smaller one that tells them apart.

    If none does, they are alike.
    """
    usual = _unit_of(one)
    for unit in reversed(_UNITS[: usual + 1]):
        if unit.say(one) != unit.say(other):
            return unit.say(one), unit.say(other)
    return _UNITS[usual].say(one), _UNITS[usual].say(other)


class _Unit(NamedTuple):
    """Unit of durations below ``end`` seconds, and the shortest that it has words for."""

    end: float
    seconds: float
    words: str
    least: str

    def say(self, seconds: float) -> str:
        if self.seconds == 1.0 and SHORTEST <= abs(seconds) < 0.95:
            return f"{seconds:.1g} s"
        return self.words.format(seconds / self.seconds)


# Rounded at these ends, no duration reads longer than a longer one: 98.3 h, 4.1 days.
_UNITS = (
    _Unit(59.5, 1.0, "{:,.0f} s", "1 s"),
    _Unit(89.5 * MINUTE, MINUTE, "{:,.0f} min", "1 min"),
    _Unit(98.35 * HOUR, HOUR, "{:,.1f} h", "0.1 h"),
    _Unit(inf, DAY, "{:,.1f} days", "0.1 days"),
)


def _unit_of(seconds: float) -> int:
    return next(place for place, unit in enumerate(_UNITS) if abs(seconds) < unit.end)


def share(part: float) -> str:
    """Such as ``12%``, with one decimal below 10%."""
    return f"{part:.0%}" if abs(part) >= 0.0995 or part == 0 else f"{part:.1%}"


def change(part: float) -> str:
    """A change with its sign, such as ``+3%`` or ``0%``.

    A change that would be rounded to nothing has one decimal, so that its direction is seen.
    """
    places = 1 if abs(part) < 0.005 else 0
    text = f"{100 * part:+.{places}f}%".replace("-", "\u2212")
    return text if any(digit in "123456789" for digit in text) else "0%"


def changes(low: float, high: float, *, to: str = " to ") -> str:
    """The range of a change, such as ``-12 to +3%``; one change where both ends are said alike.

    Args:
        to: what stands between them.
    """
    if change(low) == change(high):
        return change(low)
    return f"{change(low).removesuffix('%')}{to}{change(high)}"


def less_or_more(gained: float) -> str:
    """Such as ``12% less than``, ``6.1% more than`` or ``as much as``."""
    if abs(gained) < 0.0005:
        return "as much as"
    return f"{share(gained)} less than" if gained > 0 else f"{share(-gained)} more than"


def one_in(part: float) -> str:
    """A share as one of how many, where this is clearer than a percentage and says the same.

    Two in five are neither one in two nor one in three.
    """
    return f"one job in {1 / part:,.0f}" if 0 < part <= 0.35 else f"{share(part)} of the jobs"


def big(number: float) -> str:
    """A count in thousands or millions, such as ``41,300`` or ``2.41 million``."""
    if abs(number) >= 999_500:
        return f"{number / 1e6:,.2f} million"
    if abs(number) < 100:
        return f"{number:,.1f}"
    return f"{number:,.0f}" if abs(number) < 10_000 else f"{round(number, -2):,.0f}"


def counted(number: int, thing: str) -> str:
    """Such as ``1 job`` or ``2,400 jobs``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """Such as ``a, b and c``; empty without parts."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def moment(seconds: float | None, now: float) -> str:
    """Return a time as short text: ``21:30``, ``Tue 14:00``, ``03 Dec``, ``2027-01-03``."""
    if seconds is None:
        return "-"
    then, today = local(seconds), local(now)
    if then.date() == today.date():
        return f"{then:%H:%M}"
    if abs((then.date() - today.date()).days) < 7:
        return f"{then:%a %H:%M}"
    return f"{then:%d %b}" if then.year == today.year else f"{then:%Y-%m-%d}"


def moment_within(seconds: float | None, interval: Mapping[str, float] | None, now: float) -> str:
    """Return a time with its interval, such as ``14:00 (80%: 13:20 to 16:10)``."""
    if interval is None:
        return moment(seconds, now)
    share = round(100 * interval["coverage"])
    bounds = f"{moment(interval['lower'], now)} to {moment(interval['upper'], now)}"
    return f"{moment(seconds, now)} ({share}%: {bounds})"


def local(seconds: float) -> datetime:
    """Return a time in the zone of this machine."""
    return datetime.fromtimestamp(seconds).astimezone()
