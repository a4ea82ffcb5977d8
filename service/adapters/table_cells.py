"""Read cells of tables by the kind of their field, in a named form or in one that is certain."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

import msgspec

from predictors.facts import MOST_FEATURES
from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError
from service.adapters.slurm_fields import status_of
from service.adapters.submission_facts import line
from service.adapters.values import (
    EPOCH_SECONDS,
    LARGEST,
    MOST,
    UNSET,
    count,
    date_seconds,
    is_word_for_nothing,
    kibibytes,
    number,
    text,
)


class CellError(ValueError):
    """A cell has no value of its field's kind; the message says which values have."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of the cells of a column.

    Attributes:
        name: unit, or pattern of ``strptime``; None where it is not named.
        zone: of times without one.
    """

    name: str | None = None
    zone: tzinfo = UTC


TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
DURATION_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
SIZE_UNITS = ("b", "kb", "mb", "gb", "tb")

_EARLIEST, _LATEST = 315_532_800, 4_102_444_800
"""Unix seconds of 1980 and of 2100, between which a number of unnamed unit is a time."""

_PATTERNS = (
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y%m%dT%H%M%S",
    "%Y%m%dT%H%M%SZ",
    "%a %b %d %H:%M:%S %Y",
    "%b %d %H:%M:%S %Y",
    "%b %d %H:%M %Y",
    "%d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%d-%b-%Y %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S %z",
)
"""Patterns in which day and month cannot be confused."""

_DIGITS = re.compile(r"\d{1,20}(?:\.\d{1,20})?")  # of nanoseconds, too
_CLOCK = re.compile(
    r"(?:(\d{1,6})(?:[-+]| ?days?,? ))?(\d{1,7}):([0-5]?\d):([0-5]?\d(?:\.\d{1,9})?)"
)
_SPANS = re.compile(
    r"(?=.*\d)P?(?:(\d{1,6})d(?:ays?)?)?T?(?:(\d{1,7})h(?:ours?)?)?"
    r"(?:(\d{1,9})m(?:in(?:utes?)?)?)?(?:(\d{1,9})s(?:ec(?:onds?)?)?)?",
    re.IGNORECASE,
)
_LIMIT_OF_GRID_ENGINE = re.compile(r"(?:^|[ ,])(?:h_rt|s_rt)=([\d:]+)")
_NEGATIVE = re.compile(r"-\d[\d.]*")
_NO_LIMITS = frozenset({"unlimited", "infinity", "infinite", "partition_limit", "invalid"})
_ENDS = {
    "done": Status.COMPLETED,
    "success": Status.COMPLETED,
    "succeeded": Status.COMPLETED,
    "pass": Status.COMPLETED,
    "exit": Status.FAILED,
    "error": Status.FAILED,
    "killed": Status.CANCELLED,
    "removed": Status.CANCELLED,
}
"""Words of LSF, HTCondor and research traces, beside those of Slurm and of the API."""

_UNFINISHED = frozenset(
    {"pend", "psusp", "run", "ususp", "ssusp", "wait", "waiting", "idle", "queued", "submitted"}
)


def time_in(cell: str, form: Form) -> float | None:
    """Return Unix seconds; None for a word that stands for no time, and for 0.

    Raises:
        CellError: the form is not named, and the time could be read in several ways.
    """
    if _is_nothing(cell):
        return None
    digits = float(cell) if _DIGITS.fullmatch(cell) else None
    if form.name in TIME_UNITS and digits is not None:
        return digits * TIME_UNITS[form.name] or None
    if form.name and form.name not in TIME_UNITS:
        return _by_pattern(cell, form.name, form.zone)
    if digits is not None:
        return _of_some_unit(digits)
    found = date_seconds(cell, form.zone)
    found = _by_patterns(" ".join(cell.split()), form.zone) if found is None else found
    if found is None:
        raise CellError(
            "which is no certain time: name its form, such as :%d/%m/%Y %H:%M:%S, or :ms"
        )
    return found if found > EPOCH_SECONDS else None


def _of_some_unit(digits: float) -> float | None:
    """Return Unix seconds of a number whose size tells its unit; None for 0."""
    if digits == 0:
        return None
    for unit in TIME_UNITS.values():
        if _EARLIEST <= digits * unit <= _LATEST:
            return digits * unit
    raise CellError("which is no time from 1980 to 2100 in s, ms, us or ns: name the unit, as :s")


def _by_patterns(cell: str, zone: tzinfo) -> float | None:
    for pattern in _PATTERNS:
        try:
            return _by_pattern(cell, pattern, UTC if pattern.endswith("Z") else zone)
        except CellError:
            continue
    return None


def _by_pattern(cell: str, pattern: str, zone: tzinfo) -> float:
    try:
        time = datetime.strptime(cell, pattern)  # noqa: DTZ007 - the zone follows
        return (time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError, re.error) as error:  # re.error: %d twice
        raise CellError(f"which is not of the form {pattern}") from error


def duration_in(cell: str, form: Form) -> float | None:
    """Return seconds; None for a word that stands for no limit.

    Raises:
        CellError: it is no duration, or hours and minutes could be minutes and seconds.
    """
    if _is_nothing(cell) or cell.lower() in _NO_LIMITS or _NEGATIVE.fullmatch(cell):
        return None
    if number(cell) is not None:
        return _digits(cell) * DURATION_UNITS[form.name or "s"]
    if (clock := _CLOCK.fullmatch(cell)) or (clock := _SPANS.fullmatch(cell.replace(" ", ""))):
        sizes = (86400, 3600, 60, 1)
        return sum(
            float(part or 0) * size for part, size in zip(clock.groups(), sizes, strict=True)
        )
    if limit := _LIMIT_OF_GRID_ENGINE.search(cell):
        return duration_in(limit[1], Form("s"))
    if cell.startswith("-") or " -" in cell:
        return None  # the options of a submission, none of which is a limit
    raise CellError("which is no duration such as 90 (in the named unit), 1-12:00:00 or 1h30m")


def count_in(cell: str, _form: Form) -> int | None:
    """Return a number of processors or nodes; None for none."""
    digits = None if _is_nothing(cell) else _digits(cell)
    if digits and not (digits.is_integer() and digits < MOST):
        raise CellError(f"which is no whole number below {MOST:,}")
    return count(digits)


def size_in(cell: str, form: Form) -> float | None:
    """Return KiB.

    Raises:
        CellError: it is no size, or a number without a unit.
    """
    if _is_nothing(cell) or number(cell) == 0 or _NEGATIVE.fullmatch(cell):
        return None
    named = f"{cell}{form.name or ''}" if number(cell) is not None else cell
    size = kibibytes(re.sub(r"(?i)(?<=[kmgt])i?b?$", "b", named), unit="")
    if size is None or (number(cell) is not None and form.name is None):
        raise CellError("which is no size with a unit: name the unit, such as :mb")
    return size


def status_in(cell: str, _form: Form) -> Status:
    """Return the end of a run.

    Raises:
        SkippedError: the run has not ended, or the state is not known.
    """
    word = cell.strip()
    if is_word_for_nothing(word):
        return Status.UNKNOWN
    if word.lower() in _UNFINISHED:
        raise SkippedError(Reason.NOT_ENDED)
    known = _ENDS.get(word.lower())
    return known or (Status(word.lower()) if word.lower() in {*Status} else status_of(word.upper()))


def exit_code_in(cell: str, _form: Form) -> Status | None:
    """Return the end of a run by its exit code, such as ``0`` or ``0:0``."""
    if _is_nothing(cell):
        return None
    code = cell.partition(":")[0]
    return Status.COMPLETED if _digits(code.lstrip("-")) == 0 else Status.FAILED


def truth_in(cell: str, _form: Form) -> bool:
    """Return whether a cell says yes."""
    if is_word_for_nothing(cell) or cell.lower() in {"0", "no", "false", "n", "f"}:
        return False
    if cell.lower() in {"1", "yes", "true", "y", "t"}:
        return True
    raise CellError("which is neither 1 nor 0")


def text_in(cell: str, _form: Form) -> str | None:
    """Return a name; None for a word that stands for none."""
    return text(cell)


def line_in(cell: str, _form: Form) -> str | None:
    """Return a path or command line; None for a word that stands for none."""
    return line(cell)


def feature_in(cell: str, _form: Form) -> float | str | None:
    """Return a number, or a word; None for a word that stands for none."""
    with suppress(ValueError):
        if abs(found := float(cell)) <= LARGEST:
            return found
    return text(cell)


def features_in(cell: str, _form: Form) -> dict[str, float | str]:
    """Return features by name, as ``walltimed export`` writes them.

    Raises:
        CellError: it is no such JSON object.
    """
    if is_word_for_nothing(cell):
        return {}
    try:
        found = msgspec.json.decode(cell, type=dict[str, float | str])
    except msgspec.MsgspecError as error:
        raise CellError("which is no JSON object of numbers and words") from error
    numbers = (value for value in found.values() if isinstance(value, float))
    if len(found) > MOST_FEATURES or not all(abs(each) <= LARGEST for each in numbers):
        raise CellError(f"which has more than {MOST_FEATURES} features, or a number over 1e15")
    return found


def _is_nothing(cell: str) -> bool:
    """Return whether a cell is a word for nothing, or a number that Slurm has for it."""
    return is_word_for_nothing(cell) or bool(_DIGITS.fullmatch(cell) and float(cell) in UNSET)


def _digits(cell: str) -> float:
    if _NEGATIVE.fullmatch(cell):
        return 0.0
    digits = number(cell)
    if digits is None:
        raise CellError("which is no number")
    return float(digits)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fields.

    Attributes:
        read: returns the value of a cell.
        units: forms that a column can be named with; times take patterns beside them.
    """

    read: Callable[[str, Form], Any]
    units: tuple[str, ...] = ()


