"""A trace as the scheduling loop uses it: in whole seconds and in the order of submission."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator.traces.cleaning import SIMULATION_RULES, NoJobError, clean, in_words
from simulator.traces.swf import read_swf
from simulator.traces.trace import SWF_FIELDS, Integers, Trace
from terminal.exit_codes import ExitCode

LARGEST_MACHINE = 2**30
"""Most processors of a machine."""


class WorkloadError(ValueError):
    """The machine's size is unknown, a number is impossible, or a name is unknown."""

    exit_code = ExitCode.USAGE


def kill(trace: Trace) -> Trace:
    """End a job when it has run for its requested walltime."""
    return replace(trace, run=np.minimum(trace.run, trace.requested_time))


def keep(trace: Trace) -> Trace:
    """Let a job run as long as in the log; beyond the request its estimate is prolonged."""
    return trace


def swap(trace: Trace) -> Trace:
    """Exchange runtime and request (pyss)."""
    return replace(
        trace,
        run=np.minimum(trace.run, trace.requested_time),
        requested_time=np.maximum(trace.run, trace.requested_time),
    )


OVERRUNS: Mapping[str, Callable[[Trace], Trace]] = {"kill": kill, "keep": keep, "swap": swap}
"""How jobs that overran their request are simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs for a machine.

    Attributes:
        trace: the jobs as they were logged, sorted by submission, then job number, with their
            run times and requests as they are simulated.
        origin: seconds of the trace at which the clock of the simulation shows 0.
        submit: seconds after ``origin``; fractions are cut.
        processors: processors, or whole nodes, that a job takes.
        runtime: seconds, rounded up.
        request: seconds, rounded up.
        processors_of_machine: processors, or nodes.
        cores_per_node: processors of a node, if jobs take whole nodes.
        overrun: how jobs that overran their request are simulated, a name in ``OVERRUNS``.
        counts: number of jobs that each rule changed or left out.
    """

    trace: Trace
    origin: int
    submit: Integers
    processors: Integers
    runtime: Integers
    request: Integers
    processors_of_machine: int
    cores_per_node: int | None
    overrun: str
    counts: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.submit)

    def treated(self) -> str:
        """Return the treatment of the input in words, rule by rule."""
        return in_words(self.counts) or "nothing left out"


_NONE = np.zeros(0, np.int64)
_NO_COLUMNS: dict[str, Any] = dict.fromkeys((*SWF_FIELDS, "line"), _NONE)

EMPTY = Workload(
    trace=Trace(header={}, **_NO_COLUMNS),
    origin=0,
    submit=_NONE,
    processors=_NONE,
    runtime=_NONE,
    request=_NONE,
    processors_of_machine=1,
    cores_per_node=None,
    overrun="kill",
)
"""A workload without jobs."""


def prepare(
    trace: Trace,
    *,
    processors: int | None = None,
    cores_per_node: int | None = None,
    overrun: str = "kill",
) -> Workload:
    """Leave out jobs that no scheduler can run, and count them.

    Args:
        trace: the trace as it was read.
        processors: size of the machine; None takes it from the trace's header.
        cores_per_node: if given, the machine is of named nodes and a job takes as many whole
            nodes as hold its processors.
        overrun: a name in ``OVERRUNS``.

    Raises:
        WorkloadError: the message says what is missing or wrong.
    """
    size = _machine_size(trace, processors)
    cores = 1 if cores_per_node is None else cores_per_node
    if not 1 <= cores <= size:
        raise WorkloadError(f"cores_per_node must be between 1 and {size}, not {cores}.")
    if overrun not in OVERRUNS:
        raise WorkloadError(f"There is no treatment {overrun!r}; there are {', '.join(OVERRUNS)}.")
    jobs, counts = clean(_on_machine(trace, size // cores * cores), SIMULATION_RULES)
    counts[f"beyond-request ({overrun})"] = int(np.count_nonzero(jobs.run > jobs.requested_time))
    counts["late-submission (sorted)"] = _late(jobs)
    jobs = OVERRUNS[overrun](_sorted(jobs))
    origin = int(np.floor(jobs.submit.min(initial=0.0)))
    return Workload(
        trace=jobs,
        origin=origin,
        submit=_whole(np.floor(jobs.submit)) - origin,
        processors=_whole(-(-jobs.processors // cores)),
        runtime=_whole(np.ceil(jobs.run)),
        request=_whole(np.ceil(jobs.requested_time)),
        processors_of_machine=size // cores,
        cores_per_node=cores_per_node,
        overrun=overrun,
        counts=counts,
    )


def with_requests(trace: Trace, predictions: Mapping[int, float]) -> Trace:
    """Return the trace with predictions in place of requests.

    A job without a prediction keeps its request.

    Args:
        trace: the trace as it was read.
        predictions: seconds, by the log's number of the job.
    """
    requests = zip(trace.job.tolist(), trace.requested_time.tolist(), strict=True)
    replaced = [predictions.get(job, request) for job, request in requests]
    return replace(trace, requested_time=np.array(replaced, dtype=np.float64))


def first_jobs(trace: Trace, limit: int | None, *, processors: int | None = None) -> Trace:
    """Return the lines of ``trace`` up to the last of the first ``limit`` jobs that can run.

    Args:
        trace: the trace as it was read.
        limit: number of jobs after cleaning; None takes the whole trace.
        processors: size of the machine; None takes it from the trace's header.

    Raises:
        WorkloadError: the machine's size is not known.
    """
    if limit is None:
        return trace
    jobs, _ = clean(_on_machine(trace, _machine_size(trace, processors)), SIMULATION_RULES)
    if len(jobs) <= limit:
        return trace
    return trace.select(trace.line <= jobs.line[limit - 1])


def usable_workload(path: str | Path, limit: int | None = None) -> Workload:
    """Return the first jobs of a log that can be simulated; all without a limit.

    Raises:
        NoJobError: there is none.
    """
    workload = prepare(first_jobs(read_swf(str(path)), limit))
    if not len(workload):
        raise NoJobError(Path(path).name, "simulated", workload.counts)
    return workload


def _on_machine(trace: Trace, processors: int) -> Trace:
    return replace(trace, header={**trace.header, "MaxProcs": str(processors)})


def _machine_size(trace: Trace, processors: int | None) -> int:
    size = trace.max_processors if processors is None else processors
    if size is None and not len(trace):
        return 1  # the size of an empty log does not matter
    if size is None:
        widest = int(trace.processors.max(initial=0))
        raise WorkloadError(
            "The log does not tell the size of the machine (MaxProcs); say --processors. "
            f"The widest job has {widest:,}."
        )
    if not 1 <= size <= LARGEST_MACHINE:
        raise WorkloadError(
            f"A machine has 1 to {LARGEST_MACHINE:,} processors, not {size:,} (MaxProcs of the "
            "log, or --processors)."
        )
    return size


def _sorted(trace: Trace) -> Trace:
    order = np.lexsort((trace.job, trace.submit))
    return trace if (np.diff(order) == 1).all() else trace.select(order)


def _late(trace: Trace) -> int:
    """Count the jobs that follow a later submission in the log."""
    return int(np.count_nonzero(trace.submit < np.maximum.accumulate(trace.submit)))


def _whole(column: Any) -> Integers:
    whole: Integers = column.astype(np.int64)
    return whole
