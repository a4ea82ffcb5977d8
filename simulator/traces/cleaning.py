"""Named rules by which an experiment leaves jobs of a trace out, with a count for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import LONGEST
from simulator.traces.trace import Trace
from terminal.exit_codes import ExitCode

LONGEST_REQUEST = 366 * 86400.0
"""Seconds. Longer requests are sentinels for "unlimited" (Curie has 2147483647)."""

CANCELLED = 5

Mask = NDArray[np.bool_]


def never_ran(trace: Trace) -> Mask:
    """The runtime is unknown or negative: the job never started, or a clock jumped."""
    return trace.run < 0


def endless(trace: Trace) -> Mask:
    """The run or the wait takes more than 31 years: a sentinel, or a clock that jumped."""
    return np.maximum(trace.run, trace.wait) > LONGEST


def zero_run(trace: Trace) -> Mask:
    """The run time is zero."""
    return ~trace.run.astype(np.bool_)


def cancelled_waiting(trace: Trace) -> Mask:
    """The job was cancelled (status 5) before its start."""
    return np.isin(trace.status, CANCELLED) & (trace.run <= 0)


def no_request(trace: Trace) -> Mask:
    """The requested time is unknown or zero."""
    return trace.requested_time <= 0


def unlimited_request(trace: Trace) -> Mask:
    """The requested time is above 366 days."""
    return trace.requested_time > LONGEST_REQUEST


def no_processors(trace: Trace) -> Mask:
    """Neither allocated nor requested processors are known."""
    return trace.processors <= 0


def too_wide(trace: Trace) -> Mask:
    """The job has more processors than the machine, according to the header."""
    limit = trace.max_processors
    return trace.processors > (limit if limit is not None else np.inf)


def repeated_job(trace: Trace) -> Mask:
    """The job number stands on an earlier line, too."""
    repeated = np.ones(len(trace), dtype=np.bool_)
    repeated[np.unique(trace.job, return_index=True)[1]] = False
    return repeated


RULES: Mapping[str, Callable[[Trace], Any]] = {
    "never-ran": never_ran,
    "endless": endless,
    "zero-run": zero_run,
    "cancelled-waiting": cancelled_waiting,
    "no-request": no_request,
    "unlimited-request": unlimited_request,
    "no-processors": no_processors,
    "too-wide": too_wide,
    "repeated-job": repeated_job,
}

REPLAY_RULES = ("never-ran", "endless", "no-request", "unlimited-request", "no-processors")
"""Rules for jobs that a predictor cannot learn from or be scored on. Overrunning jobs stay."""

SIMULATION_RULES = (
    "never-ran",
    "endless",
    "zero-run",
    "no-request",
    "unlimited-request",
    "no-processors",
    "too-wide",
)
"""Rules for jobs that a scheduler cannot run."""


class UnknownRuleError(ValueError):
    """There is no cleaning rule of that name."""

    exit_code = ExitCode.USAGE


class NoJobError(ValueError):
    """No job of a log is left after cleaning."""

    exit_code = ExitCode.USAGE

    def __init__(self, log: str, use: str, removed: Mapping[str, int]) -> None:
        reasons = in_words(removed)
        why = f" ({reasons})" if reasons else ""
        super().__init__(f"{log} has no job that can be {use}{why}.")
        self._arguments = log, use, removed

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, Mapping[str, int]]]:
        """Return the arguments, so that the exception can be pickled."""
        return type(self), self._arguments


def clean(trace: Trace, rules: Sequence[str]) -> tuple[Trace, dict[str, int]]:
    """Return the jobs that no rule removes, and the number of jobs that each rule removed.

    The rules apply in the given order: a job that several rules remove is counted under the first.

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


def in_words(counts: Mapping[str, int]) -> str:
    """Format counts of jobs by rule, as in ``3 never-ran, 1,200 zero-run``; empty if all are 0."""
    return ", ".join(f"{jobs:,} {rule}" for rule, jobs in counts.items() if jobs)
