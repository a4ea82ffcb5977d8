"""The jobs of a log in columns, and the form of a method that answers about them in machine code.

A study asks a method millions of times, for the estimate alone. Building a submission, a completion
and a prediction for each job takes longer than most methods need to answer.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from predictors.compiled import compiled
from predictors.memory.columns import REQUEST, RUNTIME, SUBMIT, USER, Floats, Ids

Rows = NDArray[np.int64]

JobColumns = tuple[Floats, Ids]
"""Numbers of all jobs, which stand in the order of their submission, in the rows that a run has in
``columns`` (there is no END yet); and ids of their names, of each kind from 0 on, -1 if unknown."""

Ended = tuple[Rows, Rows, int]
"""Jobs in the order of their ends, the seconds at which jobs started, and what is to be added to
these to have Unix seconds."""

Log = tuple[JobColumns, Ended]

Turn = tuple[int, int, int, int]
"""Jobs to learn from: the first and the end of the places among those that ended. And jobs that are
asked about then: the first and the end."""

Play = Callable[[Any, Log, Turn, Floats], None]
"""A compiled function: of settings and memory, of the log, and of the turn; it writes the seconds
that are predicted for the jobs that are asked about."""


class ColumnForm(Struct, frozen=True, kw_only=True):
    """A method that has learned nothing yet, as machine code and what this works on.

    Attributes:
        play: learns from jobs that have ended, in order, then predicts others.
        method: its parameters, and arrays for what it learns.
    """

    play: Play
    method: tuple[Any, Any]


@runtime_checkable
class ByColumns(Protocol):
    """A predictor that also comes as machine code, which predicts the same to the last bit.

    The names of applications in the columns are numbers, as in SWF.
    """

    def by_columns(self, jobs: JobColumns) -> ColumnForm | None:
        """The method for these jobs; None if it has learned something, which is not handed over."""
        ...


def users_of(jobs: JobColumns) -> int:
    """How many users the jobs have."""
    return int(jobs[1][USER].max(initial=-1)) + 1


@compiled
def end_of(log: Log, place: int) -> tuple[int, float]:
    """A job that has ended, and when."""
    (numbers, _), (order, starts, begin) = log
    job = order[place]
    return job, float(begin + starts[job]) + numbers[RUNTIME, job]


@compiled
def asked_of(jobs: JobColumns, job: int) -> tuple[int, float, float]:
    """User, request and submit time of a job."""
    numbers, ids = jobs
    return ids[USER, job], numbers[REQUEST, job], numbers[SUBMIT, job]
