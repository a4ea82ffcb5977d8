"""Nodes of one CPU that parallel tasks and local users share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from simulator.shared_nodes.jobs import MILLION, Contention, RunningJob, SharedJob, millionths


@dataclass(slots=True)
class Room:
    """What is taken of a node, and by how many.

    Attributes:
        parallel_tasks: MPL_paral(n).
        local_tasks: MPL_local(n).
        wanted: CPU_paral(n) + CPU_local(n), millionths of a CPU that all tasks would use alone.
        used_memory: KiB that all tasks take.
        memory: KiB that the node has; None if nobody knows, and then it is enough.
    """

    parallel_tasks: int
    local_tasks: int
    wanted: int
    used_memory: int
    memory: int | None

    def take(self, job: SharedJob) -> None:
        """A task of the job is started."""
        self.parallel_tasks += 1
        self.wanted += job.wanted
        self.used_memory += job.memory

    def give_back(self, job: SharedJob) -> None:
        """A task of the job ends."""
        self.parallel_tasks -= 1
        self.wanted -= job.wanted
        self.used_memory -= job.memory


class Node:
    """A node of one CPU.

    Args:
        number: its place in the cluster, from 0.
        local_tasks: of local users.
        local_cpu: CPUs that local users want.
        memory: KiB, if it is known.
        local_memory: KiB of these that local users take.

    Attributes:
        runs: of parallel jobs, one task each, in the order in which they were started.
        room: what these and the local users take.
    """

    __slots__ = ("_without_runs", "local_cpu", "number", "room", "runs")

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
        self.room = Room(0, local_tasks, millionths(local_cpu), local_memory, memory)
        self._without_runs = replace(self.room)

    @property
    def tasks(self) -> int:
        """MPL_paral(n) + MPL_local(n)."""
        return self.room.local_tasks + self.room.parallel_tasks

    @property
    def cpu(self) -> float:
        """CPU_paral(n) + CPU_local(n), in CPUs."""
        return self.room.wanted / MILLION

    def without_runs(self) -> "Node":
        """A node with the same local load and nothing else."""
        local = self._without_runs
        return Node(
            self.number,
            local_tasks=local.local_tasks,
            local_cpu=self.local_cpu,
            memory=local.memory,
            local_memory=local.used_memory,
        )

    def add(self, run: RunningJob) -> None:
        """Put a task of the run there."""
        self.runs.append(run)
        self.room.take(run.job)

    def remove(self, run: RunningJob) -> None:
        """Take the run's task away."""
        self.runs.remove(run)
        self.room.give_back(run.job)


class Cluster:
    """The nodes and the runs on them, which change only here.

    Attributes:
        nodes: in the order of their numbers.
        runs: of parallel jobs, in the order in which they were started.
    """

    __slots__ = ("nodes", "runs")

    def __init__(self, nodes: Sequence[Node], runs: Iterable[RunningJob] = ()) -> None:
        self.nodes = nodes
        self.runs: list[RunningJob] = []
        for run in runs:
            self.start(run)

    def copy(self) -> "Cluster":
        """The same nodes and runs, to be changed apart from these."""
        return Cluster([node.without_runs() for node in self.nodes], map(replace, self.runs))

    def start(self, run: RunningJob) -> None:
        """Put a task of the run on each of its nodes."""
        self.runs.append(run)
        for number in run.nodes:
            self.nodes[number].add(run)
        self._changed(run)

    def end(self, run: RunningJob) -> None:
        """Take the run off its nodes."""
        self.runs.remove(run)
        for number in run.nodes:
            self.nodes[number].remove(run)
        self._changed(run)

    def _changed(self, run: RunningJob) -> None:
        """Renew the contention of every run that has a node in common with this one."""
        for neighbour in {id(run): run for n in run.nodes for run in self.nodes[n].runs}.values():
            nodes = [self.nodes[number] for number in neighbour.nodes]
            neighbour.contention = Contention(
                max([node.tasks for node in nodes]), max([node.cpu for node in nodes])
            )
