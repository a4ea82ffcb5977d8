"""Measures what longer limits of running jobs save against what others wait, bound by bound.

    .venv/bin/python research/rescue_curve.py LOG... --limit 6000 --seeds 6

Limits are lowered as in ``longer_limits.py``, by chance, once for each seed. A machine plays
conservative backfilling by limits. Each job that still runs LATE seconds before its limit gets a
longer one, once, or a half, a quarter or an eighth of what is added, where no planned start moves
later by more than a bound. Beside that stand rules of hindsight, which know the jobs that are
worth it, and their needs. ``rescue.py`` plays the rule that is shipped, with its predictions.
"""

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numba import njit
from numpy.typing import NDArray
from played_logs import LogPart, Traces, log_parts, play_logs, run_script
from rescue import Played, Site, site_of

from simulator.cli.options import Distributed, Processes
from simulator.reports.tables import text_table
from terminal.console import CommandError, ExitCode, out
from terminal.options import Limit
from terminal.words import MINUTE

LATE = 120
"""Seconds before its limit at which a job gets a longer one."""

PARTS = 4
"""Parts of what is added that are tried, each half of the one before it."""

SHARES = (1, 3, 9)
"""Most that is added, in multiples of the limit."""

BOUNDS = (0, 5, 10, 60)
"""Minutes by which a planned start may move later."""

MACHINES = (4, 16, inf)
"""Most that is added, in minutes of the whole machine."""

CHEAPEST = (0.5, 0.6, 0.7, 0.8)
"""Shares of the cut jobs that are saved with hindsight, those that need the fewest core hours."""

NEVER = 1 << 60

jit: Any = njit(cache=False)

Whole = NDArray[np.int64]


class Outcome(NamedTuple):
    """Share of the cut jobs that a rule saves, and the relative change of the others' mean wait."""

    saved: float
    change: float


@jit
def reserve(times: Whole, free: Whole, count: int, span: tuple[int, int], cores: int) -> int:
    """Take cores within a span out of a profile of free ones; return its number of steps."""
    for edge in span:
        place = np.searchsorted(times[:count], edge)
        if place == count or times[place] != edge:
            times[place + 1 : count + 1] = times[place:count].copy()
            free[place + 1 : count + 1] = free[place:count].copy()
            times[place], free[place] = edge, free[place - 1]
            count += 1
    begin, end = np.searchsorted(times[:count], span[0]), np.searchsorted(times[:count], span[1])
    free[begin:end] -= cores
    return count


@jit
def earliest(times: Whole, free: Whole, count: int, seconds: int, cores: int) -> int:
    """Return the first time from which on cores are free for so many seconds."""
    first = 0
    while first < count:
        last, until = first, times[first] + seconds
        while last < count and free[last] >= cores and times[last] < until:
            last += 1
        if last == count or times[last] >= until:
            return times[first]
        first = last + 1
    return times[count - 1]


@jit
def planned(now: int, size: int, running: Whole, waiting: Whole, jobs: Whole) -> Whole:
    """Return the starts that are planned for waiting jobs, in their order.

    Args:
        size: cores of the machine.
        jobs: rows of cores, limits and, for running jobs, ends by limit.
    """
    most = 2 * (len(running) + len(waiting)) + 2
    times, free = np.zeros(most, np.int64), np.zeros(most, np.int64)
    times[0], free[0], count = now, size, 1
    for job in running:
        count = reserve(times, free, count, (now, max(now + 1, jobs[2, job])), jobs[0, job])
    starts = np.zeros(len(waiting), np.int64)
    for place, job in enumerate(waiting):
        start = earliest(times, free, count, jobs[1, job], jobs[0, job])
        count = reserve(times, free, count, (start, start + jobs[1, job]), jobs[0, job])
        starts[place] = start
    return starts


@jit
def extend(  # noqa: PLR0913, PLR0917 - machine code takes no keywords
    job: int, most: int, bound: float, now: int, size: int, running: Whole, waiting: Whole,
    jobs: Whole,
) -> None:  # fmt: skip
    """Give a running job the largest part of a longer limit that keeps the bound."""
    before, end = jobs[1, job], jobs[2, job]
    starts = planned(now, size, running, waiting, jobs) if bound < NEVER else waiting
    for part in range(PARTS):
        added = (most - before) >> part
        jobs[2, job] = end + added
        if bound < NEVER:
            moves = planned(now, size, running, waiting, jobs) - starts
            if len(moves) and moves.max() > bound:
                continue
        jobs[1, job] = before + added
        return
    jobs[2, job] = end


