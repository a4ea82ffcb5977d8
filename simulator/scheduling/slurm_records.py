"""Reads the records that scontrol prints, and reservations among them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from simulator.scheduling.slurm_rules import SlurmReservation
from simulator.traces.partitions import host_names

Fields = Mapping[str, str]
"""The values of a record by their names."""


def blocks(text: str, key: str) -> Iterator[Fields]:
    """Yield the words ``name=value`` of each record that begins with a key."""
    for block in re.split(rf"^(?={key}=)", text, flags=re.MULTILINE):
        words = dict(re.findall(r"(?:^|\s)([A-Za-z:]+)=(\S*)", block))
        if key in words:
            yield words


def ranges_of(members: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the ranges of ascending numbers."""
    for _, equal in groupby(enumerate(members), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in equal]
        yield numbers[0], numbers[-1] + 1


PERIODS = {"HOURLY": 3600, "DAILY": 86400, "WEEKLY": 7 * 86400}
"""Seconds after which a reservation with a flag comes again."""

_USUAL_FLAGS = {
    *PERIODS, "ALL_NODES", "FLEX", "IGNORE_JOBS", "MAINT", "NO_HOLD_JOBS_AFTER_END", "OVERLAP",
    "PART_NODES", "SPEC_NODES", "STATIC", "USER_DELETE",
}  # fmt: skip
"""Flags that the twin models, or without effect on jobs outside of the reservation."""


def read_reservations(
    text: str, places: Mapping[str, int]
) -> tuple[tuple[SlurmReservation, ...], list[str]]:
    """Return the reservations that take nodes away, and what of them is not modelled.

    Args:
        text: what scontrol prints, with times in Unix seconds.
        places: places of the nodes in the list of nodes, by their names.
    """
    found: list[SlurmReservation] = []
    unmodelled: list[str] = []
    for words in blocks(text, "ReservationName"):
        unmodelled += _unmodelled(words)
        names = host_names(words.get("Nodes", ""))
        members = sorted(places[name] for name in names if name in places)
        if members and _is_placed(words):
            found.append(_reservation(words, members))
    return tuple(found), unmodelled


def _reservation(words: Fields, members: list[int]) -> SlurmReservation:
    flags = _flags(words)
    return SlurmReservation(
        name=words["ReservationName"],
        ranges=tuple(ranges_of(members)),
        begin=int(words["StartTime"]),
        end=int(words["EndTime"]),
        period=next((PERIODS[flag] for flag in PERIODS if flag in flags), 0),
        all_nodes="ALL_NODES" in flags,
        partition=words.get("PartitionName", "") if "PART_NODES" in flags else "",
        maintenance="MAINT" in flags,
    )


def _flags(words: Fields) -> set[str]:
    flags = (flag.partition("=")[0] for flag in words.get("Flags", "").split(","))
    return {flag for flag in flags if flag}


def _has_dates(words: Fields) -> bool:
    return words.get("StartTime", "").isdecimal() and words.get("EndTime", "").isdecimal()


def _is_placed(words: Fields) -> bool:
    """Return whether it is known which whole nodes a reservation has, and when."""
    return _has_dates(words) and "CoreIDs" not in words and "TIME_FLOAT" not in _flags(words)


def _unmodelled(words: Fields) -> Iterator[str]:
    """Yield what of a reservation would change a schedule and is not modelled."""
    name, flags = words["ReservationName"], _flags(words)
    if not _has_dates(words):
        yield f"reservation {name}, whose times are not Unix seconds (SLURM_TIME_FORMAT=%s)"
        return
    if "CoreIDs" in words:
        yield f"reservation {name} of cores"
    elif "MAINT" not in flags:
        yield f"jobs in reservation {name}"
    for flag in sorted(flags - _USUAL_FLAGS):
        yield f"{flag} of reservation {name}"
