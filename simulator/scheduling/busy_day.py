"""A busy day of a small cluster: invented jobs with known ends, some of them in the future.

Jobs are drawn from the short ones of a log, come faster than the machine can run them, and are
scheduled by EASY backfilling.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from predictors.jobs import Completion
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import prepare
from simulator.traces.completions import trace_of
from terminal.client import fields_of

PROCESSORS = 128

SHORTEST, LONGEST = 120.0, 3600.0
"""Shortest and longest runtime: visitors see jobs start and end."""

BEFORE, AFTER = 3 * 3600.0, 24 * 3600.0
"""Seconds of the day before and after ``now``."""

LOAD = 1.15
"""Work that comes, per processor: more than the machine can do, so that a queue forms."""

SEED = 7


def busy_day(runs: Sequence[Completion], now: float) -> list[Completion]:
    """Return a day of jobs around ``now``, drawn from ``runs`` and scheduled by EASY backfilling.

    Submission, start and end of each job are known beforehand, some of them in the future.
    """
    chooser = random.Random(SEED)  # noqa: S311 - no secret
    small = [run for run in runs if processors_of(run) <= PROCESSORS // 4]
    short = [run for run in small if SHORTEST <= run.runtime <= LONGEST]
    if not short:
        return []
    work = sum(run.runtime * processors_of(run) for run in short) / len(short)
    gap = work / (PROCESSORS * LOAD)
    runs_of_day, at, serial = [], now - BEFORE, 900_000
    while at < now + AFTER:
        at += chooser.expovariate(1.0 / gap)
        serial += 1
        run = chooser.choice(short)
        submission = replace(run.submission, submit_time=float(int(at)), job_id=str(serial))
        runs_of_day.append(replace(run, submission=submission))
    return scheduled(runs_of_day)


def scheduled(runs: Sequence[Completion]) -> list[Completion]:
    """Return the runs, in the order of their submission, as EASY backfilling would start them."""
    trace = trace_of(runs).trace
    workload = prepare(trace, processors=PROCESSORS)
    starts = simulate(workload, Semantics(policy="easy"), Estimates.named("requested")).start
    columns = zip(runs, starts.tolist(), workload.runtime.tolist(), strict=True)
    return [
        replace(
            run,
            start_time=float(trace.unix_start + start),
            end_time=float(trace.unix_start + start + runtime),
            runtime=float(runtime),
        )
        for run, start, runtime in columns
    ]


def processors_of(run: Completion) -> int:
    """Return the processors of a run, at most those of the machine."""
    return min(run.submission.requested_processors or 1, PROCESSORS)


@dataclass(frozen=True)
class Day:
    """A busy day: jobs with times of submission, start and end, in the past and the future."""

    runs: Sequence[Completion]

    def ended(self, since: float, now: float) -> list[Completion]:
        """Return the runs that ended after ``since``, until ``now``, in the order of their ends."""
        found = [run for run in self.runs if since < run.end_time <= now]
        return sorted(found, key=lambda run: run.end_time)

    def submitted(self, since: float, now: float) -> list[Completion]:
        """Return the runs that were submitted after ``since``, until ``now``."""
        return [run for run in self.runs if since < run.submission.submit_time <= now]

    def queue(self, now: float) -> dict[str, object]:
        """Return the queue at a moment as the body of ``PUT /v1/clusters/{cluster}/snapshot``."""
        queued = [run for run in self.runs if run.submission.submit_time <= now < run.end_time]
        return {
            "taken_at": now,
            "pools": [{"processors": PROCESSORS}],
            "policy": "easy",
            "running": [
                {**job_fields(run), "start_time": run.start_time}
                for run in queued
                if run.start_time <= now
            ],
            "waiting": [job_fields(run) for run in queued if run.start_time > now],
        }


def job_fields(run: Completion) -> dict[str, object]:
    """Return a job as an entry of ``PUT /v1/clusters/{cluster}/snapshot``."""
    fields = fields_of(replace(run.submission, requested_processors=processors_of(run)))
    fields.pop("cluster", None)
    return fields
