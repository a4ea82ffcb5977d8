"""Columns that describe the jobs of a log in tables of results."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from predictors.jobs import Status
from simulator.traces.completions import BLOCK, STATUSES, RecordedLog
from simulator.traces.trace import Integers, Reals, Trace
from terminal.data_table import DataTable, Values

RUN_TYPES: Mapping[str, type] = MappingProxyType(
    {
        **dict.fromkeys(("job_id", "user", "group", "project", "queue", "application"), str),
        "requested_walltime": float,
        "requested_processors": int,
        "requested_memory": float,
        **dict.fromkeys(("submit_time", "start_time", "end_time", "runtime"), float),
        "status": str,
    }
)
"""Columns of a run, named as in the HTTP contract, and their types."""

JOB_TYPES: Mapping[str, type] = MappingProxyType({"job": int, **RUN_TYPES})
"""Columns of the jobs of a log: number of the job in the log, and its run as it was logged."""


def log_table(log: RecordedLog) -> DataTable:
    """Return the jobs of a log as a table; times are Unix seconds.

    An unknown wait counts as none, as in a replay.
    """
    trace = log.trace
    submit = trace.submit + trace.unix_start
    start = submit + trace.wait.clip(min=0.0)
    values: dict[str, Values] = {
        "job": trace.job,
        "job_id": _ids(log),
        "user": _names(trace.user, log.users),
        "group": _names(trace.group, log.groups),
        "project": _projects(log),
        "queue": _names(trace.queue, log.queues),
        "application": _names(trace.executable, log.applications),
        "requested_walltime": trace.requested_time,
        "requested_processors": _known(
            np.where(trace.requested_processors > 0, trace.requested_processors, trace.processors)
        ),
        "requested_memory": np.where(trace.requested_memory > 0, trace.requested_memory, np.nan),
        "submit_time": submit,
        "start_time": start,
        "end_time": start + trace.run,
        "runtime": trace.run,
        "status": _statuses(trace),
    }
    return DataTable(JOB_TYPES, values)


def log_tables(log: RecordedLog) -> Iterator[tuple[slice, DataTable]]:
    """Yield the jobs of a log in parts, each with its place in the log; at least one part."""
    for first in range(0, max(1, len(log.trace)), BLOCK):
        place = slice(first, first + BLOCK)
        yield place, log_table(replace(log, trace=log.trace.select(place)))


def _ids(log: RecordedLog) -> list[str | None]:
    """Return the resource manager's names of the jobs, else their numbers in the log."""
    if not log.job_ids:
        return [str(number) for number in log.trace.job.tolist()]
    return [log.job_ids[line - 1] for line in log.trace.line.tolist()]


def _projects(log: RecordedLog) -> list[str | None]:
    """Return the accounts of the jobs, which SWF has not."""
    if log.accounts_of_jobs is None:
        return [None] * len(log.trace)
    return _names(log.accounts_of_jobs[log.trace.line - 1], log.accounts)


def _names(column: Integers, names: Mapping[int, str]) -> list[str | None]:
    """Return the names of numbers, else the numbers as text; None for unknown ones."""
    found: dict[int, str | None] = {
        number: names.get(number, str(number)) if number >= 0 else None
        for number in set(column.tolist())
    }
    return [found[number] for number in column.tolist()]


def _known(column: Integers | Reals) -> list[int | None]:
    return [number if number > 0 else None for number in column.tolist()]


def _statuses(trace: Trace) -> list[str]:
    return [STATUSES.get(each, Status.UNKNOWN).value for each in trace.status.tolist()]
