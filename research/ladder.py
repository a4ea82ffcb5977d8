"""Plays logs to the twins of schedulers, by each way to hand predictions over.

    .venv/bin/python research/ladder.py LOG... --choice SDSC-SP2 --choice HPC2N -o DIRECTORY

Each log is played under four sites: Slurm with one FIFO partition, with three partitions that share
nodes, and with priorities by fair share, age and size; and PBS. A rung is what is handed over:
nothing, an order by request, an order by prediction, predictions as TimeMin or soft_walltime, both.
A method is asked once about each job, in a schedule of EASY by requests; all plays take over these
answers. Rungs are compared on the logs of the choice, and shown for the others apart. Results of a
log are kept in DIRECTORY, and not computed again.
"""

import argparse
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from simulator.backtest import gains
from simulator.backtest.harm import CLASSES, FEWEST_JOBS_SHARE, LONGER_SECONDS, harm_of
from simulator.backtest.plays import SHAKE_SECONDS, Play, play_of
from simulator.backtest.site import BacktestSite, groupings_of
from simulator.backtest.winners import GroupChanges, changes_of
from simulator.reports.tables import text_table
from simulator.scheduling import semantics as rules_of_twins
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.parallel import in_parallel
from simulator.scheduling.semantics import PBS, SLURM, Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.slurm_rules import MULTIFACTOR, SlurmCluster, SlurmPartition, SlurmRules
from simulator.scheduling.workload import Workload, first_jobs, prepare
from simulator.traces.shake import shaken
from simulator.traces.swf import read_swf
from simulator.traces.trace import Integers, Trace

HOUR = 3600
METHOD = "auto"
SHORT = 4 * HOUR
"""The longest request of the partition ``short``."""

SHARE_OF_LONG = 0.8
"""Share of the nodes that the partition ``long`` has."""

FAIR_SHARE = 10_000
FAIR = SlurmRules(
    priority_type=MULTIFACTOR,
    priority_weight_fair_share=FAIR_SHARE,
    priority_weight_age=1000,
    priority_weight_job_size=1000,
)
SITES = ("one partition", "three partitions", "fair share", "pbs")
NODES = {"SDSC-DS": 8, "SDSC-BLUE": 8, "ANL-Intrepid": 256, "ALCF-Theta": 16, "LANL-CM5": 32}
"""Processors (Theta: nodes) that are a node of the twin; jobs take whole ones."""


class Rung(NamedTuple):
    """A way to hand run times over to the scheduler.

    Attributes:
        estimates: requests, predictions or exact runtimes.
        order: of the queue.
        plans: estimates are TimeMin or soft_walltime, too.
        factor: a job stands behind jobs submitted later by that many times its length,
        hours: and by at most that many hours;
        share: or, if given, by at most that share of the longest wait today.
        weight: the largest SiteFactor beside other factors, as a share of the weight of fair
            share; None: what the age factor adds in a day.
    """

    estimates: str
    order: str = "sjf-aging"
    plans: bool = False
    factor: int = 4
    hours: int = 24
    weight: float | None = None
    share: float | None = None

    @property
    def name(self) -> str:
        """The rung in a few words."""
        bound = f"{self.hours} h" if self.share is None else f"{self.share:g} longest"
        aging = f" {self.factor}x, {bound}" if self.order == "sjf-aging" else ""
        weight = "" if self.weight is None else f", factor {self.weight:g} F"
        parts = [f"{self.order}{aging}{weight}"] if self.order != "fcfs" else []
        return f"{self.estimates}: {' + '.join(parts + ['plans'] * self.plans) or 'nothing'}"

    def semantics(self, policy: str, rules: SlurmRules | None) -> Semantics:
        """Return the rules of a twin on this rung."""
        return Semantics(
            policy=policy,
            slurm=rules,
            order=self.order,
            estimated_backfilling=self.plans,
            estimated_running=self.plans,
            site_factor=None if self.weight is None else round(self.weight * FAIR_SHARE),
        )

    def bound(self, today: Sequence[Play]) -> int:
        """Return the most seconds by which a job stands behind jobs submitted later."""
        if self.share is None:
            return HOUR * self.hours
        return round(self.share * gains.of(today, lambda play: play.longest_wait).mean)


