"""Tells starts from recorded states of real Slurms' plays by two policies and by the twin.

    .venv/bin/python research/fast_motion/told_by_policies.py TRACES DIR...

Each DIR is one of ``slurm_play.py`` with one partition of whole nodes, as results/starts.txt has
them. First it prints how near whole schedules are to the real one: of the twin of that release, of
the twin with the rule of Slurm 25.05 about the ends that a plan waits for, and of two policies of
papers. Then every 90 minutes of the play its queue is played forward, with the runtimes that came
and with guessed ones: the request times the median share of the user's last 20 runs before.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from recorded_plays import RecordedPlay, read_play, rows_in, rules_of, starts_under, twin_starts

from simulator.scheduling.estimates import REQUESTED, Estimates
from simulator.scheduling.forecast import QueuedJobs, Snapshot, forecast, running_runtime
from simulator.scheduling.semantics import SLURM, Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.slurm_rules import SlurmRules
from simulator.scheduling.workload import prepare
from simulator.traces.swf import read_swf
from simulator.traces.trace import SWF_FIELDS, Integers, Trace

EVERY, HOUR, MINUTE, NEAR, INTERVAL = 5400, 3600, 60, 600, 31
RELEVANT_ENDS = 2505
MOST_RUNS, FEWEST_RUNS, LAST_RUNS = 20_000, 3, 20
POLICIES = ("conservative", "easy")


class Play(NamedTuple):
    """A play whose queue is told its starts.

    Attributes:
        rules: of its Slurm.
        processors: of the machine.
        taken: processors of the whole nodes that each job takes.
        runtimes: of each job in seconds, as they came and as they are guessed.
    """

    jobs: RecordedPlay
    rules: SlurmRules
    processors: int
    taken: Integers
    runtimes: Mapping[str, Integers]


def play_in(directory: Path, traces: Path) -> Play:
    """Return the first play of a directory, and what the log before it lets one guess."""
    notes = json.loads((directory / "play.json").read_text())
    jobs = read_play(directory / "first.csv.gz")
    rules = rules_of(directory / "site", notes["first"]["cycle_seconds"])
    assert isinstance(rules, SlurmRules)  # noqa: S101 - not one of PBS
    assert rules.cluster is not None  # noqa: S101 - the site has one
    cpus = rules.cluster.groups[0][1]
    numbers = [int(row["job"]) for row in rows_in(directory / "first.csv.gz")]
    log = read_swf(traces / Path(notes["played"]["log"]).name)
    shares = guessed_shares(log, numbers, float(jobs.submit[0]))
    return Play(
        jobs=jobs,
        rules=rules,
        processors=rules.cluster.cpus,
        taken=-(-jobs.size // cpus) * cpus,
        runtimes={
            "known": np.maximum(1, jobs.end - jobs.start),
            "guessed": np.maximum(1, (shares * jobs.limit).astype(np.int64)),
        },
    )


def guessed_shares(log: Trace, numbers: list[int], first: float) -> Any:
    """Return the share of its request that each job is guessed to use.

    Args:
        numbers: of the jobs in the log.
        first: submission of the first one in the play.
    """
    places = {number: place for place, number in enumerate(log.job.tolist())}
    users = [int(log.user[places[number]]) for number in numbers]
    begin = float(log.submit[places[numbers[0]]]) - first
    ends = log.submit + np.maximum(log.wait, 0) + log.run
    is_known = (ends < begin) & (log.run > 0) & (log.requested_time > 0)
    known = np.flatnonzero(is_known)[np.argsort(ends[is_known], kind="stable")][-MOST_RUNS:]
    of_user: dict[int, list[float]] = defaultdict(list)
    for place in known.tolist():
        share = min(1.0, float(log.run[place] / log.requested_time[place]))
        of_user[int(log.user[place])].append(share)
    usual = median(share for shares in of_user.values() for share in shares)
    return np.array(
        [
            median(of_user[user][-LAST_RUNS:]) if len(of_user[user]) >= FEWEST_RUNS else usual
            for user in users
        ]
    )


def schedules(play: Play) -> Iterator[tuple[str, Integers]]:
    """Yield the names of whole schedules and their starts."""
    later = replace(play.rules, release=RELEVANT_ENDS)
    yield "twin", twin_starts(play.jobs, play.rules, play.processors)
    yield "twin with the rule of 25.05", twin_starts(play.jobs, later, play.processors)
    for policy in POLICIES:
        yield policy, starts_under(policy, play.jobs, play.processors)


def told_at(play: Play, at: int, runtimes: Integers, *, are_known: bool) -> Iterator[Integers]:
    """Yield the seconds until the starts of the waiting jobs by each policy, then by the twin."""
    jobs = play.jobs
    running = np.flatnonzero((jobs.start <= at) & (jobs.end > at))
    ages, limits = at - jobs.start[running], jobs.limit[running]
    rest = ages + 1 if are_known else [
        running_runtime(*each, "double")
        for each in zip(runtimes[running].tolist(), limits.tolist(), ages.tolist(), strict=True)
    ]  # fmt: skip
    left = np.maximum(runtimes[running], rest) if are_known else np.array(rest, np.int64)
    waiting = waiting_at(play, at)
    snapshot = Snapshot(
        processors=max(play.processors, int(play.taken[running].sum())),
        running=columns(play, running, left, ages),
        waiting=columns(play, waiting, runtimes[waiting], at - jobs.submit[waiting]),
    )
    for policy in POLICIES:
        yield forecast(snapshot, Semantics.adjusted("regular", policy=policy)).start
    yield twin_of(snapshot, play)


def waiting_at(play: Play, at: int) -> Integers:
    """Return the jobs that wait at a second."""
    return np.flatnonzero((play.jobs.submit <= at) & (play.jobs.start > at))


def columns(play: Play, rows: Integers, runtimes: Integers, ages: Integers) -> QueuedJobs:
    """Return jobs in the order of submission, whose order is that of the queue."""
    nothing = np.zeros(len(rows), np.int64)
    return QueuedJobs(
        processors=play.taken[rows],
        request=play.jobs.limit[rows],
        estimate=play.jobs.limit[rows],
        runtime=runtimes,
        age=ages,
        priority=np.zeros(len(rows)),
        owner=nothing,
        array=nothing - 1,
        array_limit=nothing,
    )


def twin_of(snapshot: Snapshot, play: Play) -> Integers:
    """Return the seconds until the starts of the waiting jobs by the twin.

    Running jobs are submitted when they started: they find an empty machine. All others come now.
    """
    jobs, running = snapshot.running + snapshot.waiting, len(snapshot.running)
    now = int(snapshot.running.age.max(initial=0)) + MINUTE
    submit = np.full(len(jobs), now)
    submit[:running] -= snapshot.running.age
    unknown = np.full(len(jobs), -1, np.int64)
    known: dict[str, Any] = {
        **dict.fromkeys((*SWF_FIELDS, "line"), unknown),
        "job": np.arange(len(jobs)),
        "submit": submit.astype(float),
        "run": jobs.runtime.astype(float),
        "requested_processors": jobs.processors,
        "requested_time": jobs.request.astype(float),
        "queue": np.zeros(len(jobs), np.int64),
    }
    header = {"MaxProcs": str(play.processors), "Queue": "0 all", "UnixStartTime": "0"}
    workload = prepare(Trace(**known, header=header), overrun="keep")
    workload = replace(workload, submit=workload.submit + workload.origin, origin=0)
    semantics = Semantics.adjusted("regular", policy=SLURM, slurm=play.rules)
    found = np.empty(len(jobs), np.int64)
    found[workload.trace.job] = simulate(workload, semantics, Estimates.named(REQUESTED)).start
    return np.maximum(0, found[running:] - now)


def errors(play: Play, kind: str) -> tuple[Integers, dict[str, Integers]]:
    """Return the seconds to come of all told starts, and the errors of each teller."""
    to_come: list[Integers] = []
    found: dict[str, list[Integers]] = defaultdict(list)
    for at in range(EVERY, int(play.jobs.start.max()), EVERY):
        waiting = waiting_at(play, at)
        if not len(waiting):
            continue
        to_come.append(play.jobs.start[waiting] - at)
        told = told_at(play, at, play.runtimes[kind], are_known=kind == "known")
        for name, starts in zip((*POLICIES, "twin"), told, strict=True):
            found[name].append(starts - to_come[-1])
    return np.concatenate(to_come), {name: np.concatenate(each) for name, each in found.items()}


def print_play(directory: Path, traces: Path) -> None:
    """Print how near schedules and told starts of a play are."""
    play = play_in(directory, traces)
    waits = float(play.jobs.wait.mean()) / MINUTE
    print(f"{directory.name}: {len(play.taken)} jobs, mean wait {waits:.0f} min", flush=True)
    for name, starts in schedules(play):
        apart, wait = np.abs(starts - play.jobs.start), (starts - play.jobs.submit).mean()
        near = 100 * (apart <= INTERVAL).mean()
        print(
            f"  {name:30} within {INTERVAL} s {near:4.0f}%, mean difference "
            f"{apart.mean() / MINUTE:5.0f} min, mean wait {wait / MINUTE:4.0f} min",
            flush=True,
        )
    for kind in play.runtimes:
        to_come, found = errors(play, kind)
        for name, error in found.items():
            apart, soon = np.abs(error), to_come < HOUR
            print(
                f"  {kind:7} {name:13} told {len(error)}, median {np.median(apart) / MINUTE:5.0f} "
                f"mean {apart.mean() / MINUTE:4.0f} bias {error.mean() / MINUTE:+5.0f} min, "
                f"within 10 min of < 1 h {100 * (apart[soon] <= NEAR).mean():3.0f}%",
                flush=True,
            )


if __name__ == "__main__":
    for given in sys.argv[2:]:
        print_play(Path(given), Path(sys.argv[1]))