@jit
def play(  # noqa: PLR0913, PLR0917 - likewise
    submits: Whole, cores: Whole, limits: Whole, needed: Whole, most: Whole, size: int, bound: float
) -> tuple[Whole, Whole]:
    """Play jobs; return their starts and their limits in the end.

    Args:
        submits: in order.
        cores: of the jobs.
        limits: in seconds.
        needed: seconds that the jobs need.
        most: longest limits that they may get while they run.
        size: cores of the machine.
        bound: seconds by which a planned start may move later.
    """
    count = len(submits)
    jobs = np.vstack((cores, limits, np.zeros(count, np.int64)))
    starts, tried = np.zeros(count, np.int64), most <= limits
    running, waiting = np.zeros(0, np.int64), np.zeros(0, np.int64)
    arrived, now = 0, 0
    while arrived < count or len(running):
        now = submits[arrived] if arrived < count else NEVER
        for job in running:
            now = min(now, starts[job] + min(needed[job], jobs[1, job]))
            if not tried[job]:
                now = min(now, max(starts[job] + 1, jobs[2, job] - LATE))
        runs = starts[running] + np.minimum(needed[running], jobs[1][running]) > now
        changed, running = not runs.all(), running[runs]
        until = np.searchsorted(submits, now, side="right")
        if until > arrived:
            waiting = np.concatenate((waiting, np.arange(arrived, until)))
            arrived, changed = until, True
        if changed:
            begins = planned(now, size, running, waiting, jobs) <= now
            starts[waiting[begins]] = now
            jobs[2][waiting[begins]] = now + jobs[1][waiting[begins]]
            running = np.concatenate((running, waiting[begins]))
            waiting = waiting[~begins]
        for job in running:
            if not tried[job] and max(starts[job] + 1, jobs[2, job] - LATE) <= now:
                tried[job] = True
                extend(job, most[job], bound, now, size, running, waiting, jobs)
    return starts, jobs[1]


class Machine:
    """A log under lowered limits that is played by rules."""

    def __init__(self, site: Site) -> None:
        self.site, self.needed, self.cut = site, site.needed, site.cut
        submits = np.array([int(run.submission.submit_time) for run in site.runs])
        self.submits = submits - submits[0]
        cores = [run.submission.requested_processors or 1 for run in site.runs]
        self.cores = np.minimum(cores, site.processors)
        self.others = float(self.played(site.limits, inf).waits[~self.cut].mean())

    def played(self, most: Whole, bound: float) -> Played:
        """Play the jobs with limits that may grow up to ``most`` while they run."""
        starts, limits = play(
            self.submits, self.cores, self.site.limits, self.needed, most, self.site.processors,
            float(min(bound, NEVER)),
        )  # fmt: skip
        return Played(starts - self.submits, limits)

    def outcome(self, most: Whole, bound: float) -> Outcome:
        """Return what longer limits save, and what others wait for it."""
        found = self.played(most, bound)
        saved = (self.cut & (found.limits >= self.needed)).sum() / self.cut.sum()
        return Outcome(float(saved), float(found.waits[~self.cut].mean()) / self.others - 1.0)

    def longest(self, share: float, machine: float) -> Whole:
        """Return the longest limits, by a share of the limit and minutes of the machine."""
        limits = self.site.limits
        paid = machine * MINUTE * self.site.processors / self.cores
        return np.minimum(self.site.longest, limits + np.minimum(share * limits, paid)).astype(int)

    def cheapest(self, share: float) -> Whole:
        """Return the needs of the cut jobs with the least core hours missing."""
        missing = (self.needed - self.site.limits) * self.cores
        chosen = self.cut & (missing <= np.quantile(missing[self.cut], share))
        return np.where(chosen, self.needed, 0)

    def outcomes(self) -> Iterator[tuple[str, Outcome]]:
        """Yield the rules by name, with their outcomes."""
        for share in CHEAPEST:
            yield f"hindsight, the cheapest {share:.0%}", self.outcome(self.cheapest(share), inf)
        for share in SHARES:
            for machine in MACHINES:
                most = self.longest(share, machine)
                for bound in BOUNDS:
                    name = f"{share + 1:2d} times, {machine:3g} min of the machine, {bound:2d} min"
                    yield name, self.outcome(most, MINUTE * bound)


def outcomes_of(part: LogPart) -> dict[str, list[Outcome]]:
    """Return the outcomes of each rule on a log, one for each seed."""
    found: dict[str, list[Outcome]] = {}
    for seed in range(1, part.options + 1):
        machine = Machine(site_of(part, seed))
        if machine.others < MINUTE:
            raise CommandError(f"Jobs of {part.trace} wait less than a minute.", ExitCode.USAGE)
        for name, outcome in machine.outcomes():
            found.setdefault(name, []).append(outcome)
    return found


def row(name: str, logs: list[list[Outcome]]) -> tuple[str, ...]:
    """Return the cells of a rule: means over all logs, then over the seeds of each."""
    means = [np.mean(each, axis=0) for each in logs]
    return name, *(f"{saved:.0%} {change:+.1%}" for saved, change in (np.mean(means, 0), *means))


def main(
    traces: Traces,
    limit: Limit = None,
    seeds: Annotated[int, typer.Option(min=1, help="Ways in which limits are lowered.")] = 6,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Print by rule the share of cut jobs that is saved, and the change of the others' mean wait.

    Example: python research/rescue_curve.py SDSC-SP2-1998-4.2-cln.swf.gz --limit 6000
    """
    parts = log_parts(traces, limit, seeds)
    played = list(play_logs(outcomes_of, parts, processes=processes, distributed=distributed))
    rows = [row(name, [each[name] for _, each in played]) for name in played[0][1]]
    rows.sort(key=lambda cells: float(cells[1].split("%")[0]))
    names = [Path(part.trace).name.split(".")[0] for part, _ in played]
    out.print(text_table(("rule", "mean", *names), rows), soft_wrap=True, markup=False)


if __name__ == "__main__":
    run_script(main)
