"""Measures what a trial at a site could detect: the order by predictions on and off by days.

    .venv/bin/python research/trial_power.py LOG... --weeks 6
    .venv/bin/python research/trial_power.py LOG... --weeks 8 --quarters

On days drawn at random the twin of Slurm orders by the ratio of wait to mean runtime, on the others
by submission: all lengths are one. The queue goes on from day to day. An estimate compares the mean
number of waiting jobs, to which waits are proportional by Little's law, on days on with days off:
as it is; as a share of what another policy (EASY by requests) makes of the same submissions; and as
a share of the twin's own queue without the order, which no real site can know so exactly. What a
day leaves to the days after it is added up by differences in Q: to the difference of a day on and a
day off come those of the same days' successors, whatever the calendar says of these. Over many
windows and calendars: the mean of the estimates beside the truth (the order on for all days, and
for none), their deviation, the power of a one-sided test at 5%, how often the same test finds an
effect where the order was never on, and the weeks after which four in five trials would detect what
there is, and waits that are a tenth shorter.

With --quarters nothing is drawn: the order is off for a quarter, and then on for so many weeks. The
estimate is by how much more of EASY's queue waits after than before, as a site can tell it by two
backtests. Chance: the same, where the order was never on; by its deviation the power is stated.
"""

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from ladder import log_name
from order_weeks import lengths_of

from predictors.response_ratio import LONGEST, SHORTEST
from simulator.engine.loop import DONE
from simulator.reports.tables import text_table
from simulator.scheduling.estimates import REQUESTED, Estimates
from simulator.scheduling.parallel import in_parallel
from simulator.scheduling.ratio_rules import RESPONSE_RATIO, RatioRules
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import initial_state, run, simulate
from simulator.scheduling.workload import Workload, prepare
from simulator.traces.swf import read_swf
from simulator.traces.trace import Integers, Trace

DAY, DAYS_OF_WARM_UP, DAYS_OF_Q, DAYS_OF_QUARTER = 86400, 7, 3, 91
TENTH = float(-np.log(0.9))
"""Waits that are a tenth shorter, as a difference of logarithms."""

DETECTED, BY_CHANCE = NormalDist().inv_cdf(0.8), NormalDist().inv_cdf(0.95)
ORDERED = Semantics(
    policy="slurm",
    order=RESPONSE_RATIO,
    estimated_backfilling=False,
    estimated_running=False,
    ratio=RatioRules(overdue_share=0.75, longest_wait=0),
)
ELSEWHERE = Semantics(
    policy="easy", order="fcfs", estimated_backfilling=False, estimated_running=False
)
NEVER = 2**62


class Trial(NamedTuple):
    """Differences of the logarithm of the waiting jobs, on less off.

    Attributes:
        truth: the order on for all days, and for none.
        plain: estimated from the days of a calendar.
        beside: likewise, as shares of another policy's queue.
        later: likewise, with what two more days show of each (differences in Q).
        twin: as shares of the twin's own queue without the order.
        without: as ``beside``, and ``later``, though the order was never on.
    """

    truth: float
    plain: float
    beside: float
    later: float
    twin: float
    without: tuple[float, float]


class Comparison(NamedTuple):
    """Differences of the logarithm of the waiting jobs, of weeks with the order and without.

    Attributes:
        truth: the order on, and off, in the same weeks.
        estimated: with the order, less that of the quarter before, both as shares of EASY's.
        by_chance: the same, though the order was never on.
    """

    truth: float
    estimated: float
    by_chance: float


