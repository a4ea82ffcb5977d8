"""Parallel jobs on shared nodes, and their runs.

Reference for the whole package:
    M. Hanzich, J. L. Lérida, M. Torchinsky, F. Giné, P. Hernández and E. Luque, "Using
    On-The-Fly Simulation for Estimating the Turnaround Time on Non-Dedicated Clusters", 2005.

A job is one task on each of its nodes, and its tasks advance together. Durations are seconds,
floats as soon as nodes are shared. CPU time is that of one task; a CPU share is a fraction of
one CPU.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple, Self

COMPUTATION_BOUND = 0.5
"""CPU share above which an application is bound by computation, and below by communication."""

SHORTEST_EXECUTION = 1.0
"""Seconds; shorter execution times are raised to it."""

RESOLUTION = 1e-6
"""Seconds within which events are simultaneous, so that rounding does not order them."""

MILLION = 1_000_000


def millionths(cpus: float) -> int:
    """Convert CPUs to whole millionths, whose sums are exact in any order."""
    return round(cpus * MILLION)


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedJob:
    """A parallel job, characterised by a run in isolation.

    Attributes:
        job_id: unique among the jobs of a simulation.
        tasks: number of nodes, with one task on each.
        execution_time: ExeTime_tot, in isolation.
        cpu_share: CPU(J), the fraction of a CPU that a task uses in isolation.
        memory: KiB that each task takes of its node.
        predicted_runtime: seconds on shared nodes as predicted from history, or None.
        requested_walltime: the limit to which an outlived prediction is prolonged.
    """

    job_id: str
    tasks: int
    execution_time: float
    cpu_share: float
    memory: int = 0
    predicted_runtime: float | None = None
    requested_walltime: float | None = None

    @cached_property
    def cpu_time(self) -> float:
        """CPUtime_tot: CPU seconds of a task in isolation."""
        return self.execution_time * self.cpu_share

    @cached_property
    def wanted(self) -> int:
        """Millionths of a CPU that a task uses in isolation."""
        return millionths(self.cpu_share)

    def times(self, factor: float) -> Self:
        """Return a copy whose execution time is multiplied by ``factor``, at most its request."""
        limit = inf if self.requested_walltime is None else self.requested_walltime
        execution_time = min(limit, max(SHORTEST_EXECUTION, factor * self.execution_time))
        predicted = self.predicted_runtime
        return replace(
            self,
            execution_time=execution_time,
            predicted_runtime=predicted and min(limit, max(SHORTEST_EXECUTION, factor * predicted)),
        )

    @property
    def computation_bound(self) -> bool:
        """Whether the tasks compute more than they communicate."""
        return self.cpu_share > COMPUTATION_BOUND


class Contention(NamedTuple):
    """The demand on the most contended node of a job, its own demand included.

    Attributes:
        mpl: MPL_max(J), the largest number of parallel and local tasks on a node (Eq 3).
        cpu: CPU_max(J), the largest number of CPUs wanted on a node (Eq 7).
    """

    mpl: int
    cpu: float


NOWHERE = Contention(mpl=1, cpu=0.0)
"""Contention of a run that is on no nodes yet."""


@dataclass(slots=True, kw_only=True, eq=False)
class RunningJob:
    """A job on its nodes, which are counted from 0.

    Attributes:
        elapsed: ExeTime_cur, seconds since the start.
        cpu_time: CPUtime_cur, CPU seconds that each task has used since then.
        contention: current contention on the nodes; the cluster updates it.
    """

    job: SharedJob
    nodes: tuple[int, ...]
    elapsed: float = 0.0
    cpu_time: float = 0.0
    contention: Contention = NOWHERE
