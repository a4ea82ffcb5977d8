"""Nodes of one CPU that parallel tasks and local users share."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from simulator.shared_nodes.jobs import Contention, Run


class Node:
    """What runs on a node.

    Attributes:
        number: its place in the cluster, from 0.
        runs: of parallel jobs, one task each, in the order in which they were started.
        tasks: MPL_paral(n) + MPL_local(n).
        cpu: CPU_paral(n) + CPU_local(n), the CPUs that its tasks would use in isolation.
    """

    __slots__ = ("_local_cpu", "_local_tasks", "cpu", "number", "runs", "tasks")

    def __init__(self, number: int, *, local_tasks: int = 0, local_cpu: float = 0.0) -> None:
        self.number = number
        self.runs: list[Run] = []
        self._local_tasks = local_tasks
        self._local_cpu = local_cpu
        self.count()

    @property
    def local_cpu(self) -> float:
        """CPU_local(n)."""
        return self._local_cpu

    def without_runs(self) -> "Node":
        """A node with the same local load and nothing else."""
        return Node(self.number, local_tasks=self._local_tasks, local_cpu=self._local_cpu)

    def count(self) -> None:
        """Count tasks and CPUs anew: sums that were kept would drift."""
        self.tasks = self._local_tasks + len(self.runs)
        self.cpu = self._local_cpu + sum(run.job.cpu_share for run in self.runs)


class Cluster:
    """The nodes and the runs on them, which change only here.

    Attributes:
        nodes: in the order of their numbers.
        runs: of parallel jobs, in the order in which they were started.
    """

    __slots__ = ("nodes", "runs")

    def __init__(self, nodes: Sequence[Node], runs: Iterable[Run] = ()) -> None:
        self.nodes = nodes
        self.runs: list[Run] = []
        for run in runs:
            self.start(run)

    def copy(self) -> "Cluster":
        """The same nodes and runs, to be changed apart from these."""
        return Cluster([node.without_runs() for node in self.nodes], map(replace, self.runs))

    def start(self, run: Run) -> None:
        """Put a task of the run on each of its nodes."""
        self.runs.append(run)
        for number in run.nodes:
            self.nodes[number].runs.append(run)
        self._changed(run)

    def end(self, run: Run) -> None:
        """Take the run off its nodes."""
        self.runs.remove(run)
        for number in run.nodes:
            self.nodes[number].runs.remove(run)
        self._changed(run)

    def _changed(self, run: Run) -> None:
        """Renew the contention of every run that has a node in common with this one."""
        for number in run.nodes:
            self.nodes[number].count()
        for neighbour in {id(run): run for n in run.nodes for run in self.nodes[n].runs}.values():
            nodes = [self.nodes[number] for number in neighbour.nodes]
            neighbour.contention = Contention(
                max([node.tasks for node in nodes]), max([node.cpu for node in nodes])
            )
