"""Plays the order by the ratio of wait and length beside fair share, by the twin of Slurm.

    .venv/bin/python research/order_fair_share.py LOG...
    .venv/bin/python research/order_fair_share.py LOG... --pairs
    .venv/bin/python research/order_fair_share.py LOG... --within

The last 10,000 jobs of each log are played under fair share alone, and with site factors of up to
so many times its weight. An account's share of processor time is compared week by week: the mean of
the differences over the weeks, and their mean without signs, of the account that moves most.
With --pairs fair share alone is played, and the pairs are counted that an order within users or
accounts could exchange. With --within these are exchanged: at each submission the waiting jobs of
a user, or of an account, pass their priorities on among themselves in the order of the ratio, so
that the priorities of each party stay what fair share, age and size made them.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from ladder import FAIR, FAIR_SHARE, NODES, log_name
from numpy.typing import NDArray
from order_weeks import WEEK, at_places, lengths_of

from predictors.response_ratio import LONGEST, OFFSET, SHORTEST
from simulator.engine.loop import DONE
from simulator.reports.tables import text_table
from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.measures import bounded_slowdown
from simulator.scheduling.ratio_rules import RESPONSE_RATIO, RatioRules
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import Schedule, initial_state, run, simulate
from simulator.scheduling.slurm_rules import SlurmRules
from simulator.scheduling.workload import Workload, prepare
from simulator.traces.swf import read_swf
from simulator.traces.trace import Integers, Trace

PLAYED, HISTORY = 10_000, 15_000
"""Number of a log's last jobs that are played, and of those before them that are learned."""

FEWEST_ACCOUNTS = 4
"""Logs with fewer groups have users as accounts."""

SITES = {
    "share 10000, age 1000, size 1000": FAIR,
    "share 10000, age 1000": replace(FAIR, priority_weight_job_size=0),
    "share 10000, age 1000, size 1000, half-life 14 d": replace(
        FAIR, priority_decay_half_life=14 * 86400
    ),
}
"""The weights of three sites, and how usage decays where it is not Slurm's default of 7 days."""

LARGEST = (0.1, 0.25, 1.0, 2.0, 4.0)
"""Largest site factors, as multiples of the weight of fair share."""

MOMENTS = 6 * 3600
"""Seconds between the moments at which pairs of waiting jobs are counted."""

MOST_WAITING = 1500
"""Number of waiting jobs of a moment of which pairs are counted."""

RULES = Semantics(policy="slurm", estimated_backfilling=False, estimated_running=False)

Shares = NDArray[np.float64]


class Effect(NamedTuple):
    """An order beside fair share alone: relative changes, and shares in points.

    Attributes:
        longest: ratio of the longest waits.
        weekly: mean difference of an account's share of a week without signs, at most.
        whole: the same with signs.
    """

    wait: float
    slowdown: float
    longest: float
    weekly: float
    whole: float


