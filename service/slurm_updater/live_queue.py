"""The whole queue as the service takes it: what ``squeue --json`` and ``sinfo`` show.

Unlike the jobs that the updater changes, these are all jobs that run or wait, held ones too.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from predictors.jobs import LONGEST, MOST_MEMORY, Submission
from service.adapters.slurm.slurm_fields import MINUTE
from service.adapters.values import number, text
from service.slurm_updater.squeue import (
    Shown,
    raw_jobs,
    submission_of,
    tasks_of,
)
from simulator.replay.remote import fields_of

POLICY = "conservative"
"""Slurm's backfill scheduler plans a start for every job that it looks at."""

NO_LIMIT = 365 * 24 * 3600.0
"""Stands for a limit that a job does not have, in seconds."""

MOST_TASKS = 1000
"""Waiting tasks of one array that are shown; the others would make the queue endless."""

RUNNING = frozenset({"RUNNING", "CONFIGURING", "SUSPENDED"})

NOT_ITS_TURN = (
    "JobHeld",
    "Dependency",
    "BeginTime",
    "Partition",
    "BadConstraints",
    "Invalid",
    "ReqNodeNotAvail",
)
"""How the reasons begin of jobs that wait for something else than their turn."""


class LiveShown(Shown, gc=False):
    """The fields that are read besides."""

    state_reason: Any = None


def read_live_queue(body: bytes, cluster: str) -> dict[str, list[dict[str, Any]]]:
    """The jobs as fields of ``PUT /v1/queues``: waiting ones in the order of their priority.

    Raises:
        UnreadableQueueError: it is not what ``squeue --json`` prints.
    """
    running: list[dict[str, Any]] = []
    waiting: list[tuple[float, float, dict[str, Any]]] = []
    for raw in raw_jobs(body):
        try:
            shown = msgspec.json.decode(raw, type=LiveShown)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            continue
        submission = _submission(shown, cluster)
        if submission is None:
            continue
        states = states_of(shown)
        if states & RUNNING and (started := number(shown.start_time)):
            running.append({**fields(shown, submission), "start_time": started})
        elif "PENDING" in states:
            priority = number(shown.priority) or 0.0
            waiting += [
                (-priority, submission.submit_time, each)
                for each in _waiting(shown, submission, is_held=priority == 0)
            ]
    waiting.sort(key=lambda each: each[:2])
    return {"running": running, "waiting": [job for _, _, job in waiting]}


def states_of(shown: Shown) -> frozenset[str]:
    """The states of a job: one up to 22.05, several from 23.02 on."""
    states = shown.job_state if isinstance(shown.job_state, list) else [shown.job_state]
    return frozenset(state for state in states if isinstance(state, str))


def fields(shown: Shown, submission: Submission) -> dict[str, Any]:
    """A job without its cluster, called as ``squeue`` calls it."""
    known = fields_of(replace(within_bounds(submission), job_id=name_of(shown)))
    known.pop("cluster")
    return known


def within_bounds(submission: Submission) -> Submission:
    """The submission with no longer request, and no more memory, than the service takes.

    Whoever asks for more would else keep the whole queue from being taken.
    """
    memory = submission.requested_memory
    return replace(
        submission,
        requested_walltime=min(submission.requested_walltime, LONGEST),
        requested_memory=None if memory is None else min(memory, MOST_MEMORY),
    )


def name_of(shown: Shown) -> str:
    """Of a task of an array the array and the task, else the job's number."""
    array, task = number(shown.array_job_id), number(shown.array_task_id)
    if array and task is not None:
        return f"{array:.0f}_{task:.0f}"
    return text(shown.job_id) or ""


def _submission(shown: LiveShown, cluster: str) -> Submission | None:
    """The submission; a job without a limit has a very long one."""
    found = submission_of(shown, cluster)
    if found is not None or number(shown.time_limit):
        return found
    minutes = NO_LIMIT / MINUTE
    return submission_of(msgspec.structs.replace(shown, time_limit=minutes), cluster)


def _waiting(
    shown: LiveShown, submission: Submission, *, is_held: bool
) -> Iterator[dict[str, Any]]:
    """A waiting job, or the waiting tasks of an array."""
    reason = text(shown.state_reason)
    job = fields(shown, submission)
    job["held"] = is_held or (reason or "").startswith(NOT_ITS_TURN)
    if reason:
        job["reason"] = reason
    tasks = _tasks(shown)
    if not tasks:
        yield job
        return
    array = number(shown.array_job_id) or 0
    for task in tasks[:MOST_TASKS]:
        yield {**job, "job_id": f"{array:.0f}_{task}"}


def _tasks(shown: Shown) -> list[int]:
    """The tasks of an array that wait as one job."""
    written = tasks_of(shown.array_task_string) if shown.array_task_string else None
    found: list[int] = []
    for part in written.split(",") if written else ():
        first, _, last = part.partition("-")
        found += range(int(first), min(int(last or first), int(first) + MOST_TASKS) + 1)
    return found


def rules_of(settings: Mapping[str, str]) -> dict[str, Any]:
    """How slurmctld schedules, from ``scontrol show config``."""
    builtin = settings.get("SchedulerType") == "sched/builtin"
    return {"policy": "fcfs" if builtin else POLICY, "plans_by": "requests"}
