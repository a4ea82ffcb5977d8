"""Single values as resource managers write them: sentinels become None, units become ours.

No function here raises: a meaningless value becomes None.
"""

import re
from datetime import datetime, tzinfo
from typing import Any

LONGEST_TEXT = 255
"""Characters kept of a name; more is an accident or an attack."""

LARGEST = 1e15
"""No count, time or duration of a job is this large; Slurm's unset numbers of 64 bits are."""

MOST = 2**31
"""No machine has this many processors or nodes."""

UNSET = frozenset({0xFFFFFFFE, 0xFFFFFFFF})
"""Slurm's NO_VAL and INFINITE in 32 bits."""

MINUTE = 60.0

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_CLOCK = re.compile(r"(?:(\d{1,6})-)?(\d{1,9}(?::\d{1,9}){0,3})(?:\.\d*)?")
_MEMORY = re.compile(r"(\d{1,18}(?:\.\d+)?)\s*([kmgtpe]?)(b|w)?", re.IGNORECASE)
_WORD_BYTES = 8
_NOTHING = frozenset({"", "(null)", "N/A", "Unknown", "None", "None assigned"})


def text(value: Any) -> str | None:
    """Return a name without control characters and lone surrogates, cut to ``LONGEST_TEXT``."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or value in _NOTHING:
        return None
    clean = "".join(c if c.isprintable() else "?" for c in value[:LONGEST_TEXT])
    return clean.encode("utf-8", "replace").decode()


def number(value: Any) -> float | None:
    """Return a count or duration, or None if it is unset, infinite or negative.

    Slurm wraps numbers from 23.02 on: ``{"set": true, "infinite": false, "number": 8}``.
    """
    if isinstance(value, dict):
        is_set = value.get("set") is True and value.get("infinite") is False
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

    >>> count("8"), count(0), count(4294967294)
    (8, None, None)
    """
    found = number(value)
    return int(found) if found is not None and 1 <= found < MOST else None


def moment(value: Any, zone: tzinfo, *, fold: int = 0) -> float | None:
    """Return Unix seconds of a time in seconds, or as ``2026-11-21T04:19:08`` in ``zone``.

    Of a time that comes twice in autumn ``fold`` 0 is the first one, 1 the second.
    """
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value).replace(tzinfo=zone, fold=fold).timestamp()
        except (ValueError, OverflowError):
            return None
    found = number(value)
    return found or None


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
    if dash:
        parts += ["00"] * (3 - len(parts))
    elif len(parts) == 1:
        parts.append("00")
    seconds = clock(f"{days}{dash}{':'.join(parts)}")
    return -(-seconds // MINUTE) * MINUTE if seconds else None


def kibibytes(value: Any, *, unit: str) -> float | None:
    """Return the KiB of a size with a unit; ``unit`` is for bare numbers, and w is for words.

    >>> kibibytes("4gb", unit=""), kibibytes("1kw", unit=""), kibibytes("500", unit="m")
    (4194304.0, 8.0, 512000.0)
    """
    match = _MEMORY.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        return None
    size = _parsed(match[1]) or 0.0
    prefix = match[2].lower() or ("" if match[3] else unit)
    power = " kmgtpe".index(prefix or " ")
    bytes_ = size * 1024**power * (_WORD_BYTES if match[3] in ("w", "W") else 1)
    return bytes_ / 1024 if bytes_ else None
