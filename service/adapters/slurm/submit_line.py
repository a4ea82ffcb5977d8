"""The time limit as the user asked for it, from the command line that submitted the job."""

import re
from collections.abc import Iterator
from typing import Any

from service.adapters.slurm.slurm_fields import MINUTE
from service.adapters.values import clock

_LIMITLESS = frozenset({"UNLIMITED", "INFINITE", "0", "-1"})

_SWITCH = re.compile(
    r"-[HWQvsOkIXZlu]"
    r"|--(?:hold|wait|quiet|verbose|oversubscribe|share|overcommit|unbuffered|parsable|requeue)"
    r"|--(?:no-requeue|no-kill|contiguous|test-only|spread-job|use-min-nodes|reboot|ignore-pbs)"
    r"|--(?:exclusive|pty|label|no-allocate|disable-status|multi-prog|no-shell|bell|no-bell)"
    r"|--(?:stepmgr|nice|get-user-env|propagate)"
)
"""Options that take no value, or only one behind ``=``."""


def requested_limit(*, submit_line: Any, final: float | None) -> float | None:
    """Seconds that the user asked for: from the command line if it says so, else the final limit.

    The limit a job ends with may have been extended, or lowered by the backfill scheduler.
    """
    typed = request_of(submit_line)
    if typed is None:
        return final
    if typed.upper() in _LIMITLESS:
        return None
    return limit_of(typed) or final


def request_of(submit_line: Any) -> str | None:
    """The limit on the command line that submitted the job, as typed.

    The line has lost its quotes, so it is read only as far as it is certain: up to the first
    word that is neither an option nor the value of one. A limit given as ``#SBATCH`` or in the
    environment is not there at all.
    """
    if not isinstance(submit_line, str):
        return None
    for option, value in _options(submit_line.split()[1:]):
        if option in ("-t", "--time"):
            return value
    return None


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word in ("-", "--", "--wrap"):
            return
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            yield name, value if equals or _SWITCH.fullmatch(name) else next(rest, "")
        elif len(word) > 2:
            yield word[:2], word[2:]
        else:
            yield word, "" if _SWITCH.fullmatch(word) else next(rest, "")


def limit_of(written: str) -> float | None:
    """Seconds of a limit as people type it, rounded up to minutes as Slurm does; None is none.

    Forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
    days-hours:minutes:seconds.
    """
    days, dash, rest = written.rpartition("-")
    parts = rest.split(":")
    if dash:
        parts += ["00"] * (3 - len(parts))
    elif len(parts) == 1:
        parts.append("00")
    seconds = clock(f"{days}{dash}{':'.join(parts)}")
    return -(-seconds // MINUTE) * MINUTE if seconds else None