def switched(workload: Workload, lengths: Integers, is_on: np.ndarray) -> Integers:
    """Return the starts of jobs in seconds, with the order on in some days and off in others.

    Args:
        lengths: of jobs, in seconds.
        is_on: whether the order is on, by day after the first submission.
    """
    state = initial_state(workload, ORDERED)
    jobs, clock = state.jobs, state.clock
    jobs["estimate"] = workload.request
    held = np.clip(lengths, SHORTEST, LONGEST).astype(np.int64)
    days = (workload.submit - workload.submit[0]) // DAY
    firsts = np.flatnonzero(np.diff(days, prepend=-1))
    for first, behind in zip(firsts, [*firsts[1:], NEVER], strict=True):
        now = held if is_on[days[first]] else np.full_like(held, LONGEST)
        jobs["length"][first:] = now[first:]
        waiting = np.flatnonzero(jobs["start"][: clock["submitted"].item()] < 0)
        jobs["order_length"][waiting] = 60 * -(-now[waiting] // 60)
        clock["pause_at"][0] = behind
        while run(state) != DONE and clock["submitted"].item() < behind:
            pass
    starts: Integers = jobs["start"].copy()
    return starts


def waiting_jobs(workload: Workload, starts: Integers, days: int) -> np.ndarray:
    """Return the mean number of waiting jobs of each day after the warm-up."""
    begin = workload.submit[0]
    edges = DAY * np.arange(days + 1)[:, None]
    since, until = workload.submit - begin, starts - begin
    waited = np.minimum(until, edges[1:]) - np.maximum(since, edges[:-1])
    found: np.ndarray = np.clip(waited, 0, None).sum(axis=1)[DAYS_OF_WARM_UP:] / DAY
    return found


def difference(
    queue: np.ndarray, is_on: np.ndarray, usual: np.ndarray | None = None, days: int = 1
) -> float:
    """Estimate the effect from the waiting jobs of days on and days off.

    Args:
        usual: jobs that would wait without the order, by another play; None: not known.
        days: whose differences are added up: a day and those after it.
    """
    if usual is None:
        return float(np.log(queue[is_on].mean() / queue[~is_on].mean()))
    shares = np.log((queue + 0.5) / (usual + 0.5))
    found = 0.0
    for later in range(days):
        after, was_on = shares[later:], is_on[: len(shares) - later]
        found += float(after[was_on].mean() - after[~was_on].mean())
    return found


def windows_of(
    trace: Trace, lengths: Integers, given: argparse.Namespace, days: int
) -> Iterator[tuple[Workload, Integers, np.random.Generator]]:
    """Yield random windows of a log with the lengths of their jobs, and what calendars follow."""
    random = np.random.default_rng(given.seed)
    day = (trace.submit - trace.submit[0]) // DAY
    for _ in range(given.windows):
        first = int(random.integers(given.first, int(day[-1]) - days))
        lines = np.flatnonzero((day >= first) & (day < first + days))
        workload = prepare(trace.select(lines), processors=given.processors)
        if len(workload) == len(lines):
            yield workload, lengths[lines], random


def trials_of(trace: Trace, lengths: Integers, given: argparse.Namespace) -> Iterator[Trial]:
    """Yield trials over random windows of a log, each under several random calendars."""
    days = DAYS_OF_WARM_UP + 7 * given.weeks
    for workload, known, random in windows_of(trace, lengths, given, days):
        yield from of_window(workload, known, days, (random, given.calendars))


def comparisons_of(
    trace: Trace, lengths: Integers, given: argparse.Namespace
) -> Iterator[Comparison]:
    """Yield comparisons of so many weeks with the quarter before, over random windows of a log."""
    days = DAYS_OF_WARM_UP + DAYS_OF_QUARTER + 7 * given.weeks
    for workload, known, _ in windows_of(trace, lengths, given, days):
        queue = partial(waiting_jobs, workload, days=days)
        is_on = np.arange(len(workload) + days) >= DAYS_OF_WARM_UP + DAYS_OF_QUARTER
        ordered = queue(switched(workload, known, is_on))
        never = queue(switched(workload, known, np.zeros_like(is_on)))
        elsewhere = queue(simulate(workload, ELSEWHERE, Estimates.named(REQUESTED)).start)
        on, off, easy = (float(np.log(each[DAYS_OF_QUARTER:].mean()))
                         for each in (ordered, never, elsewhere))  # fmt: skip
        before = never[:DAYS_OF_QUARTER].mean() / elsewhere[:DAYS_OF_QUARTER].mean()
        usual = easy + float(np.log(before))
        yield Comparison(on - off, on - usual, off - usual)


def of_window(
    workload: Workload, lengths: Integers, days: int, drawn: tuple[np.random.Generator, int]
) -> Iterator[Trial]:
    """Yield trials over a window of a log."""
    random, calendars = drawn
    queue = partial(waiting_jobs, workload, days=days)
    last = int((workload.submit[-1] - workload.submit[0]) // DAY) + 1
    never = queue(switched(workload, lengths, np.zeros(last, bool)))
    always = queue(switched(workload, lengths, np.ones(last, bool)))
    elsewhere = queue(simulate(workload, ELSEWHERE, Estimates.named(REQUESTED)).start)
    truth = float(np.log(always.mean() / never.mean()))
    for _ in range(calendars):
        is_on = random.integers(0, 2, days - DAYS_OF_WARM_UP).astype(bool)
        calendar = np.concatenate((np.zeros(DAYS_OF_WARM_UP, bool), is_on))
        found = queue(switched(workload, lengths, calendar))
        yield Trial(
            truth,
            difference(found, is_on),
            difference(found, is_on, elsewhere),
            difference(found, is_on, elsewhere, DAYS_OF_Q),
            difference(found, is_on, never),
            (
                difference(never, is_on, elsewhere),
                difference(never, is_on, elsewhere, DAYS_OF_Q),
            ),
        )


def play(given: argparse.Namespace, path: Path) -> list[Trial] | list[Comparison]:
    """Play the trials of a log, or the comparisons with quarters."""
    trace = prepare(read_swf(str(path))).trace
    trace = trace.select(np.arange(len(trace)) >= len(trace) - given.limit)
    lengths = lengths_of(trace, given.method)["mean"]
    given.processors = prepare(trace).processors_of_machine
    if given.quarters:
        return list(comparisons_of(trace, lengths, given))
    return list(trials_of(trace, lengths, given))


def rows_of(log: str, trials: list[Trial], weeks: int) -> Iterator[list[str]]:
    """Yield a row for each estimate."""
    truth = np.array([trial.truth for trial in trials])
    without = np.array([trial.without for trial in trials])
    wrong = dict(zip(("beside", "later"), without.T, strict=True))
    for name in ("plain", "beside", "later", "twin"):
        found = np.array([getattr(trial, name) for trial in trials])
        spread = float(found.std())
        power = NormalDist().cdf(-float(found.mean()) / spread - BY_CHANCE)
        by_chance = wrong[name] < -BY_CHANCE * spread if name in wrong else None
        needed = weeks * ((DETECTED + BY_CHANCE) * spread / np.array([found.mean(), TENTH])) ** 2
        yield [
            log,
            name,
            *(f"{np.expm1(each.mean()):+.0%}" for each in (truth, found)),
            f"{spread:.3f}",
            f"{power:.0%}",
            "" if by_chance is None else f"{by_chance.mean():.0%}",
            *(f"{each:.0f}" for each in needed),
        ]


HEADS = (
    "log", "estimate", "truth", "estimated", "deviation", "power", "wrong", "weeks",
    "weeks for 10%",
)  # fmt: skip


QUARTER_HEADS = ("log", "truth", "estimated", "chance", "power", "power for 10%", "wrong")


def table_of_quarters(played: Mapping[str, list[Comparison]]) -> str:
    """Return the table of comparisons with quarters, of all logs."""
    rows = []
    for log, found in played.items():
        truth, estimated, chance = np.array(found).T
        spread = float(chance.std())
        changes = (f"{np.expm1(each.mean()):+.0%}" for each in (truth, estimated))
        seen = (np.mean(each < -BY_CHANCE * spread) for each in (estimated, chance - TENTH, chance))
        rows.append([log, *changes, f"{spread:.3f}", *(f"{each:.0%}" for each in seen)])
    return text_table(QUARTER_HEADS, rows)


def tables(played: Mapping[str, list[Trial]], weeks: int) -> str:
    """Return the table of all logs."""
    return text_table(
        HEADS, [row for log, trials in played.items() for row in rows_of(log, trials, weeks)]
    )


def main() -> None:
    """Play the logs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument("--weeks", type=int, default=6)
    parser.add_argument("--quarters", action="store_true", help="weeks after a quarter without")
    parser.add_argument("--windows", type=int, default=50)
    parser.add_argument("--calendars", type=int, default=4)
    parser.add_argument("--first", type=int, default=30, help="first days that are left out")
    parser.add_argument("--limit", type=int, default=40_000, help="last jobs of each log")
    parser.add_argument("--method", default="attention")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    found = in_parallel(partial(play, given), given.logs, processes=given.processes)
    played = {log_name(path): each for path, each in zip(given.logs, found, strict=True)}
    print(table_of_quarters(played) if given.quarters else tables(played, given.weeks))


if __name__ == "__main__":
    main()