TODAY = Rung(REQUESTED, "fcfs")
AGED = ((2, 24), (4, 24), (4, 48), (8, 24))
EVERYWHERE = (
    TODAY,
    Rung(REQUESTED, "sjf"),
    Rung(METHOD, "sjf"),
    Rung(METHOD, "fcfs", plans=True),
    Rung(EXACT, "fcfs", plans=True),
)
BY_LENGTH = (
    *EVERYWHERE,
    Rung(REQUESTED),
    *(Rung(METHOD, factor=factor, hours=hours) for factor, hours in AGED),
    Rung(METHOD, plans=True),
    Rung(EXACT),
    Rung(EXACT, plans=True),
)
BESIDE_FAIR_SHARE = (
    *EVERYWHERE,
    Rung(METHOD),
    *(Rung(METHOD, weight=weight) for weight in (0.25, 0.5, 1, 2)),
    Rung(REQUESTED, weight=1),
    Rung(METHOD, plans=True, weight=1),
    Rung(EXACT, weight=1),
)
BOUNDS = (
    TODAY,
    Rung(METHOD),
    Rung(REQUESTED, share=0.25),
    *(Rung(METHOD, share=share) for share in (0.15, 0.25, 0.35, 0.5)),
    *(Rung(METHOD, factor=2, share=share) for share in (0.15, 0.25, 0.35)),
)
RUNGS = {name: BESIDE_FAIR_SHARE if name == "fair share" else BY_LENGTH for name in SITES}


class Outcome(NamedTuple):
    """A rung of a site on a log; shares are changes against today, negative for less.

    Attributes:
        wait, wait_low, wait_high: change of the mean wait, and the ends of its interval.
        slowdown, slowdown_low, slowdown_high: likewise of the bounded slowdown.
        longest: the longest wait as a multiple of today's.
        worst: the same of the class of sizes or requests that loses most.
        users: share of the users that wait longer by more than a tenth.
        hours: the mean wait today, and on this rung.
    """

    wait: float
    wait_low: float
    wait_high: float
    slowdown: float
    slowdown_low: float
    slowdown_high: float
    longest: float
    worst: float
    users: float
    hours: tuple[float, float]

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval of wait or slowdown is a loss."""
        return max(self.wait_low, self.slowdown_low) > 0


@dataclass(frozen=True, slots=True)
class Log:
    """A log, and what was predicted of its jobs."""

    trace: Trace
    cores: int | None
    predictions: Integers

    def estimates(self, name: str) -> Estimates:
        """Return a source of estimates that asks no method again."""
        if name != METHOD:
            return Estimates.named(name)

        return Estimates(
            name, known=lambda workload: self.predictions[places_of(workload, self.trace)]
        )


def read_log(path: Path, jobs: int, *, last: bool) -> Log:
    """Read the first or last jobs of a log, and ask the method about each of them."""
    whole = read_swf(str(path))
    trace = whole.select(np.arange(len(whole)) >= len(whole) - jobs) if last else whole
    trace = first_jobs(trace, jobs)
    cores = next((each for name, each in NODES.items() if path.name.startswith(name)), None)
    return Log(trace, cores, predictions_of(trace))


def predictions_of(trace: Trace) -> Integers:
    """Ask the method about each job, in a schedule of EASY by requests; 0 for other lines."""
    workload = prepare(trace)
    by_requests = Semantics(
        estimated_order=False, estimated_backfilling=False, estimated_running=False
    )
    found = np.zeros(len(trace), np.int64)
    found[places_of(workload, trace)] = simulate(
        workload, by_requests, Estimates.named(METHOD)
    ).estimate
    return found


def places_of(workload: Workload, trace: Trace) -> Integers:
    """Return the places of a workload's jobs among the lines of a trace."""
    return np.searchsorted(trace.line, workload.trace.line)


