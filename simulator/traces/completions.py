"""Converts a trace into the domain's completions, and recorded completions into a trace."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
from msgspec.structs import replace

from predictors.jobs import DEFAULT_CLUSTER, Completion, Status, Submission
from simulator.traces.cleaning import REPLAY_RULES, NoJobError, clean
from simulator.traces.swf import read_swf
from simulator.traces.trace import REAL_FIELDS, SWF_FIELDS, Integers, Reals, Trace

STATUSES: Mapping[int, Status] = {
    0: Status.FAILED,
    1: Status.COMPLETED,
    2: Status.PREEMPTED,  # a part of a job that went on later
    3: Status.COMPLETED,  # the last part of a job that completed
    4: Status.FAILED,  # the last part of a job that failed
    5: Status.CANCELLED,
}
"""The meaning of SWF's statuses."""

UNKNOWN = -1

BLOCK = 10_000
"""Jobs that are converted to Python objects at once: a million at once takes 250 MB."""

SWF_STATUSES: Mapping[Status, int] = {
    Status.COMPLETED: 1,
    Status.CANCELLED: 5,
    Status.UNKNOWN: UNKNOWN,
}
"""SWF's statuses for the domain's; any other status is a failure."""

FAILED = 0


def completions(trace: Trace, *, cluster: str = DEFAULT_CLUSTER) -> Iterator[Completion]:
    """Yield the runs of a cleaned trace, in the order of its lines.

    A job starts at submit + wait, or at its submission if the wait is unknown or negative. SWF has
    no project. SWF's executable is our application, and SWF's -1 is ``None``.
    """
    for first in range(0, len(trace), BLOCK):
        yield from _completions(trace.select(slice(first, first + BLOCK)), cluster)


def usable_runs(path: str | Path, limit: int | None = None) -> list[Completion]:
    """Return the first jobs of a log that can be learned from; all without a limit.

    Raises:
        NoJobError: there is none.
    """
    jobs, removed = clean(read_swf(str(path)), REPLAY_RULES)
    if not len(jobs):
        raise NoJobError(Path(path).name, "played", removed)
    return list(completions(jobs.select(slice(limit))))


def _completions(trace: Trace, cluster: str) -> Iterator[Completion]:
    submits = (trace.submit + trace.unix_start).tolist()
    waits = trace.wait.clip(min=0.0).tolist()
    columns = zip(
        submits,
        waits,
        trace.run.tolist(),
        trace.status.tolist(),
        _submissions(trace, submits, cluster),
        strict=True,
    )
    for submit, wait, run, status, submission in columns:
        yield Completion(
            submission=submission,
            start_time=submit + wait,
            end_time=submit + wait + run,
            runtime=run,
            status=STATUSES.get(status, Status.UNKNOWN),
        )


def _submissions(trace: Trace, submits: list[float], cluster: str) -> Iterator[Submission]:
    columns = zip(
        trace.job.tolist(),
        submits,
        trace.requested_time.tolist(),
        _names(trace.user),
        _names(trace.group),
        _names(trace.queue),
        _names(trace.executable),
        _known(trace.requested_processors),
        _known(trace.allocated_processors),
        _known(trace.requested_memory),
        strict=True,
    )
    for (
        job,
        submit,
        request,
        user,
        group,
        queue,
        application,
        requested,
        allocated,
        memory,
    ) in columns:
        yield Submission(
            requested_walltime=request,
            submit_time=submit,
            cluster=cluster,
            job_id=str(job),
            user=user,
            group=group,
            queue=queue,
            application=application,
            requested_processors=requested or allocated,
            requested_memory=memory,
        )


def _names(column: Integers) -> list[str | None]:
    """Convert numbers to names; jobs with the same number share one string."""
    names: dict[int, str | None] = {
        number: intern(str(number)) if number >= 0 else None for number in set(column.tolist())
    }
    return [names[number] for number in column.tolist()]


def _known(column: Integers | Reals) -> list[Any]:
    """Return positive numbers, and ``None`` for unknown values."""
    return [value if value > 0 else None for value in column.tolist()]


