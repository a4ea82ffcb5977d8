"""Errors of the told starts of a play's waiting jobs: Slurm's own and walltimed's."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

MINUTE, HOUR = 60.0, 3600.0

NEAR = 10 * MINUTE
"""Error within which a told start is near the truth, in seconds."""

HEADS = (
    "                                 jobs   told  median    mean    bias  ≤10 min  interval"
    "  before  after   width"
)


class ToldStart(NamedTuple):
    """The starts of one waiting job as they were told at one time; seconds of the play.

    Attributes:
        at: time of the question.
        start: true one.
        slurm: start that Slurm plans; None where it has none.
        ours: start by walltimed; None where it has none.
        lower, upper: interval of that start; None without one.
        is_first: whether the job was asked about for the first time, within an hour of its
            submission.
    """

    job: int
    at: float
    submit: float
    start: float
    slurm: float | None
    ours: float | None
    lower: float | None
    upper: float | None
    is_first: bool

    @property
    def to_come(self) -> float:
        """Return the seconds that the job still waited."""
        return self.start - self.at


def write_told(file: Path, told: Iterable[ToldStart]) -> None:
    """Write told starts as CSV."""
    with file.open("w", encoding="ascii", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(ToldStart._fields)
        writer.writerows(told)


Choice = Callable[[ToldStart], bool]

PARTS: dict[str, Choice] = {
    "first": lambda each: each.is_first,
    "all": lambda _: True,
    "< 1 h to come": lambda each: each.to_come < HOUR,
    "1 to 6 h to come": lambda each: HOUR <= each.to_come < 6 * HOUR,
    "> 6 h to come": lambda each: each.to_come >= 6 * HOUR,
}


def table_of(told: Sequence[ToldStart], scheduler: str = "Slurm") -> Iterator[str]:
    """Yield the lines of a table: errors in minutes, by time to come and by who told.

    Args:
        scheduler: name of the other teller.
    """
    yield HEADS
    for name, is_chosen in PARTS.items():
        chosen = [each for each in told if is_chosen(each)]
        if not chosen:
            continue
        both = [each for each in chosen if each.slurm is not None and each.ours is not None]
        yield row_of(f"{name}: {scheduler}", chosen, [each.slurm for each in chosen])
        yield row_of(f"{name}: walltimed", chosen, [each.ours for each in chosen])
        yield row_of(f"{name}: starts now", chosen, [each.at for each in chosen])
        if both and len(both) < len(chosen):
            yield row_of(f"  where both tell: {scheduler}", both, [each.slurm for each in both])
            yield row_of("  where both tell: walltimed", both, [each.ours for each in both])


def row_of(name: str, told: Sequence[ToldStart], starts: Sequence[float | None]) -> str:
    """Return one line: how many were told and how far off; for walltimed its intervals, too."""
    pairs = [(each, at) for each, at in zip(told, starts, strict=True) if at is not None]
    line = f"{name:30} {len(told):6d} {len(pairs) / len(told):6.0%}"
    if not pairs:
        return line
    errors = np.array([at - each.start for each, at in pairs])
    size = np.abs(errors)
    line += (
        f" {np.median(size) / MINUTE:7.0f} {size.mean() / MINUTE:7.0f} "
        f"{errors.mean() / MINUTE:+7.0f} {np.mean(size <= NEAR):8.0%}"
    )
    return line + (_interval(told) if name.endswith("walltimed") else "")


def _interval(told: Sequence[ToldStart]) -> str:
    """Return shares of starts within, before and after intervals, and their median width."""
    ends = [
        (e.start, e.lower, e.upper) for e in told if e.lower is not None and e.upper is not None
    ]
    if not ends:
        return ""
    start, lower, upper = np.array(ends, dtype=float).T
    before, after = np.mean(start < lower), np.mean(start > upper)
    width = np.median(upper - lower) / MINUTE
    return f" {1 - before - after:9.0%} {before:7.0%} {after:6.0%} {width:7.0f}"


def coverage_by_window(told: Sequence[ToldStart], days: int = 3, fewest: int = 30) -> str:
    """Return the mean share that intervals held in windows of some days with enough jobs."""
    windows: dict[int, list[ToldStart]] = defaultdict(list)
    for each in told:
        windows[int(each.at // (24 * HOUR * days))].append(each)
    held = [
        np.mean([(each.lower or 0) <= each.start <= (each.upper or 0) for each in found])
        for found in windows.values()
        if len({each.job for each in found}) >= fewest
    ]
    if not held:
        return f"no window of {days} days with {fewest} jobs"
    enough = np.mean(np.array(held) >= 0.85)
    return (
        f"{len(held)} windows of {days} days: intervals of 90% held {np.mean(held):.0%} on "
        f"average, at least 85% in {enough:.0%} of them"
    )


def coverage_by_promise(told: Sequence[ToldStart]) -> str:
    """Return the share of starts that intervals held, by the time to come as it was told."""
    parts = {"all": (0, np.inf), "< 1 h": (0, HOUR), "1 to 6 h": (HOUR, 6 * HOUR)}
    parts["> 6 h"] = (6 * HOUR, np.inf)
    shares = []
    for name, (least, most) in parts.items():
        held = [
            (each.lower or 0) <= each.start <= (each.upper or 0)
            for each in told
            if each.ours is not None and least <= each.ours - each.at < most
        ]
        shares.append(f"{name} {np.mean(held):.0%}" if held else f"{name} -")
    return "intervals of 90% held, by told time to come: " + ", ".join(shares)
