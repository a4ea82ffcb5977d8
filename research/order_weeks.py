"""Compares orders of the queue by requests and by predictions over independent parts of logs.

    .venv/bin/python research/order_weeks.py LOG... --weeks 30
    .venv/bin/python research/order_weeks.py LOG... --jobs 10000
    .venv/bin/python research/order_weeks.py LOG... --weeks 30 --soft
    .venv/bin/python research/order_weeks.py LOG... --jobs 10000 --bounds
    .venv/bin/python research/order_weeks.py LOG... --jobs 10000 --classes

Each part of a log is played from an empty machine by the twin of Slurm (one FIFO partition of whole
nodes) or of PBS, under each order. The method is asked at each submission of the log, and knows the
runs that had ended by the log's own times. Parts in which jobs wait less than ten minutes on
average by submission are left out: no order can act there. Orders are compared part by part; the
intervals are those of 95% over resampled parts. With --soft the scheduler plans with TimeMin or
soft_walltime besides: the least-cost estimate, or a quantile. With --bounds the order by the mean
is played with other bounds on harm: shares of the longest wait, and lengths held below six hours.
With --classes the class of sizes or requests, of a hundredth of a log's jobs, is named whose wait
grows most.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ladder import NODES, bound_precedence, log_name

from predictors.aged_length import LENGTH_FACTOR, MOST_PRECEDENCE
from predictors.measures import Seconds, ordered_share
from predictors.response_ratio import LONGEST
from simulator.backtest.harm import FEWEST_JOBS_SHARE, LONGER_SECONDS
from simulator.backtest.site import groupings_of
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, play_jobs
from simulator.reports.tables import text_table
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.measures import bounded_slowdown
from simulator.scheduling.parallel import in_parallel
from simulator.scheduling.ratio_rules import RESPONSE_RATIO, RatioRules
from simulator.scheduling.semantics import SJF_AGING, TWINS, Semantics
from simulator.scheduling.simulate import Schedule, simulate
from simulator.scheduling.workload import Workload, prepare
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf
from simulator.traces.trace import Integers, Trace

WEEK, QUARTER = 7 * 86400, 13
"""Seconds of a week, and weeks of a quarter."""

LEAST_WAIT = 600.0
"""Seconds that jobs of a part wait on average by submission, or no order can act."""

FEWEST_JOBS = 50
RESAMPLES = 4000
SUBMISSION = "submission"


class Order(NamedTuple):
    """An order of the queue.

    Attributes:
        by: what jobs are ordered by: requests, planned (least cost), mean, root (of the product of
            both), exact; empty for the order of submission.
        order: a name of the simulator's.
        factor: of lengths, under ``sjf-aging``.
        overdue_share: under ``response-ratio``.
        plans: TimeMin or soft_walltime of jobs: planned, a quantile such as q90, exact; empty for
            none.
        longest: seconds that longer jobs count as, under ``response-ratio``.
    """

    by: str = ""
    order: str = "fcfs"
    factor: int = LENGTH_FACTOR
    overdue_share: float = 0.75
    plans: str = ""
    longest: int = LONGEST

    @property
    def name(self) -> str:
        """The order in a few words."""
        plans = f" + {self.plans}" if self.plans else ""
        if not self.by:
            return SUBMISSION + plans
        key = f"{self.factor}x" if self.order == SJF_AGING else "ratio"
        if self.order == RESPONSE_RATIO and self.overdue_share != 0.75:
            key += f" {self.overdue_share:g}"
        if self.longest != LONGEST:
            key += f" below {self.longest // 3600} h"
        return f"{key} {self.by}{plans}"


ORDERS = (
    Order(),
    Order("requests", SJF_AGING, 2),
    Order("requests", SJF_AGING),
    Order("requests", RESPONSE_RATIO),
    Order("planned", SJF_AGING),
    Order("mean", SJF_AGING),
    Order("planned", RESPONSE_RATIO),
    Order("root", RESPONSE_RATIO),
    Order("mean", RESPONSE_RATIO),
    Order("mean", RESPONSE_RATIO, overdue_share=0.0),
    Order("exact", RESPONSE_RATIO),
)

PAIRS = (
    *((name, SUBMISSION) for name in ("2x requests", "4x requests", "ratio requests")),
    *((name, SUBMISSION) for name in ("4x planned", "4x mean", "ratio mean", "ratio exact")),
    ("ratio mean", "ratio requests"),
    ("ratio mean", "2x requests"),
    ("ratio mean", "4x planned"),
    ("ratio mean", "4x mean"),
    ("4x mean", "4x planned"),
    ("ratio mean", "ratio root"),
    ("ratio mean", "ratio planned"),
    ("ratio mean", "ratio 0 mean"),
)
"""Orders that are compared, and with what."""

QUANTILES = {"q80": 0.8, "q90": 0.9, "q95": 0.95}
SOFT = ("planned", *QUANTILES, EXACT)
SOFT_ORDERS = (
    Order(),
    Order("mean", RESPONSE_RATIO),
    *(Order(plans=plans) for plans in SOFT),
    *(Order("mean", RESPONSE_RATIO, plans=plans) for plans in SOFT),
)
SOFT_PAIRS = (
    *((f"{SUBMISSION} + {plans}", SUBMISSION) for plans in SOFT),
    *((f"ratio mean + {plans}", "ratio mean") for plans in SOFT),
)
"""The same for what the scheduler plans with."""

BOUNDS = (
    Order("mean", RESPONSE_RATIO, overdue_share=0.6),
    Order("mean", RESPONSE_RATIO, overdue_share=0.5),
    Order("mean", RESPONSE_RATIO, longest=6 * 3600),
    Order("mean", RESPONSE_RATIO, overdue_share=0.5, longest=6 * 3600),
)
BOUND_ORDERS = (Order(), Order("mean", RESPONSE_RATIO), *BOUNDS)
BOUND_PAIRS = (
    *((each.name, SUBMISSION) for each in BOUND_ORDERS[1:]),
    *((each.name, "ratio mean") for each in BOUNDS),
)
"""The same for bounds on harm."""

CLASS_ORDERS = (
    Order(),
    *(Order(by, RESPONSE_RATIO) for by in ("requests", "mean", EXACT)),
    *(Order("mean", RESPONSE_RATIO, overdue_share=share) for share in (0.0, 0.5)),
)

SETS = {
    "": (ORDERS, PAIRS),
    "soft": (SOFT_ORDERS, SOFT_PAIRS),
    "bounds": (BOUND_ORDERS, BOUND_PAIRS),
    "classes": (CLASS_ORDERS, tuple((each.name, SUBMISSION) for each in CLASS_ORDERS[1:])),
}
"""Orders that are played, and pairs that are compared, by option."""

OPTIONS = {
    "soft": "what the scheduler plans with",
    "bounds": "bounds on harm",
    "classes": "classes of jobs whose waits grow most",
}


class Part(NamedTuple):
    """A part of a log: the measures of each order.

    Attributes:
        log: its name.
        waits: mean waits in seconds, by order; likewise the others.
        slowdowns: mean bounded slowdowns.
        longest: longest waits in seconds.
        areas: mean waits weighted by processors times runtime.
        classes: waits of all jobs of a class of sizes or requests, by class and order, and the
            number of these jobs.
    """

    log: str
    waits: Mapping[str, float]
    slowdowns: Mapping[str, float]
    longest: Mapping[str, float]
    areas: Mapping[str, float]
    classes: Mapping[str, Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True)
class Played:
    """The parts of a log, and the shares of pairs that each length puts in the right order."""

    parts: Sequence[Part]
    shares: Mapping[str, float]


Lengths = Mapping[str, Integers]
"""Lengths by line of a trace."""


def lengths_of(trace: Trace, method: str) -> Lengths:
    """Ask a method about each job at its submission."""
    runs = list(completions(trace))
    player = InProcess({method: MethodSpec.parse(method).predictor()})
    found = np.ones((2 + len(QUANTILES), len(runs)))
    shares = list(QUANTILES.values())

    def ask(job: int) -> None:
        submission = runs[job].submission
        (answer,) = player.ask(method, [submission])
        planned = answer.predicted_walltime
        mean = planned if answer.mean is None else answer.mean
        quantiles = player.quantiles(method, submission, shares, None)
        found[:, job] = planned, mean, *(quantiles or [submission.requested_walltime] * len(shares))

    play_jobs(runs, ended=lambda job: player.observe([runs[job]]), submitted=ask)
    planned, mean, *quantiles = np.maximum(1.0, found)
    return {
        "planned": planned.astype(np.int64),
        "mean": mean.astype(np.int64),
        "root": np.sqrt(planned * mean).astype(np.int64),
        **{name: each.astype(np.int64) for name, each in zip(QUANTILES, quantiles, strict=True)},
    }


def sorted_shares(trace: Trace, lengths: Lengths) -> Mapping[str, float]:
    """Return the shares of pairs in the right order, by what they are ordered by."""
    requests: Seconds = trace.requested_time.astype(float)
    runtimes = np.minimum(trace.run, requests)
    by = {"requests": requests, **{name: each.astype(float) for name, each in lengths.items()}}
    return {name: ordered_share(each, runtimes) for name, each in by.items()}


def parts_of(trace: Trace, given: argparse.Namespace) -> Iterator[tuple[int, Integers]]:
    """Yield the number and the lines of each part: weeks, or so many jobs."""
    place = np.arange(len(trace))
    numbers = place // given.jobs if given.jobs else (trace.submit - trace.submit.min()) // WEEK
    chosen = np.unique(numbers)
    if given.first:  # the history of the first parts is too short
        chosen = chosen[given.first :]
    if given.weeks and len(chosen) > given.weeks:
        chosen = chosen[np.linspace(0, len(chosen) - 1, given.weeks).astype(int)]
    for number in chosen.tolist():
        yield number, np.flatnonzero(numbers == number)


def play(given: argparse.Namespace, path: Path) -> Played:
    """Play the parts of a log under each order."""
    trace = read_swf(str(path))
    size = None if "MaxProcs" in trace.header else int(trace.processors.max())
    trace = prepare(trace, processors=size).trace
    if given.limit:
        trace = trace.select(np.arange(len(trace)) >= len(trace) - given.limit)
    cores = next((each for name, each in NODES.items() if path.name.startswith(name)), None)
    nodes = prepare(trace, processors=size, cores_per_node=cores).processors_of_machine
    lengths = lengths_of(trace, given.method)
    parts, waits, reach = [], dict[int, int](), 1 if given.jobs else QUARTER
    for number, lines in parts_of(trace, given):
        workload = prepare(trace.select(lines), processors=size, cores_per_node=cores)
        workload = replace(workload, processors_of_machine=nodes)
        if len(workload) < FEWEST_JOBS:
            continue
        known = [waits[each] for each in waits if number - reach <= each < number]
        schedules = schedules_of(given, workload, (trace, lengths), max(known, default=0))
        by_submission = schedules[SUBMISSION]
        waits[number] = int(by_submission.wait.max())
        if by_submission.wait.mean() >= LEAST_WAIT:
            parts.append(measured(log_name(path), schedules))
    return Played(parts, sorted_shares(trace, lengths))


def schedules_of(
    given: argparse.Namespace, workload: Workload, known: tuple[Trace, Lengths], longest_wait: int
) -> Mapping[str, Schedule]:
    """Play a part under each order."""
    trace, lengths = known
    places = np.searchsorted(trace.line, workload.trace.line)
    found = {}
    for each in SETS[given.played][0]:
        bound_precedence(each.factor, MOST_PRECEDENCE)
        semantics = Semantics(
            policy=given.policy,
            order=each.order,
            estimated_backfilling=bool(each.plans),
            estimated_running=bool(each.plans),
            ratio=RatioRules(
                overdue_share=each.overdue_share, longest=each.longest, longest_wait=longest_wait
            ),
        )
        found[each.name] = simulate(workload, semantics, estimates_of(each, lengths, places))
    return found


def estimates_of(order: Order, lengths: Lengths, places: Integers) -> Estimates:
    """Return what jobs are planned with and ordered by."""
    first = order.plans or order.by
    estimates = Estimates.named(first if first == EXACT else REQUESTED)
    if first in lengths:
        estimates = Estimates(first, known=partial(at_places, lengths[first], places))
    if order.plans and order.by:
        estimates = replace(estimates, lengths=partial(at_places, lengths[order.by], places))
    return estimates


def at_places(lengths: Integers, places: Integers, _workload: Workload) -> Integers:
    """Return the lengths of a part's jobs."""
    found: Integers = lengths[places]
    return found


