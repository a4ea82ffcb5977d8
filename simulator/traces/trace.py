"""A workload trace in columns, as the Standard Workload Format (SWF) names them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import LATEST_TIME
from terminal.exit_codes import ExitCode

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Reject:
    """A line of a trace file that is not a job, and the reason."""

    line: int
    reason: str


MOST_REJECTS = 100_000
"""Lines that are not jobs; a file with more is no log, and each would be kept with its reason."""


class TooManyRejectsError(ValueError):
    """A file has more malformed lines than any log has."""

    exit_code = ExitCode.USAGE


def check_rejects(rejects: Sequence[Reject]) -> None:
    """Refuse a file that has too many malformed lines.

    Raises:
        TooManyRejectsError: there are more than ``MOST_REJECTS``; the message shows the first.
    """
    if len(rejects) > MOST_REJECTS:
        first = rejects[0]
        raise TooManyRejectsError(
            f"More than {MOST_REJECTS:,} lines are malformed, so this is no log; the first is "
            f"line {first.line}: {first.reason}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Jobs of a log, in the order of its lines; -1 is unknown, as in the file.

    Attributes:
        job: the log's number of the job.
        submit: seconds after ``unix_start``.
        wait: seconds from submission to start.
        run: seconds from start to end.
        cpu_time: mean seconds per processor.
        used_memory: mean KiB per processor.
        requested_time: the walltime request in seconds.
        requested_memory: KiB per processor.
        status: 1 completed, 0 failed, 5 cancelled, 2 to 4 parts of a job.
        user: number of the user; likewise group, executable, queue and partition.
        preceding_job: number of the job after whose end this job was submitted.
        think_time: seconds between that end and this submission.
        nodes: number of nodes of each job; None where the log does not say it. SWF has no field.
        gpus: GPUs of each job on each of its nodes, likewise.
        line: number of each job's line in the file.
        header: values by key; the values of a repeated key are on separate lines.
        comments: the comment lines as they stand in the file.
        rejects: lines that could not be read, if the reader was asked to skip them.
    """

    job: Integers
    submit: Reals
    wait: Reals
    run: Reals
    allocated_processors: Integers
    cpu_time: Reals
    used_memory: Reals
    requested_processors: Integers
    requested_time: Reals
    requested_memory: Reals
    status: Integers
    user: Integers
    group: Integers
    executable: Integers
    queue: Integers
    partition: Integers
    preceding_job: Integers
    think_time: Reals
    line: Integers
    header: dict[str, str]
    nodes: Integers | None = None
    gpus: Integers | None = None
    comments: tuple[str, ...] = ()
    rejects: tuple[Reject, ...] = ()

    def __len__(self) -> int:
        return len(self.job)

    @property
    def unix_start(self) -> int:
        """Unix seconds of submit time 0; 0 if the header has none up to ``LATEST_TIME``."""
        written = self.header.get("UnixStartTime") or ""
        scientific = re.match(r"\s*\d+(?:\.\d+)?[eE]\+?\d{1,2}(?!\w)", written)
        start = int(float(scientific[0])) if scientific else leading_integer(written) or 0
        return start if start <= LATEST_TIME else 0

    @property
    def max_processors(self) -> int | None:
        """Size of the machine in processors, else in nodes, as the header has it."""
        return size_of_machine(self.header)

    @property
    def processors(self) -> Integers:
        """Allocated processors, else requested ones."""
        return np.where(
            self.allocated_processors > 0, self.allocated_processors, self.requested_processors
        )

    @property
    def end(self) -> Reals:
        """Seconds after ``unix_start`` at which jobs ended; an unknown wait counts as none."""
        return self.submit + np.maximum(self.wait, 0.0) + self.run

    def select(self, chosen: Any) -> "Trace":
        """Select jobs by a mask, a slice or an array of indices."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in self.columns})

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that this trace has."""
        others = (name for name in ("nodes", "gpus") if getattr(self, name) is not None)
        return (*SWF_FIELDS, "line", *others)


SWF_FIELDS = tuple(field.name for field in fields(Trace))[:18]
"""The names of the format's 18 fields, in its order."""

REAL_FIELDS = frozenset(
    {
        "submit",
        "wait",
        "run",
        "cpu_time",
        "used_memory",
        "requested_time",
        "requested_memory",
        "think_time",
    }
)
"""The fields that may have a fraction; the others count or number things."""


def size_of_machine(header: Mapping[str, str]) -> int | None:
    """Return the processors of the machine, else its nodes, from a header; None without both."""
    processors = leading_integer(header.get("MaxProcs"))
    return processors or leading_integer(header.get("MaxNodes")) or None


def leading_integer(text: str | None) -> int | None:
    """Return the integer that ``text`` begins with, such as ``338 (batch partition; 512 total)``.

    Thousands may have commas, as people write them.
    """
    found = re.match(r"\s*(\d{1,3}(?:,\d{3})+(?!\d)|\d+)", text or "")
    return int(found.group(1).replace(",", "")) if found else None
