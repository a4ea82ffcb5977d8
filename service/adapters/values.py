"""Single values as resource managers write them: sentinels become None, units become ours.

No function here raises: a meaningless value becomes None.
"""

import re
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from predictors.jobs import LATEST_TIME

LONGEST_TEXT = 255
"""Characters kept of a name; more is an accident or an attack."""

LARGEST = 1e15
"""No count, time or duration of a job is this large; Slurm's unset numbers of 64 bits are."""

MOST = 2**31
"""No machine has this many processors or nodes."""

UNSET = frozenset({0xFFFFFFFE, 0xFFFFFFFF, float(0xFFFFFFFFFFFFFFFF)})
"""Slurm's NO_VAL and INFINITE in 32 bits, and in 64 as floats have both."""

EPOCH_SECONDS = 2 * 86400.0
"""Seconds from 1970 on in which a date is a time of 0 that was written in some zone."""

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d*)? ?"
    r"(?:([+-]\d\d):?(\d\d)?|\[?([A-Za-z][A-Za-z_+/-]{0,40})\]?)?"
)
_UTC = frozenset({"Z", "UTC", "UT", "GMT"})
_SHORT = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([KMG])")
_MEMORY = re.compile(r"(\d{1,18}(?:\.\d+)?)\s*([kmgtpe]?)(b|w)?", re.IGNORECASE)
_WORD_BYTES = 8
_NO_TIMES = frozenset({"", "(null)", "n/a", "unknown", "none", "null", "nan", "nat", "-"})
_NOTHING = frozenset({"", "(null)", "N/A", "Unknown", "None", "None assigned"})


def text(value: Any) -> str | None:
    """Return a name without control characters and lone surrogates, cut to ``LONGEST_TEXT``."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or value in _NOTHING:
        return None
    name = value[:LONGEST_TEXT]
    if name.isprintable():
        return name
    clean = "".join(c if c.isprintable() else "?" for c in name)
    return clean.encode("utf-8", "replace").decode()


def number(value: Any) -> float | None:
    """Return a count or duration, or None if it is unset, infinite or negative.

    Slurm wraps numbers from 23.02 on: ``{"set": true, "infinite": false, "number": 8}``.
    """
    if isinstance(value, dict):
        is_set = value.get("set") is True and value.get("infinite", False) is False
        return number(value.get("number")) if is_set else None
    if isinstance(value, str):
        value = _parsed(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or value in UNSET:
        return None
    return value if 0 <= value < LARGEST else None


def _parsed(digits: str) -> float | None:
    try:
        return float(digits) if len(digits) < LONGEST_TEXT else None
    except ValueError:
        return None


def count(value: Any) -> int | None:
    """Return a whole number from 1 to below ``MOST``, else None.

    Slurm's commands write 2048 as ``2K``, and 1536 as ``1.50K``.

    >>> count("8"), count(0), count(4294967294), count("1.50K")
    (8, None, None, 1536)
    """
    short = _SHORT.fullmatch(value) if isinstance(value, str) else None
    found = float(short[1]) * 1024 ** " KMG".index(short[2]) if short else number(value)
    return int(found) if found is not None and 1 <= found < MOST else None


def moment(value: Any, zone: tzinfo, *, fold: int = 0) -> float | None:
    """Return Unix seconds of a time in seconds, or as ``2026-11-21T04:19:08`` in ``zone``.

    None is an unset time, or one of no known form. Of a time that comes twice in autumn ``fold`` 0
    is the first one, 1 the second.
    """
    dated = date_seconds(value, zone, fold=fold)
    found = number(value) if dated is None else dated
    return found if found is not None and found > EPOCH_SECONDS else None


def date_seconds(value: Any, zone: tzinfo, *, fold: int = 0) -> float | None:
    """Return Unix seconds of a date and time; None for anything else.

    A blank may stand for the T, a fraction of a second may follow, and a zone of its own: ``Z``,
    ``+0100``, ``UTC``, ``Europe/Berlin``, or an abbreviation of ``zone``, such as CEST.
    """
    match = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        return None
    day, clock_time, fraction, hours, minutes, name = match.groups()
    offset = f"{hours}:{minutes or '00'}" if hours else ""
    try:
        time = datetime.fromisoformat(f"{day}T{clock_time}{offset}")
        time = time if offset else _placed(time.replace(fold=fold), zone, name)
        return time.timestamp() + float(f"0.{fraction or 0}")
    except (ValueError, OverflowError, KeyError, OSError):  # the last two of no zone's name
        return None


def _placed(time: datetime, zone: tzinfo, name: str | None) -> datetime:
    """Return a time in a zone, or in the one that is named beside it.

    Raises:
        ValueError: no zone has that name.
        KeyError: likewise.
        OSError: likewise.
    """
    if name is None:
        return time.replace(tzinfo=zone)
    if name.upper() in _UTC:
        return time.replace(tzinfo=UTC)
    for placed in (time.replace(tzinfo=zone, fold=0), time.replace(tzinfo=zone, fold=1)):
        if placed.tzname() == name:
            return placed
    if "/" not in name:
        raise ValueError(f"{name} is no name of a zone.")
    return time.replace(tzinfo=ZoneInfo(name))


def is_word_for_nothing(value: str) -> bool:
    """Return whether a text is empty or one of the words for an unknown value."""
    return value.strip().lower() in _NO_TIMES


def is_no_time(value: Any, zone: tzinfo = UTC) -> bool:
    """Return whether a value is no time in seconds and no date, nor unset or a word for nothing.

    >>> is_no_time("yesterday"), is_no_time(1709287260000), is_no_time("Unknown"), is_no_time("0")
    (True, True, False, False)
    """
    if isinstance(value, str):
        is_known = is_word_for_nothing(value) or date_seconds(value, zone) is not None
        return not is_known and ((seconds := _parsed(value)) is None or _is_too_late(seconds))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and _is_too_late(float(min(value, LARGEST * LARGEST)))


def _is_too_late(seconds: float) -> bool:
    return seconds > LATEST_TIME and seconds not in UNSET


def kibibytes(value: Any, *, unit: str) -> float | None:
    """Return the KiB of a size with a unit; ``unit`` is for bare numbers, and w is for words.

    A manager with a unit of its own, as Slurm, also has unset numbers.

    >>> kibibytes("4gb", unit=""), kibibytes("1kw", unit=""), kibibytes("500", unit="m")
    (4194304.0, 8.0, 512000.0)
    """
    match = _MEMORY.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        return None
    size = _parsed(match[1]) or 0.0
    prefix = match[2].lower() or ("" if match[3] else unit)
    power = " kmgtpe".index(prefix or " ")
    if unit and size in UNSET:
        return None
    bytes_ = size * 1024**power * (_WORD_BYTES if match[3] in ("w", "W") else 1)
    return bytes_ / 1024 if bytes_ else None