_TEXT, _TIME = Kind(text_in), Kind(time_in, (*TIME_UNITS,))
_DURATION, _COUNT = Kind(duration_in, (*DURATION_UNITS,)), Kind(count_in)
_SIZE = Kind(size_in, SIZE_UNITS)

FIELDS: Mapping[str, Kind] = {
    "job_id": _TEXT,
    "user": _TEXT,
    "group": _TEXT,
    "project": _TEXT,
    "queue": _TEXT,
    "application": _TEXT,
    "cluster": _TEXT,
    "submit_time": _TIME,
    "eligible_time": _TIME,
    "start_time": _TIME,
    "end_time": _TIME,
    "wait": _DURATION,
    "runtime": _DURATION,
    "requested_walltime": _DURATION,
    "cpu_time": _DURATION,
    "requested_processors": _COUNT,
    "nodes": _COUNT,
    "requested_memory": _SIZE,
    "memory": _SIZE,
    "status": Kind(status_in),
    "exit_code": Kind(exit_code_in),
    "interactive": Kind(truth_in),
    "work_dir": Kind(line_in),
    "script_hash": _TEXT,
    "submit_line": Kind(line_in),
    "qos": _TEXT,
    "gpus": _COUNT,
    "gpu_type": _TEXT,
    "array_size": _COUNT,
    "constraint": Kind(line_in),
    "dependency": Kind(line_in),
    "submit_host": _TEXT,
    "features": Kind(features_in),
}
"""Fields of a run that a table can have. ``requested_memory`` is of a processor, ``memory`` of a
job."""

FEATURE = "feature_"
"""Beginning of a field that is a number or word of the site's own."""


def kind_of(field: str) -> Kind | None:
    """Return the kind of a field; None if there is no such field."""
    name = field.removeprefix(FEATURE)
    return Kind(feature_in) if name and name != field else FIELDS.get(field)


OTHER_NAMES: Mapping[str, str] = {
    "job": "job_id",
    "id": "job_id",
    "account": "project",
    "partition": "queue",
    "name": "application",
    "job_name": "application",
    "submit": "submit_time",
    "eligible": "eligible_time",
    "start": "start_time",
    "end": "end_time",
    "elapsed": "runtime",
    "limit": "requested_walltime",
    "timelimit": "requested_walltime",
    "walltime": "requested_walltime",
    "requested": "requested_walltime",
    "cores": "requested_processors",
    "cpus": "requested_processors",
    "processors": "requested_processors",
    "state": "status",
    "exit_status": "exit_code",
    "workdir": "work_dir",
    "submitline": "submit_line",
    "ngpus": "gpus",
    "constraints": "constraint",
}
"""Shorter names, and those of resource managers."""
