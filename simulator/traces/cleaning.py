"""Which jobs of a trace an experiment leaves out: rules with names, and a count for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.traces.trace import Trace

LONGEST_REQUEST = 366 * 86400.0
"""Seconds; requests above are sentinels for "unlimited" (Curie has 2147483647)."""

CANCELLED = 5

Flags = NDArray[np.bool_]


def never_ran(trace: Trace) -> Flags:
    """The run time is unknown or negative: cancelled before the start, or a clock that jumped."""
    return trace.run < 0


def zero_run(trace: Trace) -> Flags:
    """The run time is zero."""
    return ~trace.run.astype(np.bool_)


def cancelled_waiting(trace: Trace) -> Flags:
    """Cancelled (status 5) before it ran."""
    return np.isin(trace.status, CANCELLED) & (trace.run <= 0)


def no_request(trace: Trace) -> Flags:
    """The requested time is unknown or zero."""
    return trace.requested_time <= 0


def unlimited_request(trace: Trace) -> Flags:
    """The requested time is above 366 days."""
    return trace.requested_time > LONGEST_REQUEST


def no_processors(trace: Trace) -> Flags:
    """Neither allocated nor requested processors are known."""
    return trace.processors <= 0


def too_wide(trace: Trace) -> Flags:
    """More processors than the header says the machine has."""
    limit = trace.max_processors
    return trace.processors > (limit if limit is not None else np.inf)


def repeated_job(trace: Trace) -> Flags:
    """The job number has stood on an earlier line."""
    repeated = np.ones(len(trace), dtype=np.bool_)
    repeated[np.unique(trace.job, return_index=True)[1]] = False
    return repeated


RULES: Mapping[str, Callable[[Trace], Any]] = {
    "never-ran": never_ran,
    "zero-run": zero_run,
    "cancelled-waiting": cancelled_waiting,
    "no-request": no_request,
    "unlimited-request": unlimited_request,
    "no-processors": no_processors,
    "too-wide": too_wide,
    "repeated-job": repeated_job,
}

REPLAY_RULES = ("never-ran", "no-request", "unlimited-request", "no-processors")
"""What a predictor cannot learn from or be scored on. Jobs beyond their request stay."""

SIMULATION_RULES = (
    "never-ran",
    "zero-run",
    "no-request",
    "unlimited-request",
    "no-processors",
    "too-wide",
)
"""What a scheduler cannot run."""


class UnknownRuleError(ValueError):
    """There is no cleaning rule of that name."""


def clean(trace: Trace, rules: Sequence[str]) -> tuple[Trace, dict[str, int]]:
    """The jobs that no rule removes, and how many each rule removed.

    The rules apply in the given order, so a job that breaks several is counted under the first.

    Raises:
        UnknownRuleError: the message lists the rules there are.
    """
    removed: dict[str, int] = {}
    for name in rules:
        if name not in RULES:
            raise UnknownRuleError(f"There is no rule {name!r}; there are {', '.join(RULES)}.")
        breaks = RULES[name](trace)
        removed[name] = int(np.count_nonzero(breaks))
        if removed[name]:
            trace = trace.select(~breaks)
    return trace, removed
