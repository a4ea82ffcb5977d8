"""Times and durations as people read them, in the zone of whoever reads."""

from datetime import datetime, timedelta

from simulator.cli.console import CommandError, ExitCode

DAY = 86400.0


def moment(seconds: float | None, now: float) -> str:
    """A time as shortly as is clear: ``21:30``, ``Tue 14:00``, ``03 Dec 14:00``."""
    if seconds is None:
        return "-"
    then, today = datetime.fromtimestamp(seconds).astimezone(), local(now)
    if then.date() == today.date():
        return f"{then:%H:%M}"
    if abs((then.date() - today.date()).days) < 7:
        return f"{then:%a %H:%M}"
    return f"{then:%d %b}" if then.year == today.year else f"{then:%Y-%m-%d}"


def spoken(seconds: float, now: float) -> str:
    """A time as people say it: ``today at 21:30``, ``tomorrow at 14:00``."""
    then, today = datetime.fromtimestamp(seconds).astimezone(), local(now)
    if seconds <= now + 60:
        return "now"
    if then.date() == today.date():
        return f"today at {then:%H:%M}"
    if then.date() == (today + timedelta(days=1)).date():
        return f"tomorrow at {then:%H:%M}"
    if (then.date() - today.date()).days < 7:
        return f"{then:%A} at {then:%H:%M}"
    return f"{then:%d %B} at {then:%H:%M}"


def local(seconds: float) -> datetime:
    """The time in this machine's zone."""
    return datetime.fromtimestamp(seconds).astimezone()


def limit(seconds: float | None) -> str:
    """A walltime as resource managers write it: ``6:00:00``, ``2-00:00:00``."""
    if seconds is None:
        return "-"
    days, rest = divmod(round(seconds), 86400)
    hours, minutes = rest // 3600, rest % 3600 // 60
    clock = f"{hours}:{minutes:02}:{rest % 60:02}"
    return f"{days}-{hours:02}:{minutes:02}:{rest % 60:02}" if days else clock


def period_of(written: str) -> float:
    """Return the seconds of a period such as ``30d``, ``12h`` or ``2w``.

    Raises:
        CommandError: it is no period.
    """
    units = {"h": 3600.0, "d": DAY, "w": 7 * DAY}
    number, unit = written[:-1], written[-1:]
    if unit not in units or not number.isdecimal() or not int(number):
        message = f"{written!r} is no period such as 30d, 12h or 2w."
        raise CommandError(message, ExitCode.USAGE)
    return int(number) * units[unit]
