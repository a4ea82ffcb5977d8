"""Converts a trace into the domain's completions, and recorded completions into a trace."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, overload

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

SMALL_BLOCK, KEPT_BLOCKS = 1000, 64
"""Jobs of a block that is read out of order, and number of blocks that stay converted."""

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


class LoggedRuns(Sequence[Completion]):
    """The runs of a cleaned trace, converted where they are read: only the last blocks are kept."""

    def __init__(self, trace: Trace, cluster: str = DEFAULT_CLUSTER) -> None:
        self._trace, self._cluster = trace, cluster
        self._block = lru_cache(maxsize=KEPT_BLOCKS)(self._read)

    def _read(self, number: int) -> list[Completion]:
        block = slice(number * SMALL_BLOCK, (number + 1) * SMALL_BLOCK)
        return list(_completions(self._trace.select(block), self._cluster))

    def __len__(self) -> int:
        return len(self._trace)

    @overload
    def __getitem__(self, place: int) -> Completion: ...

    @overload
    def __getitem__(self, place: slice) -> "LoggedRuns": ...

    def __getitem__(self, place: int | slice) -> "Completion | LoggedRuns":
        """Return the run at a place, or those of a slice."""
        if isinstance(place, slice):
            return LoggedRuns(self._trace.select(place), self._cluster)
        number, offset = divmod(range(len(self))[place], SMALL_BLOCK)
        return self._block(number)[offset]

    def __iter__(self) -> Iterator[Completion]:
        return completions(self._trace, cluster=self._cluster)


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

    def in_order(self, column: Integers) -> tuple[Integers, dict[int, str]]:
        """Return a column with numbers in the order of their lines, and the names by number."""
        found, first = np.unique(column, return_index=True)
        found = found[np.argsort(first)]
        found = found[found != UNKNOWN]
        numbers = np.full(len(self._numbers) + 1, UNKNOWN)
        numbers[found] = np.arange(1, len(found) + 1)
        names = [*self._numbers]
        return np.where(column == UNKNOWN, UNKNOWN, numbers[column]), {
            number: names[old - 1] for number, old in enumerate(found.tolist(), start=1)
        }


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


def trace_of(runs: Iterable[Completion]) -> RecordedLog:
    """Convert recorded runs to a trace; see ``RunColumns``."""
    columns = RunColumns()
    for run in runs:
        columns.append(run)
    return columns.recorded()


_RECORDED = (
    "submit", "wait", "run", "allocated_processors", "requested_time", "requested_memory",
    "status", "user", "group", "executable", "queue",
)  # fmt: skip
"""The fields of SWF that records of runs have."""

_NAMED = ("user", "group", "executable", "queue", "account")


class RunColumns:
    """Recorded runs in columns, in a tenth of the memory of the runs.

    Every run has a number of its own, so a job that ran twice is two jobs. A run without a submit
    time counts as submitted at its start. Records do not contain the size of the machine, so the
    trace's header does not, either.
    """

    def __init__(self) -> None:
        names = (*_RECORDED, "account", "nodes", "gpus")
        self._columns: dict[str, array[Any]] = {
            name: array("d" if name in REAL_FIELDS else "q") for name in names
        }
        self._numbers = {name: Numbers() for name in _NAMED}
        self._job_ids: list[str | None] = []

    def append(self, run: Completion, gpus: tuple[int, int] | None = None) -> None:
        """Add a run.

        Args:
            gpus: nodes of the run, and GPUs on each of them; None if unknown.
        """
        job, submitted = run.submission, _submitted(run)
        numbers = self._numbers
        values = (
            submitted,
            max(0.0, run.start_time - submitted),
            run.runtime,
            job.requested_processors or UNKNOWN,
            job.requested_walltime,
            job.requested_memory or UNKNOWN,
            SWF_STATUSES.get(run.status, FAILED),
            numbers["user"].of(job.user),
            numbers["group"].of(job.group),
            numbers["executable"].of(job.application),
            numbers["queue"].of(job.queue),
            numbers["account"].of(job.project),
            *(gpus or (1, 0)),
        )
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        self._job_ids.append(job.job_id)

    def recorded(self) -> RecordedLog:
        """Return the runs as a trace in the order of their submission; no column is left here."""
        taken: dict[str, Any] = {}
        order = np.argsort(np.asarray(self._columns["submit"]), kind="stable")
        for name in [*self._columns]:
            taken[name] = np.asarray(self._columns.pop(name))[order]
        jobs = len(order)
        origin = int(np.floor(taken["submit"][0])) if jobs else 0
        taken["submit"] -= origin
        taken["job"] = np.arange(1, jobs + 1)
        taken["requested_processors"] = taken["allocated_processors"].copy()
        names = {}
        for name, numbers in self._numbers.items():
            taken[name], names[name] = numbers.in_order(taken[name])
        for name in set(SWF_FIELDS) - taken.keys():
            taken[name] = np.full(jobs, UNKNOWN, np.float64 if name in REAL_FIELDS else np.int64)
        accounts = taken.pop("account")
        gpus = {name: taken.pop(name) for name in ("nodes", "gpus")}
        taken |= gpus if gpus["gpus"].any() else {}
        return RecordedLog(
            Trace(**taken, line=taken["job"].copy(), header={"UnixStartTime": str(origin)}),
            users=names["user"],
            groups=names["group"],
            applications=names["executable"],
            queues=names["queue"],
            accounts=names["account"],
            accounts_of_jobs=accounts if names["account"] else None,
            job_ids=[self._job_ids[place] for place in order.tolist()],
        )


def _submitted(run: Completion) -> float:
    """Return the submit time of a run in Unix seconds, else its start."""
    submit = run.submission.submit_time
    return run.start_time if submit is None else submit
