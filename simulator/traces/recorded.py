"""Runs that a resource manager recorded, as a trace: for logs that are no SWF files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from predictors.jobs import Completion, Status
from simulator.traces.trace import REAL_FIELDS, SWF_FIELDS, Trace

UNKNOWN = -1

STATUSES: Mapping[Status, int] = {
    Status.COMPLETED: 1,
    Status.CANCELLED: 5,
    Status.UNKNOWN: UNKNOWN,
}
"""SWF knows no other ends than these and failure."""

FAILED = 0


class Numbers:
    """Numbers from 1 on for names, as SWF has them; -1 for no name."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, name: str | None) -> int:
        """The number of a name."""
        if name is None:
            return UNKNOWN
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def names(self) -> dict[int, str]:
        """The names by their numbers."""
        return {number: name for name, number in self._numbers.items()}


def trace_of(runs: Sequence[Completion]) -> tuple[Trace, Mapping[int, str]]:
    """Recorded runs in the order of their submission, and the users' names by their numbers.

    Every run has a number of its own, so a job that ran twice is two. SWF has no project: it is
    lost. A run without a time of submission counts as submitted when it started. The size of the
    machine is in no record: the trace's header does not say it.
    """
    runs = sorted(runs, key=_submitted)
    origin = int(np.floor(_submitted(runs[0]))) if runs else 0
    users, groups, applications, queues = Numbers(), Numbers(), Numbers(), Numbers()
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
            "status": STATUSES.get(run.status, FAILED),
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
    header = {"UnixStartTime": str(origin)}
    return Trace(**arrays, line=np.arange(1, len(runs) + 1), header=header), users.names()


def _submitted(run: Completion) -> float:
    """Unix seconds."""
    submit = run.submission.submit_time
    return run.start_time if submit is None else submit