def site_of(name: str, log: Log) -> tuple[BacktestSite, str, SlurmRules | None]:
    """Return a log with the queues of a site, the policy, and its rules today."""
    policy = PBS if name == "pbs" else SLURM
    rules = {"fair share": FAIR, "pbs": None}.get(name, SlurmRules())
    trace = log.trace
    if name == "three partitions":
        nodes = prepare(trace, cores_per_node=log.cores).processors_of_machine
        trace = in_partitions(trace, int(SHARE_OF_LONG * nodes) * (log.cores or 1))
        rules = SlurmRules(cluster=three_partitions(nodes))
    site = BacktestSite(
        trace=trace,
        semantics=TODAY.semantics(policy, rules),
        cores_per_node=log.cores,
        groupings=groupings_of(log.trace, users={}, queues={}, accounts={}),
    )
    return site, policy, rules


def in_partitions(trace: Trace, processors_of_long: int) -> Trace:
    """Return the trace with the partitions short, long and wide as queues."""
    fits = trace.processors <= processors_of_long
    queue = np.where(trace.requested_time <= SHORT, 1, np.where(fits, 2, 3))
    header = {**trace.header, "Queue": "1 short\n2 long\n3 wide"}
    return replace(trace, queue=queue, header=header)


def three_partitions(nodes: int) -> SlurmCluster:
    """Return a cluster of which two partitions have all nodes, and one most of them."""
    sizes = {"short": nodes, "long": int(SHARE_OF_LONG * nodes), "wide": nodes}
    partitions = tuple(
        SlurmPartition(name=name, ranges=((0, size),), exclusive=True)
        for name, size in sizes.items()
    )
    return SlurmCluster(groups=((nodes, 1, 1),), partitions=partitions)


def bound_precedence(factor: int, most: int) -> None:
    """Set the factor of lengths and the largest precedence in seconds, in place of a backtest's."""
    rules_of_twins.LENGTH_FACTOR = factor  # type: ignore[misc]
    rules_of_twins.MOST_PRECEDENCE = most  # type: ignore[misc]


def plays_of(site: BacktestSite, log: Log, rung: Rung, rules: Semantics, shakes: int) -> list[Play]:
    """Play a rung on the log and on its shaken copies."""
    found = []
    for repetition in range(shakes + 1):
        trace = shaken(site.trace, SHAKE_SECONDS, repetition) if repetition else site.trace
        schedules = [
            simulate(workload, rules, log.estimates(rung.estimates))
            for workload in site.workloads(trace)
        ]
        found.append(play_of(site, rung.name, repetition, schedules))
    return found


def outcomes_of(
    name: str, log: Log, rungs: Sequence[Rung], shakes: int
) -> Iterator[tuple[str, Outcome]]:
    """Play each of the rungs on a site; yield the rung and what came of it."""
    site, policy, rules = site_of(name, log)
    today = plays_of(site, log, TODAY, site.semantics, shakes)
    for rung in rungs[1:]:
        bound_precedence(rung.factor, rung.bound(today))
        plays = plays_of(site, log, rung, rung.semantics(policy, rules), shakes)
        yield rung.name, compared(site, today, plays)


def compared(site: BacktestSite, today: Sequence[Play], plays: Sequence[Play]) -> Outcome:
    """Compare the plays of a rung with those of today."""
    wait = gains.resampled_gain(today, plays, "wait")
    slowdown = gains.resampled_gain(today, plays, "bounded_slowdown")
    changes = list(changes_of(site.groupings, today, plays))
    harm = harm_of(today, plays, changes)
    return Outcome(
        *(-wait.mean, -wait.high, -wait.low),
        *(-slowdown.mean, -slowdown.high, -slowdown.low),
        longest=harm.longest_factor,
        worst=worst_class(changes, today[0].jobs),
        users=harm.longer_share.get("users", 0.0),
        hours=(gains.mean_wait(today) / HOUR, gains.mean_wait(plays) / HOUR),
    )


def worst_class(changes: Sequence[GroupChanges], jobs: int) -> float:
    """Return the largest factor by which a class of sizes or requests waits longer."""
    return max(
        max(1.0, each.predicted) / max(LONGER_SECONDS, each.today)
        for kind in changes
        if kind.kind in CLASSES and kind.kind != "queues"
        for each in kind.changes
        if each.jobs >= FEWEST_JOBS_SHARE * jobs
    )


