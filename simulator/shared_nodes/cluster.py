"""Nodes of one CPU that parallel tasks and local users share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from simulator.shared_nodes.jobs import MILLION, Contention, RunningJob, SharedJob, millionths


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
