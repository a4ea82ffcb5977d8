"""Tells starts from recorded states of real Slurms' plays by two policies and by the twin.

    .venv/bin/python research/fast_motion/told_by_policies.py TRACES DIR...

Each DIR is one of ``slurm_play.py`` with one partition of whole nodes, as results/starts.txt has
them. First it prints how near whole schedules are to the real one: of the twin of that release, of
the twin with the rule of Slurm 25.05 about the ends that a plan waits for, and of two policies of
papers. Then every 90 minutes of the play its queue is played forward, with the medians that
attention predicts, as a service does, and with the runtimes that came.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from forecast_play import as_taken, played_run
from installation import Window
from msgspec.structs import replace as with_fields
from recorded_plays import RecordedPlay, read_play, rows_in, rules_of, starts_under, twin_starts
from slurm_play import window_of

from predictors.jobs import Completion
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess
from simulator.scheduling.estimates import REQUESTED, Estimates
from simulator.scheduling.forecast import (
    QUANTILE_GRID,
    QueuedJobs,
    Snapshot,
    forecast,
    median_of,
)
from simulator.scheduling.semantics import SLURM, Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.slurm_rules import SlurmRules
from simulator.scheduling.workload import prepare
from simulator.traces.trace import SWF_FIELDS, Integers, Trace

EVERY, HOUR, MINUTE, NEAR, INTERVAL = 5400, 3600, 60, 600, 31
RELEVANT_ENDS = 2505
METHOD = "attention"
POLICIES = ("conservative", "easy")


class Medians:
    """Median runtimes by a method that learns which runs end in a play.

    Args:
        history: runs that ended before, in the order of their ends.
        runs: of the play; all times are seconds of it.
    """

    def __init__(self, history: Sequence[Completion], runs: Sequence[Completion]) -> None:
        self._player = InProcess({METHOD: MethodSpec.parse(METHOD).predictor()})
        self._player.observe(history)
        self._runs = runs
        self._to_end = sorted(runs, key=lambda run: run.end_time)

    def advance(self, at: int) -> None:
        """Learn the runs that have ended until a second."""
        ended = [run for run in self._to_end if run.end_time <= at]
        self._to_end = self._to_end[len(ended) :]
        self._player.observe(ended)

    def runtimes(self, places: Integers, at: int, ages: Integers | None = None) -> Integers:
        """Return the runtimes of jobs as of a second, longer than their ages if they run."""
        found = np.empty(len(places), np.int64)
        for row, place in enumerate(places.tolist()):
            submission = with_fields(self._runs[place].submission, submit_time=float(at))
            elapsed = None if ages is None else float(ages[row])
            quantiles = self._player.quantiles(METHOD, submission, QUANTILE_GRID, elapsed)
            limit = submission.requested_walltime
            found[row] = limit if quantiles is None else min(limit, median_of(quantiles))
        return np.maximum(found, 1 if ages is None else ages + 1)


class Play(NamedTuple):
    """A play whose queue is told its starts.

    Attributes:
        rules: of its Slurm.
        processors: of the machine.
        taken: processors of the whole nodes that each job takes.
        medians: of the runtimes, as they are predicted.
    """

    jobs: RecordedPlay
    rules: SlurmRules
    processors: int
    taken: Integers
    medians: Medians


def play_in(directory: Path, traces: Path) -> Play:
    """Return the first play of a directory, and what the log before it lets a method predict."""
    notes = json.loads((directory / "play.json").read_text())
    jobs = read_play(directory / "first.csv.gz")
    rules = rules_of(directory / "site", notes["first"]["cycle_seconds"])
    assert isinstance(rules, SlurmRules)  # noqa: S101 - not one of PBS
    assert rules.cluster is not None  # noqa: S101 - the site has one
    cpus = rules.cluster.groups[0][1]
    return Play(
        jobs=jobs,
        rules=rules,
        processors=rules.cluster.cpus,
        taken=-(-jobs.size // cpus) * cpus,
        medians=medians_of(directory, window_in(notes["played"], traces), cpus),
    )


def window_in(played: Mapping[str, str], traces: Path) -> Window:
    """Return the window of a log that was played, by the notes of the play."""
    options = argparse.Namespace(
        log=traces / Path(played["log"]).name,
        first_day=float(played["first_day"]),
        days=float(played["days"]),
        most_jobs=int(played["most_jobs"]),
    )
    return window_of(options)


def medians_of(directory: Path, window: Window, cpus: int) -> Medians:
    """Return the medians of a method that has learned the runs before a play."""
    logged = window.runs(lambda _: "all", 0)
    numbers = window.workload.trace.job.tolist()
    of_job = {number: run.submission for number, run in zip(numbers, logged, strict=True)}
    history = [as_taken(run, cpus) for run in logged if run.end_time <= 0]
    runs = [
        played_run(of_job[int(row["job"])], row, str(place), cpus)
        for place, row in enumerate(rows_in(directory / "first.csv.gz"))
    ]
    return Medians(sorted(history, key=lambda run: run.end_time), runs)


def schedules(play: Play) -> Iterator[tuple[str, Integers]]:
    """Yield the names of whole schedules and their starts."""
    later = replace(play.rules, release=RELEVANT_ENDS)
    yield "twin", twin_starts(play.jobs, play.rules, play.processors)
    yield "twin with the rule of 25.05", twin_starts(play.jobs, later, play.processors)
    for policy in POLICIES:
        yield policy, starts_under(policy, play.jobs, play.processors)


def told_at(play: Play, at: int, *, are_known: bool) -> Iterator[Integers]:
    """Yield the seconds until the starts of the waiting jobs by each policy, then by the twin."""
    jobs, waiting = play.jobs, waiting_at(play, at)
    running = np.flatnonzero((jobs.start <= at) & (jobs.end > at))
    ages = at - jobs.start[running]
    if are_known:
        runtimes = jobs.end[running] - jobs.start[running], jobs.end[waiting] - jobs.start[waiting]
    else:
        runtimes = play.medians.runtimes(running, at, ages), play.medians.runtimes(waiting, at)
    snapshot = Snapshot(
        processors=max(play.processors, int(play.taken[running].sum())),
        running=columns(play, running, runtimes[0], ages),
        waiting=columns(play, waiting, np.maximum(1, runtimes[1]), at - jobs.submit[waiting]),
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


def errors(play: Play, *, are_known: bool) -> tuple[Integers, dict[str, Integers]]:
    """Return the seconds to come of all told starts, and the errors of each teller."""
    to_come: list[Integers] = []
    found: dict[str, list[Integers]] = defaultdict(list)
    for at in range(EVERY, int(play.jobs.start.max()), EVERY):
        waiting = waiting_at(play, at)
        if not len(waiting):
            continue
        play.medians.advance(at)
        to_come.append(play.jobs.start[waiting] - at)
        told = told_at(play, at, are_known=are_known)
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
    for kind in ("medians", "known"):
        to_come, found = errors(play, are_known=kind == "known")
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
