"""Nodes of one CPU that parallel tasks and local users share, the jobs, and their runs.

Reference for the whole package:
    M. Hanzich, J. L. Lérida, M. Torchinsky, F. Giné, P. Hernández and E. Luque, "Using
    On-The-Fly Simulation for Estimating the Turnaround Time on Non-Dedicated Clusters", 2005.

A job is one task on each of its nodes, and its tasks advance together. Durations are seconds,
floats as soon as nodes are shared. CPU time is that of one task; a CPU share is a fraction of
one CPU.
"""

from collections.abc import Iterable, Sequence
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


@dataclass(slots=True)
class NodeLoad:
    """The load of a node: tasks, CPU and memory.

    Attributes:
        parallel_tasks: MPL_paral(n).
        local_tasks: MPL_local(n).
        wanted: CPU_paral(n) + CPU_local(n), in millionths of a CPU, as in isolation.
        used_memory: KiB that all tasks take.
        memory: KiB of the node; None if unknown, and then memory limits nothing.
    """

    parallel_tasks: int
    local_tasks: int
    wanted: int
    used_memory: int
    memory: int | None

    def take(self, job: SharedJob) -> None:
        """Add a task of the job."""
        self.parallel_tasks += 1
        self.wanted += job.wanted
        self.used_memory += job.memory

    def give_back(self, job: SharedJob) -> None:
        """Remove a task of the job."""
        self.parallel_tasks -= 1
        self.wanted -= job.wanted
        self.used_memory -= job.memory


class Node:
    """A node of one CPU.

    Args:
        number: index of the node in the cluster, from 0.
        local_tasks: number of tasks of local users.
        local_cpu: CPUs that local users want.
        memory: KiB of the node; None if unknown.
        local_memory: KiB of these that local users take.

    Attributes:
        runs: running parallel jobs with a task here, in the order of their starts.
        load: the load of these and of the local users.
    """

    __slots__ = ("_local_load", "load", "local_cpu", "number", "runs")

    def __init__(
        self,
        number: int,
        *,
        local_tasks: int = 0,
        local_cpu: float = 0.0,
        memory: int | None = None,
        local_memory: int = 0,
    ) -> None:
        self.number = number
        self.local_cpu = local_cpu
        self.runs: list[RunningJob] = []
        self.load = NodeLoad(0, local_tasks, millionths(local_cpu), local_memory, memory)
        self._local_load = replace(self.load)

    @property
    def tasks(self) -> int:
        """MPL_paral(n) + MPL_local(n)."""
        return self.load.local_tasks + self.load.parallel_tasks

    @property
    def cpu(self) -> float:
        """CPU_paral(n) + CPU_local(n), in CPUs."""
        return self.load.wanted / MILLION

    def without_runs(self) -> "Node":
        """Return a node with the same local load and no parallel jobs."""
        local = self._local_load
        return Node(
            self.number,
            local_tasks=local.local_tasks,
            local_cpu=self.local_cpu,
            memory=local.memory,
            local_memory=local.used_memory,
        )

    def add(self, run: RunningJob) -> None:
        """Add a task of the run."""
        self.runs.append(run)
        self.load.take(run.job)

    def remove(self, run: RunningJob) -> None:
        """Remove the task of the run."""
        self.runs.remove(run)
        self.load.give_back(run.job)


class Cluster:
    """Nodes and the runs on them; only its methods change them.

    Attributes:
        nodes: nodes in the order of their numbers.
        runs: running parallel jobs in the order of their starts.
    """

    __slots__ = ("nodes", "runs")

    def __init__(self, nodes: Sequence[Node], runs: Iterable[RunningJob] = ()) -> None:
        self.nodes = nodes
        self.runs: list[RunningJob] = []
        for run in runs:
            self.start(run)

    def copy(self) -> "Cluster":
        """Return a copy of the nodes and runs that can be changed independently."""
        return Cluster([node.without_runs() for node in self.nodes], map(replace, self.runs))

    def start(self, run: RunningJob) -> None:
        """Put a task of the run on each of its nodes."""
        self.runs.append(run)
        for number in run.nodes:
            self.nodes[number].add(run)
        self._changed(run)

    def end(self, run: RunningJob) -> None:
        """Remove the run from its nodes."""
        self.runs.remove(run)
        for number in run.nodes:
            self.nodes[number].remove(run)
        self._changed(run)

    def _changed(self, run: RunningJob) -> None:
        """Update the contention of every run that shares a node with this run."""
        for neighbour in {id(run): run for n in run.nodes for run in self.nodes[n].runs}.values():
            nodes = [self.nodes[number] for number in neighbour.nodes]
            neighbour.contention = Contention(
                max([node.tasks for node in nodes]), max([node.cpu for node in nodes])
            )