def measured(log: str, schedules: Mapping[str, Schedule]) -> Part:
    """Measure the schedules of a part."""
    work = {
        name: (each.workload.processors * each.workload.runtime).astype(float)
        for name, each in schedules.items()
    }
    return Part(
        log,
        waits={name: float(each.wait.mean()) for name, each in schedules.items()},
        slowdowns={
            name: float(bounded_slowdown(each.wait, each.workload.runtime).mean())
            for name, each in schedules.items()
        },
        longest={name: float(each.wait.max()) for name, each in schedules.items()},
        areas={
            name: float(np.average(each.wait, weights=work[name]))
            for name, each in schedules.items()
        },
        classes=dict(waits_of_classes(schedules)),
    )


def waits_of_classes(
    schedules: Mapping[str, Schedule],
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield all jobs, and each class of sizes or requests: its waits by order and its jobs."""
    trace = schedules[SUBMISSION].workload.trace
    found = {ALL: np.ones(len(trace), bool)}
    for kind in groupings_of(trace, users={}, queues={}, accounts={}):
        if kind.kind in CLASSES:
            inside = {label: kind.codes == place for place, label in enumerate(kind.names)}
            found |= {CLASSES[kind.kind].format(label): each for label, each in inside.items()}
    for label, lines in found.items():
        waits = {name: float(each.wait[lines].sum()) for name, each in schedules.items()}
        yield label, {JOBS: float(lines.sum()), **waits}


def worst_class(order: str, parts: Sequence[Part]) -> tuple[str, float, float, float]:
    """Return the class of a log whose wait grows most under an order: its name, share and waits."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for part in parts:
        for label, found in part.classes.items():
            for name in (JOBS, SUBMISSION, order):
                sums[label][name] += found[name]
    jobs = sums[ALL][JOBS]
    waits = [
        (label, each[JOBS] / jobs, each[SUBMISSION] / each[JOBS], each[order] / each[JOBS])
        for label, each in sums.items()
        if label != ALL and each[JOBS] >= FEWEST_JOBS_SHARE * jobs
    ]
    return max(waits, key=lambda each: max(1.0, each[3]) / max(LONGER_SECONDS, each[2]))


def rows_of_classes(played: Mapping[str, Played], orders: Sequence[Order]) -> Iterator[list[str]]:
    """Yield a row for each log and order."""
    for log, each in played.items():
        for order in orders if each.parts else ():
            label, share, today, ordered = worst_class(order.name, each.parts)
            minutes = (f"{wait / 60:.0f}" for wait in (today, ordered))
            factor = f"{ordered / max(LONGER_SECONDS, today):.2f}"
            yield [log, order.name, label, f"{share:.0%}", *minutes, factor]


def change(
    parts: Sequence[Part], measure: str, pair: tuple[str, str], seed: int = 1
) -> tuple[float, float, float]:
    """Return the relative difference of two orders over parts, with its interval.

    The mean of the logs of ratios, so that a part counts as much as another.
    """
    name, than = pair
    values = [getattr(part, measure) for part in parts]
    ratios = np.array([np.log((each[name] + 1) / (each[than] + 1)) for each in values])
    drawn = np.random.default_rng(seed).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    low, high = np.quantile(ratios[drawn].mean(axis=1), (0.025, 0.975))
    mean, low, high = np.expm1((ratios.mean(), low, high))
    return float(mean), float(low), float(high)


def row_of(pair: tuple[str, str], parts: Sequence[Part]) -> list[str]:
    """Return a row of a table: changes of waits, slowdowns and weighted waits, longest waits."""
    shown = []
    for measure in ("waits", "slowdowns", "areas"):
        mean, low, high = change(parts, measure, pair)
        shown.append(f"{mean:+.0%} ({low:+.0%} to {high:+.0%})")
    logs = sorted({part.log for part in parts})
    ratios = [longest_ratio(pair, [part for part in parts if part.log == log]) for log in logs]
    return [*pair, *shown, f"{np.median(ratios):.2f}", f"{max(ratios):.2f}"]


def longest_ratio(pair: tuple[str, str], parts: Sequence[Part]) -> float:
    """Return the longest wait of a log under an order, over that under another."""
    first, second = (max(part.longest[name] for part in parts) for name in pair)
    return first / max(1.0, second)


HEADS = ("order", "against", "wait", "slowdown", "weighted wait", "longest", "worst log")

ALL, JOBS = "all jobs", "jobs"
"""Class of all jobs, and the number of jobs beside waits by order."""

CLASSES = {"job sizes": "size {}", "requests": "asking for {}"}
"""Names of classes by their kind."""

CLASS_HEADS = ("log", "order", "worst class", "jobs", "wait, min", "ordered", "factor")


def tables(played: Mapping[str, Played], pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the shares of pairs by log, then the comparisons over all parts and by log."""
    heads = ("log", "parts", "requests", "planned", "mean", "root")
    rows = [
        (log, str(len(each.parts)), *(f"{each.shares[name]:.3f}" for name in heads[2:]))
        for log, each in played.items()
    ]
    yield f"Share of pairs in the right order\n\n{text_table(heads, rows)}"
    parts = [part for each in played.values() for part in each.parts]
    groups = {f"All logs, {len(parts)} parts": parts}
    groups |= {f"{log}, {len(each.parts)} parts": each.parts for log, each in played.items()}
    for title, group in groups.items():
        if group:
            lines = [row_of(pair, group) for pair in pairs]
            yield f"{title}\n\n{text_table(HEADS, lines)}"
    if pairs == SETS["classes"][1]:
        yield text_table(CLASS_HEADS, list(rows_of_classes(played, CLASS_ORDERS[1:])))


def main() -> None:
    """Play the logs, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument("--policy", choices=TWINS, default="slurm")
    parser.add_argument("--method", default="attention")
    parser.add_argument("--weeks", type=int, default=0, help="most parts of a log, spread evenly")
    parser.add_argument("--jobs", type=int, default=0, help="jobs of a part, instead of a week")
    parser.add_argument("--first", type=int, default=1, help="first parts that are left out")
    parser.add_argument("--limit", type=int, default=0, help="last jobs of each log")
    sets = parser.add_mutually_exclusive_group()
    sets.set_defaults(played="")
    for name, text in OPTIONS.items():
        sets.add_argument(f"--{name}", dest="played", action="store_const", const=name, help=text)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    found = in_parallel(partial(play, given), given.logs, processes=given.processes)
    played = {log_name(path): each for path, each in zip(given.logs, found, strict=True)}
    print("\n\n".join(tables(played, SETS[given.played][1])))


if __name__ == "__main__":
    main()