class Numbers:
    """Assigns numbers from 1 on to names, as SWF has them; -1 for no name."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, name: str | None) -> int:
        """Return the number of a name."""
        if name is None:
            return UNKNOWN
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def names(self) -> dict[int, str]:
        """Return the names by their numbers."""
        return {number: name for name, number in self._numbers.items()}


@dataclass(frozen=True, slots=True)
class RecordedLog:
    """Recorded runs as a trace, with the names that its numbers stand for.

    Attributes:
        trace: the runs in the order of their submission.
        users: names of the users by their numbers.
        groups: names of the groups by their numbers.
        applications: names of the applications by their numbers.
        queues: names of the queues by their numbers.
        accounts: names of the accounts (projects) by their numbers.
        accounts_of_jobs: the account of each job, which SWF has no field for.
        job_ids: the resource manager's name of each job; empty for SWF, which has numbers.
        left_out: number of records that were left out, by reason.
    """

    trace: Trace
    users: Mapping[int, str] = field(default_factory=dict)
    groups: Mapping[int, str] = field(default_factory=dict)
    applications: Mapping[int, str] = field(default_factory=dict)
    queues: Mapping[int, str] = field(default_factory=dict)
    accounts: Mapping[int, str] = field(default_factory=dict)
    accounts_of_jobs: Integers | None = None
    job_ids: Sequence[str | None] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    format: str = "swf"


def submitted_at(run: Completion, eligible_time: float | None) -> Completion:
    """Return the run of a job that is submitted when it is eligible.

    A scheduler does not see a job before its begin time and the ends of what it depends on.
    """
    job = run.submission
    if eligible_time is None or job.submit_time is None or eligible_time <= job.submit_time:
        return run
    time = min(eligible_time, run.start_time)
    return replace(run, submission=replace(job, submit_time=time))


def trace_of(
    runs: Sequence[Completion], gpus: Sequence[tuple[int, int] | None] = ()
) -> RecordedLog:
    """Convert recorded runs to a trace, in the order of their submission.

    Every run has a number of its own, so a job that ran twice is two jobs. A run without a submit
    time counts as submitted at its start. Records do not contain the size of the machine, so the
    trace's header does not, either.

    Args:
        gpus: nodes of each run, and GPUs on each of them; None if unknown.
    """
    order = sorted(range(len(runs)), key=lambda place: _submitted(runs[place]))
    runs = [runs[place] for place in order]
    origin = int(np.floor(_submitted(runs[0]))) if runs else 0
    users, groups, applications, queues = Numbers(), Numbers(), Numbers(), Numbers()
    accounts = Numbers()
    accounts_of_jobs = [accounts.of(run.submission.project) for run in runs]
    columns: dict[str, list[float]] = {name: [] for name in SWF_FIELDS}
    for number, run in enumerate(runs, start=1):
        job = run.submission
        fields = {
            "job": number,
            "submit": _submitted(run) - origin,
            "wait": max(0.0, run.start_time - _submitted(run)),
            "run": run.runtime,
            "allocated_processors": job.requested_processors or UNKNOWN,
            "requested_processors": job.requested_processors or UNKNOWN,
            "requested_time": job.requested_walltime,
            "requested_memory": job.requested_memory or UNKNOWN,
            "status": SWF_STATUSES.get(run.status, FAILED),
            "user": users.of(job.user),
            "group": groups.of(job.group),
            "executable": applications.of(job.application),
            "queue": queues.of(job.queue),
        }
        for name, column in columns.items():
            column.append(fields.get(name, UNKNOWN))
    arrays: dict[str, Any] = {
        name: np.array(column, np.float64 if name in REAL_FIELDS else np.int64)
        for name, column in columns.items()
    }
    arrays |= _gpu_columns([gpus[place] for place in order] if gpus else [])
    header = {"UnixStartTime": str(origin)}
    return RecordedLog(
        Trace(**arrays, line=np.arange(1, len(runs) + 1), header=header),
        users=users.names(),
        groups=groups.names(),
        applications=applications.names(),
        queues=queues.names(),
        accounts=accounts.names(),
        accounts_of_jobs=np.array(accounts_of_jobs, np.int64) if accounts.names() else None,
        job_ids=[run.submission.job_id for run in runs],
    )


def _gpu_columns(gpus: Sequence[tuple[int, int] | None]) -> dict[str, Any]:
    """Return nodes and GPUs of each run, if any run had GPUs; a run that is unknown had none."""
    if not any(pair and pair[1] for pair in gpus):
        return {}
    nodes, per_node = np.array([pair or (1, 0) for pair in gpus], np.int64).T.copy()
    return {"nodes": nodes, "gpus": per_node}


def _submitted(run: Completion) -> float:
    """Return the submit time of a run in Unix seconds, else its start."""
    submit = run.submission.submit_time
    return run.start_time if submit is None else submit