def weekly_shares(schedule: Schedule) -> Shares:
    """Return the share of each account in the processor time of each week."""
    workload = schedule.workload
    accounts = accounts_of(workload)
    used = np.zeros((int(schedule.end.max() // WEEK) + 1, int(accounts.max()) + 1))
    for week in range(len(used)):
        begin, end = week * WEEK, (week + 1) * WEEK
        ran = np.minimum(schedule.end, end) - np.maximum(schedule.start, begin)
        seconds = np.maximum(ran, 0) * workload.processors
        used[week] = np.bincount(accounts, seconds, used.shape[1])
    shares: Shares = used / np.maximum(used.sum(axis=1, keepdims=True), 1)
    return shares


def accounts_of(workload: Workload) -> Integers:
    """Return the number of each job's account: its group, or its user where there are few."""
    accounts = np.unique(workload.trace.group, return_inverse=True)[1]
    if accounts.max() + 1 < FEWEST_ACCOUNTS:
        accounts = np.unique(workload.trace.user, return_inverse=True)[1]
    found: Integers = accounts
    return found


def shares_of_pairs(schedule: Schedule) -> Shares:
    """Return the shares of pairs that are of one user, and of one account.

    Pairs are those of jobs that wait at the same time and whose runtimes differ by a factor of 2 or
    more, weighted by the difference: what an order gains, it gains by exchanging such a pair.
    """
    workload, found = schedule.workload, np.zeros(3)
    parties = workload.trace.user, accounts_of(workload)
    random = np.random.default_rng(1)
    for moment in range(int(workload.submit.min()), int(schedule.start.max()), MOMENTS):
        waiting = np.flatnonzero((workload.submit <= moment) & (schedule.start > moment))
        if len(waiting) > MOST_WAITING:
            waiting = random.choice(waiting, MOST_WAITING, replace=False)
        runtime = workload.runtime[waiting].astype(float)
        longer = np.maximum.outer(runtime, runtime)
        shorter = np.minimum.outer(runtime, runtime)
        weights = np.where(longer >= 2 * shorter, longer - shorter, 0.0)
        equal = [np.equal.outer(each[waiting], each[waiting]) for each in parties]
        found += [weights.sum(), *((weights * each).sum() for each in equal)]
    shares: Shares = found[1:] / max(found[0], 1.0)
    return shares


def effect_of(schedule: Schedule, alone: Schedule) -> Effect:
    """Compare a schedule with that of fair share alone."""
    runtime = alone.workload.runtime
    slowdowns = [bounded_slowdown(each.wait, runtime).mean() for each in (schedule, alone)]
    shares, before = weekly_shares(schedule), weekly_shares(alone)
    weeks = min(len(shares), len(before))
    moved = 100 * (shares[:weeks] - before[:weeks])
    return Effect(
        wait=float(schedule.wait.mean() / alone.wait.mean() - 1),
        slowdown=float(slowdowns[0] / slowdowns[1] - 1),
        longest=float(schedule.wait.max() / alone.wait.max()),
        weekly=float(np.abs(moved).mean(axis=0).max()),
        whole=float(np.abs(moved.mean(axis=0)).max()),
    )


Effects = Mapping[tuple[str, str, str], Effect]
"""Effects by site, largest site factor or parties, and length."""


def asked(path: Path, method: str) -> tuple[Workload, Integers]:
    """Return a log's last jobs, and their mean runtimes by a method."""
    trace = prepare(read_swf(str(path))).trace
    trace = trace.select(np.arange(len(trace)) >= len(trace) - PLAYED - HISTORY)
    workload = last_jobs(trace, path)
    places = np.searchsorted(trace.line, workload.trace.line)
    return workload, at_places(lengths_of(trace, method)["mean"], places, workload)


def play_within(path: Path, method: str) -> Effects:
    """Play a log under each site with orders within users and accounts."""
    workload, mean = asked(path, method)
    lengths = {"requests": workload.request, "mean": mean, EXACT: workload.runtime}
    parties = {"in users": workload.trace.user, "in accounts": accounts_of(workload)}
    found = {}
    for site, weights in SITES.items():
        rules = replace(RULES, slurm=finer(weights))
        alone = simulate(workload, rules, Estimates.named(REQUESTED))
        for party, members in parties.items():
            for name, length in lengths.items():
                start = passed_on(initial_state(workload, rules), workload, members, length)
                found[site, party, name] = effect_of(replace(alone, start=start), alone)
    return found


def finer(weights: SlurmRules) -> SlurmRules:
    """Return the same weights in thousandths: Slurm cuts priorities to whole numbers."""
    names = ("priority_weight_fair_share", "priority_weight_age", "priority_weight_job_size")
    return replace(weights, **{name: 1000 * getattr(weights, name) for name in names})


def passed_on(state: Any, workload: Workload, members: Integers, lengths: Integers) -> Integers:
    """Return the starts of jobs whose priorities are passed on within parties.

    Args:
        state: before the first submission, under fair share.
        workload: the jobs.
        members: the party of each job.
        lengths: of jobs in seconds.
    """
    jobs, clock = state.jobs, state.clock
    jobs["estimate"] = workload.request
    own, held = jobs["fixed_score"].copy(), np.clip(lengths, SHORTEST, LONGEST)
    for behind in range(1, len(jobs) + 1):
        clock["pause_at"][0] = behind
        while run(state) != DONE and clock["submitted"].item() < behind:
            pass
        waiting = np.flatnonzero(jobs["start"][:behind] < 0)
        wait = clock["now"].item() - workload.submit[waiting]
        score = own[waiting] + changing_score(state, waiting, wait)
        by_ratio = np.lexsort((-(wait + OFFSET) / held[waiting], members[waiting]))
        by_score = np.lexsort((-score, members[waiting]))
        jobs["fixed_score"][waiting[by_ratio]] = (
            own[waiting[by_ratio]] + score[by_score] - np.arange(len(wait)) - score[by_ratio]
        )
    while run(state) != DONE:
        pass
    starts: Integers = jobs["start"].copy()
    return starts


def changing_score(state: Any, waiting: Integers, wait: Integers) -> Shares:
    """Return the part of waiting jobs' priorities that changes with time, as Slurm computes it."""
    rules = state.rules[0]
    age = np.minimum(1.0, wait / rules["priority_max_age"])
    rank = state.ranking[state.jobs["user"][waiting]] / len(state.users)
    found: Shares = rules["weight_age"] * age + rules["weight_fair_share"] * rank
    return found


def play(path: Path, method: str) -> Effects:
    """Play a log under each site and order."""
    workload, means = asked(path, method)
    mean = Estimates("mean", known=lambda _: means)
    lengths = {"requests": Estimates.named(REQUESTED), "mean": mean}
    found = {}
    for site, weights in SITES.items():
        alone = simulate(workload, replace(RULES, slurm=weights), lengths["requests"])
        for largest in LARGEST:
            ordered = replace(
                RULES,
                slurm=weights,
                order=RESPONSE_RATIO,
                site_factor=round(largest * FAIR_SHARE),
                ratio=RatioRules(overdue_share=0.0),
            )
            for name, length in lengths.items():
                schedule = simulate(workload, ordered, length)
                found[site, f"{largest:g} F", name] = effect_of(schedule, alone)
    return found


HEADS = ("site", "largest", "by", "wait", "slowdown", "longest", "weekly", "whole")


def rows(logs: Sequence[Effects]) -> Iterator[list[str]]:
    """Yield a row for each order: changes in the median log, and the rest in the worst."""
    for site, largest, name in logs[0]:
        effects = [log[site, largest, name] for log in logs]
        yield [
            site,
            largest,
            name,
            f"{median(each.wait for each in effects):+.0%}",
            f"{median(each.slowdown for each in effects):+.0%}",
            f"{max(each.longest for each in effects):.2f}",
            f"{max(each.weekly for each in effects):.1f}",
            f"{max(each.whole for each in effects):.2f}",
        ]


def last_jobs(trace: Trace, path: Path) -> Workload:
    """Return the last jobs of a log, which are played."""
    cores = next((each for name, each in NODES.items() if path.name.startswith(name)), None)
    last = trace.select(np.arange(len(trace)) >= len(trace) - PLAYED)
    return prepare(last, cores_per_node=cores)


def print_pairs(paths: Sequence[Path]) -> None:
    """Print the shares of pairs of each log, and their medians."""
    found = {}
    for path in paths:
        workload = last_jobs(prepare(read_swf(str(path))).trace, path)
        alone = simulate(workload, replace(RULES, slurm=FAIR), Estimates.named(REQUESTED))
        found[log_name(path)] = shares_of_pairs(alone)
    found["median"] = np.median(list(found.values()), axis=0)
    rows = [[name, *(f"{share:.0%}" for share in shares)] for name, shares in found.items()]
    print(text_table(("pairs that wait together", "one user", "one account"), rows))


def main() -> None:
    """Play the logs, and print a table of all, then one of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument("--method", default="attention")
    parser.add_argument("--pairs", action="store_true", help="only count pairs of waiting jobs")
    parser.add_argument("--within", action="store_true", help="order within users and accounts")
    given = parser.parse_args()
    if given.pairs:
        print_pairs(given.logs)
        return
    playing = play_within if given.within else play
    played = {log_name(path): playing(path, given.method) for path in given.logs}
    groups = {f"Median of {len(played)} logs": list(played.values())}
    groups |= {log: [effects] for log, effects in played.items()}
    for title, logs in groups.items():
        print(f"{title}\n\n{text_table(HEADS, list(rows(logs)))}\n")


if __name__ == "__main__":
    main()
