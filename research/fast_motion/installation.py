"""The history and the answers of walltimed in a play where nothing is predicted beforehand."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
from fast_cluster import START
from msgspec.structs import replace

from predictors.jobs import Completion, Status, Submission
from predictors.response_ratio import (
    LONGEST,
    OFFSET,
    OVERDUE_SHARE,
    QUARTER,
    factor_of_steps,
    response_ratio,
    steps_of_ratio,
)
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, steps
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.slurm_cluster import partition_names
from simulator.scheduling.workload import Workload, prepare
from simulator.traces.completions import completions
from simulator.traces.trace import Integers

CLUSTER = "play"

ZERO = int(START) + 2 * 3600
"""Second 0 of the jobs in Unix seconds of the clock, long after all daemons have started."""

UNNAMED = "batch"
"""Name of a job whose log names no executable: every job of Slurm has a name."""

STATUSES: Mapping[str, Status] = {"COMPLETED": Status.COMPLETED, "TIMEOUT": Status.TIMEOUT}


def as_submitted(job: Submission, queue: str) -> Submission:
    """Return a submission of the log under the names that Slurm has for it in a play.

    Slurm knows the log's group as the account, and limits in whole minutes.
    """
    limit = 60.0 * ceil(job.requested_walltime / 60)
    return replace(
        job, requested_walltime=limit, cluster=CLUSTER, user=job.user and f"u{job.user}",
        group=None, project=job.group, queue=queue, application=job.application or UNNAMED,
        requested_memory=None,
    )  # fmt: skip


def words_of(job: Submission) -> Sequence[str]:
    """Return options of sbatch that say whose job it is, and what."""
    user = [f"--uid={job.user}"] if job.user else []
    account = ["-A", job.project] if job.project else []
    return [*user, *account, "-J", str(job.application)]


class Window(NamedTuple):
    """Jobs of a log that are played.

    Attributes:
        workload: the log.
        chosen: places of the jobs in it.
        begin: second of the log that is second 0 of the play.
    """

    workload: Workload
    chosen: Integers
    begin: int

    @property
    def first_after(self) -> int:
        """Seconds of waiting after which a job goes first.

        The last quarter is played by EASY in the order of submission: the log's own waits are those
        of another scheduler, and of jobs that somebody held.
        """
        before = self.begin - self.workload.submit
        quarter = self.workload.trace.select((before > 0) & (before <= QUARTER))
        if not len(quarter):
            return 0
        known = prepare(quarter, processors=self.workload.processors_of_machine, overrun="keep")
        waits = simulate(known, Semantics(), Estimates.named("requested")).wait
        return int(OVERDUE_SHARE * waits.max())

    def runs(self, partition_of: Callable[[str], str], zero: int) -> list[Completion]:
        """Return all runs of the log as Slurm records them in a play.

        Args:
            partition_of: returns the partition of a queue.
            zero: time of second 0 of the play.
        """
        later = zero - self.workload.trace.unix_start - self.workload.origin - self.begin
        queues = map(partition_of, partition_names(self.workload))
        logged = zip(completions(self.workload.trace), queues, strict=True)
        return [moved(run, queue, later) for run, queue in logged]


class Installation(NamedTuple):
    """A service as it is when the window begins.

    Attributes:
        method: the one that answers.
        history: runs that it knows, on the clock of the play, in the order of their ends.
        users: names of the window's users.
        foreseen: what it would answer if the window's jobs started as under EASY, in whole minutes,
            by the log's number of the job.
        first_after: seconds of waiting after which a job goes first.
    """

    method: str
    history: Sequence[Completion]
    users: Sequence[str]
    foreseen: Mapping[int, int]
    first_after: int

    @classmethod
    def of(cls, window: Window, method: str, partition_of: Callable[[str], str]) -> Self:
        """Return the installation that knows the runs of a log that ended before the window.

        Args:
            window: jobs of the log.
            method: the one that answers.
            partition_of: returns the partition of a queue.
        """
        workload, chosen, _ = window
        runs = window.runs(partition_of, ZERO)
        ended = sorted((run for run in runs if run.end_time <= ZERO), key=lambda run: run.end_time)
        alone = prepare(workload.trace.select(chosen), overrun="keep")
        waits = simulate(alone, Semantics(), Estimates.named("requested")).wait
        jobs = [runs[place].submission for place in chosen]
        starts = [job.submit_time + wait for job, wait in zip(jobs, waits.tolist(), strict=True)]
        simulated = [
            run_of(job, start, start + seconds)
            for job, start, seconds in zip(jobs, starts, alone.runtime.tolist(), strict=True)
        ]
        users = sorted({job.user for job in jobs if job.user})
        found = cls(method, ended, users, {}, window.first_after)
        numbers = workload.trace.job[chosen].tolist()
        return found._replace(foreseen=dict(zip(numbers, found.minutes(simulated), strict=True)))

    def minutes(self, runs: Sequence[Completion]) -> list[int]:
        """Return the lengths that the method answers, in whole minutes of at least one.

        By then it has learned from the history, and from those of the runs that have ended.
        """
        everything = [*self.history, *runs]
        submit = np.array([run.submission.submit_time for run in everything])
        end = np.array([run.end_time for run in everything])
        player = InProcess({self.method: MethodSpec.parse(self.method).predictor()})
        first = len(self.history)
        found = {}
        for step in steps(submit, end):
            for place in step.ended:
                player.observe([everything[place]])
            for place in step.submitted:
                if place >= first:
                    (answer,) = player.ask(self.method, [everything[place].submission])
                    found[place] = max(1, ceil((answer.mean or answer.predicted_walltime) / 60))
        return [found[place] for place in range(first, len(everything))]

    def compared(
        self, rows: Sequence[dict[str, Any]], submissions: Sequence[Submission], largest: int
    ) -> dict[str, int]:
        """Add to the rows of a play what the method answers, and count equal site factors.

        Args:
            rows: of the play, with the site factors that were seen.
            submissions: those of its jobs.
            largest: the largest site factor.
        """
        runs = [
            run_of(
                replace(job, submit_time=float(ZERO + row["submit"])),
                ZERO + row["start"], ZERO + row["end"], row["state"],
            )
            for row, job in zip(rows, submissions, strict=True)
        ]  # fmt: skip
        counts = Counter(seen=0, foreseen=0, replayed=0)
        for row, minutes in zip(rows, self.minutes(runs), strict=True):
            row["length_minutes"] = min(minutes, row["limit_minutes"])
            if row["site_factor"] == "":
                continue
            foreseen = min(self.foreseen[row["job"]], row["limit_minutes"])
            counts["seen"] += 1
            for name, length in (("foreseen", foreseen), ("replayed", row["length_minutes"])):
                steps = steps_of_ratio(response_ratio(0, 60 * length), OFFSET / LONGEST)
                counts[name] += row["site_factor"] == factor_of_steps(steps, largest)
        return dict(counts)


def run_of(job: Submission, start: float, end: float, state: str = "COMPLETED") -> Completion:
    """Return a run in a play, or in a simulation of its jobs."""
    return Completion(
        submission=job, start_time=start, end_time=end, runtime=end - start,
        status=STATUSES.get(state, Status.UNKNOWN),
    )  # fmt: skip


def moved(run: Completion, queue: str, seconds: int) -> Completion:
    """Return a run of the log as Slurm records it in a play, some seconds later."""
    job = as_submitted(run.submission, queue)
    return replace(
        run, submission=replace(job, submit_time=job.submit_time + seconds),
        start_time=run.start_time + seconds, end_time=run.end_time + seconds,
    )  # fmt: skip