Kept = Mapping[str, Mapping[str, Mapping[str, Outcome]]]
"""Outcomes by log, site and rung."""


class Part(NamedTuple):
    """A site on a log: what one process plays at a time."""

    path: Path
    site: str


def play(given: argparse.Namespace, part: Part) -> None:
    """Play the rungs of a site on a log, unless their outcomes are kept."""
    file = file_of(given, part)
    if not file.exists():
        log = read_log(part.path, given.jobs, last=given.last)
        rungs = rungs_of(part.site, given)
        found = dict(outcomes_of(part.site, log, rungs, given.shake))
        file.write_text(json.dumps(found, indent=1))


def kept(given: argparse.Namespace, part: Part) -> dict[str, Outcome]:
    """Return the kept outcomes of a site on a log by rung."""
    found = json.loads(file_of(given, part).read_text())
    return {rung: Outcome(*values) for rung, values in found.items()}


def file_of(given: argparse.Namespace, part: Part) -> Path:
    """Return the file of the outcomes of a site on a log."""
    bounds = ", bounds" if given.bounds else ""
    return Path(given.output, f"{log_name(part.path)}, {part.site}{bounds}.json")


def rungs_of(name: str, given: argparse.Namespace) -> Sequence[Rung]:
    """Return the rungs that are played on a site."""
    return BOUNDS if given.bounds else RUNGS[name]


def log_name(path: Path) -> str:
    """Return the name of a log without its version."""
    return path.name.split(".")[0]


HEADS = ("rung", "wait", "slowdown", "longest", "worst class", "users", "worse logs")


def summary(rung: str, found: Sequence[Outcome]) -> list[str]:
    """Return a row: changes in the median log, and the worst log of the rest."""
    return [
        rung,
        f"{median(each.wait for each in found):+.0%}",
        f"{median(each.slowdown for each in found):+.0%}",
        f"{max(each.longest for each in found):.2f}",
        f"{max(each.worst for each in found):.2f}",
        f"{max(each.users for each in found):.0%}",
        str(sum(each.is_worse for each in found)),
    ]


def tables(kept: Kept, choice: Sequence[str]) -> Iterator[str]:
    """Yield a table for each site and group of logs, then one for each log and site."""
    groups = {
        "logs of the choice": [log for log in kept if log.startswith(tuple(choice))],
        "other logs": [log for log in kept if not log.startswith(tuple(choice))],
        **{log: [log] for log in kept},
    }
    for title, logs in groups.items():
        for site in next(iter(kept.values())) if logs else ():
            rungs = list(kept[logs[0]][site])
            rows = [summary(rung, [kept[log][site][rung] for log in logs]) for rung in rungs]
            waits = ", ".join(f"{kept[log][site][rungs[0]].hours[0]:.1f} h" for log in logs)
            yield f"{title}, {site} (mean wait today {waits})\n\n{text_table(HEADS, rows)}"


def main() -> None:
    """Play the logs, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument("--choice", action="append", default=[], help="a log that decides")
    parser.add_argument("--site", action="append", choices=SITES, help="only this one")
    parser.add_argument("--jobs", type=int, default=10_000, help="first jobs of each log")
    parser.add_argument("--last", action="store_true", help="last jobs of each log instead")
    parser.add_argument("--bounds", action="store_true", help="the order by other bounds instead")
    parser.add_argument("--shake", type=int, default=1, help="repetitions, shaken")
    parser.add_argument("--processes", type=int, help="default: one per core")
    parser.add_argument("--distributed", metavar="dask:ADDRESS", help="workers of a Dask scheduler")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIRECTORY")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    sites = given.site or SITES
    parts = [Part(path, site) for path in given.logs for site in sites]
    plays = in_parallel(
        partial(play, given), parts, processes=given.processes, distributed=given.distributed
    )
    deque(plays, maxlen=0)
    outcomes = {
        log_name(path): {site: kept(given, Part(path, site)) for site in sites}
        for path in given.logs
    }
    print("\n".join(tables(outcomes, given.choice)))


if __name__ == "__main__":
    main()
