"""The cluster of the demo: jobs of the sample trace in a queue of today, told to the service.

The trace is moved so that it ends in the past week. Then short jobs of the same users come as on
a busy day, are scheduled by EASY backfilling beforehand, and start and end as the clock goes on.
"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from msgspec.structs import replace

from predictors.jobs import Completion
from simulator.cli.console import err

if TYPE_CHECKING:
    from simulator.replay.remote import Client

WEEK = 7 * 86400.0

PROCESSORS = 128

SHORTEST, LONGEST = 120.0, 3600.0
"""Shortest and longest runtime of the jobs that are played: visitors see them start and end.
"""

BEFORE, AFTER = 3 * 3600.0, 24 * 3600.0
"""Seconds of the busy day before and after the demo begins."""

LOAD = 1.15
"""Work that comes, per processor: more than the machine can do, so that a queue forms."""

SNAPSHOT_SECONDS, STEP_SECONDS = 5.0, 1.0

SEED = 7


def moved_to_today(runs: Sequence[Completion], now: float) -> list[Completion]:
    """Return the runs moved by whole weeks, so that the last ended in the week before ``now``."""
    last = max(run.end_time for run in runs)
    weeks = (now - last) // WEEK * WEEK
    return [later(run, weeks) for run in runs]


def later(run: Completion, seconds: float) -> Completion:
    """Return a run with all times moved by ``seconds``."""
    submission = replace(run.submission, submit_time=run.submission.submit_time + seconds)
    return replace(
        run,
        submission=submission,
        start_time=run.start_time + seconds,
        end_time=run.end_time + seconds,
    )


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
    from simulator.scheduling.estimates import Estimates
    from simulator.scheduling.semantics import Semantics
    from simulator.scheduling.simulate import simulate
    from simulator.scheduling.workload import prepare
    from simulator.traces.completions import trace_of

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
    from simulator.replay.remote import fields_of

    fields = fields_of(replace(run.submission, requested_processors=processors_of(run)))
    fields.pop("cluster", None)
    return fields


def play_on(client: "Client", day: Day, stop: Event) -> None:
    """Play the day on the real clock until ``stop``: send its submissions, runs and queues."""
    began = time.time()
    client.observe(*day.ended(0.0, began))
    for run in day.submitted(began - BEFORE, began):
        if run.end_time > began:
            client.predict(run.submission)
    hand_over(client, day, began)
    for since, now in moments(began, stop):
        for run in day.submitted(since, now):
            client.predict(run.submission)
        client.observe(*day.ended(since, now))
        if now // SNAPSHOT_SECONDS > since // SNAPSHOT_SECONDS:
            hand_over(client, day, now)


def moments(began: float, stop: Event) -> Iterator[tuple[float, float]]:
    """Yield the begin and the end of each step of the clock, until ``stop``."""
    since = began
    while not stop.wait(STEP_SECONDS):
        now = time.time()
        yield since, now
        since = now


def hand_over(client: "Client", day: Day, now: float) -> None:
    """Send the queue at ``now`` to the service."""
    client.call("PUT", "/v1/clusters/default/snapshot", day.queue(now))


def play_until(url: str, day: Day, stop: Event) -> None:
    """Run ``play_on`` in this thread, and end when the service does."""
    from simulator.replay.remote import Client, RemoteError

    try:
        with Client(url) as client:
            play_on(client, day, stop)
    except (ConnectionError, RemoteError) as error:
        if not stop.is_set():
            err.print(f"The demo's cluster has stopped: {error}")
