"""Times as text, in the time zone of the user."""

from collections.abc import Mapping
from datetime import datetime

from terminal.console import CommandError, ExitCode
from terminal.words import DAY


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


def period_of(written: str) -> float:
    """Return the seconds of a period such as ``30d``, ``12h`` or ``2w``.

    >>> period_of("12h"), period_of("2w")
    (43200.0, 1209600.0)

    Raises:
        CommandError: it is no period.
    """
    units = {"h": 3600.0, "d": DAY, "w": 7 * DAY}
    number, unit = written[:-1], written[-1:]
    if unit not in units or not number.isdecimal() or not int(number):
        message = f"{written!r} is no period such as 30d, 12h or 2w."
        raise CommandError(message, ExitCode.USAGE)
    return int(number) * units[unit]
