"""Scheduling policies of shared nodes: which waiting job is started next, and where."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from simulator.shared_nodes.cluster import (
    RESOLUTION,
    Cluster,
    Node,
    NodeLoad,
    RunningJob,
    SharedJob,
    millionths,
)
from simulator.shared_nodes.pace import cpu as expected_remaining_time

PARALLEL_MPL = 4
"""Most parallel tasks on a node, however little CPU they want (the paper's limit)."""

CPU_LIMIT = 1.15
"""CPUs that may be wanted of a node of one CPU, local users included, when a task is started.

The paper names no number. Its nodes take a parallel task as long as that does not overload them
in detriment of the local user, and it ran all of its jobs, each alone on its nodes (Basic), also
where all nodes had a local user at 15% of the CPU. So a task that wants a whole CPU is taken
beside such a user, which makes 1.15 the lowest limit that lets the paper's experiment happen;
two tasks share a node where together they want no more than that.
"""


Placement = Callable[[SharedJob, Sequence[Node], Cluster], tuple[int, ...]]
"""(job, open nodes, at least as many as it has tasks, cluster) -> the nodes it takes."""


def normal(job: SharedJob, open_nodes: Sequence[Node], _cluster: Cluster) -> tuple[int, ...]:
    """Choose the least wanted nodes, so that no local user is crowded out.

    Nodes are sorted by CPUs wanted, number of tasks, and number of the node. CPUs are whole
    millionths, so that equal demands compare as equal.
    """
    least_used = sorted(open_nodes, key=lambda node: (node.load.wanted, node.tasks, node.number))
    return tuple(sorted(node.number for node in least_used[: job.tasks]))


def uniform(job: SharedJob, open_nodes: Sequence[Node], cluster: Cluster) -> tuple[int, ...]:
    """Choose idle nodes, else the nodes of another job of the same size, else as ``normal``.

    Among running jobs with as many tasks, those are preferred whose nodes hold only jobs on the
    same nodes, then those with fewer jobs of the same kind (bound by computation or by
    communication), then those with less CPU wanted.
    """
    idle = [node for node in open_nodes if not node.runs]
    if len(idle) >= job.tasks:
        return normal(job, idle, cluster)
    can_be_taken = {node.number for node in open_nodes}
    partners = [
        run
        for run in cluster.runs
        if len(run.nodes) == job.tasks and can_be_taken.issuperset(run.nodes)
    ]
    if not partners:
        return normal(job, open_nodes, cluster)
    return min(partners, key=lambda run: _misfit(job, run, cluster)).nodes


def _misfit(job: SharedJob, partner: RunningJob, cluster: Cluster) -> tuple[int, int, float, int]:
    """Rank the nodes of a partner for the job: the least is best, ties by the first node."""
    there = [run for number in partner.nodes for run in cluster.nodes[number].runs]
    return (
        sum(run.nodes != partner.nodes for run in there),
        sum(run.job.computation_bound == job.computation_bound for run in there),
        partner.contention.cpu,
        partner.nodes[0],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPolicy:
    """A job selection and a node selection.

    Attributes:
        parallel_mpl: most parallel tasks on a node.
        cpu_limit: most CPUs wanted of a node, local users included.
    """

    selects: "Selection"
    places: Placement
    parallel_mpl: int
    cpu_limit: float = CPU_LIMIT

    def next_start(self, queue: Sequence[SharedJob], cluster: Cluster) -> RunningJob | None:
        """Return the run to start now, or None; call again after each start."""
        return self.selects(self, queue, cluster)

    def admits(self, job: SharedJob, load: NodeLoad) -> bool:
        """Whether a node with this load takes another task of the job.

        It has fewer than ``parallel_mpl`` parallel tasks, and the demand stays within ``cpu_limit``
        and the node's memory: so the MPL depends on the node's state.
        """
        return (
            load.parallel_tasks < self.parallel_mpl
            and load.wanted + job.wanted <= millionths(self.cpu_limit)
            and (load.memory is None or load.used_memory + job.memory <= load.memory)
        )

    def open_nodes(self, job: SharedJob, cluster: Cluster) -> list[Node]:
        """Return the nodes that take a task of the job."""
        return [node for node in cluster.nodes if self.admits(job, node.load)]

    def can_ever_run(self, job: SharedJob, idle: Cluster) -> bool:
        """Whether enough nodes of a cluster without parallel jobs take the job."""
        return len(self.open_nodes(job, idle)) >= job.tasks

    def fit(self, job: SharedJob, cluster: Cluster) -> RunningJob | None:
        """Return a run of the job on nodes that take it, or None if they are too few."""
        open_nodes = self.open_nodes(job, cluster)
        if len(open_nodes) < job.tasks:
            return None
        return RunningJob(job=job, nodes=self.places(job, open_nodes, cluster))


Selection = Callable[[SharedPolicy, Sequence[SharedJob], Cluster], RunningJob | None]


def fcfs(policy: SharedPolicy, queue: Sequence[SharedJob], cluster: Cluster) -> RunningJob | None:
    """Start the job at the head of the queue, if it fits."""
    return policy.fit(queue[0], cluster) if queue else None


def backfilling(
    policy: SharedPolicy, queue: Sequence[SharedJob], cluster: Cluster
) -> RunningJob | None:
    """Start the head, else the first job whose start does not delay the start of the head.

    The start of the head follows from the remaining times by Eqs 5-7 under the present contention:
    a job that slows down the jobs whose nodes the head waits for delays the head, too.
    """
    if not queue:
        return None
    head, *others = queue
    if run := policy.fit(head, cluster):
        return run
    open_nodes: dict[tuple[int, int], list[Node]] = {}
    reserved: float | None = None
    for job in others:
        demand = (job.wanted, job.memory)
        if demand not in open_nodes:
            open_nodes[demand] = policy.open_nodes(job, cluster)
        if len(open_nodes[demand]) < job.tasks:
            continue
        if reserved is None:
            reserved = _seconds_until_open(policy, head, cluster)
        run = RunningJob(job=job, nodes=policy.places(job, open_nodes[demand], cluster))
        cluster.start(run)
        delayed = _seconds_until_open(policy, head, cluster) > reserved + RESOLUTION
        cluster.end(run)
        if not delayed:
            return run
    return None


def _seconds_until_open(policy: SharedPolicy, head: SharedJob, cluster: Cluster) -> float:
    """Return the seconds until enough nodes take the head, by remaining times; inf for never."""
    loads = [replace(node.load) for node in cluster.nodes]
    open_numbers = {number for number, load in enumerate(loads) if policy.admits(head, load)}
    ends = sorted((expected_remaining_time(run), place) for place, run in enumerate(cluster.runs))
    for seconds, place in ends:
        run = cluster.runs[place]
        for number in run.nodes:
            loads[number].give_back(run.job)
            if policy.admits(head, loads[number]):
                open_numbers.add(number)
        if len(open_numbers) >= head.tasks:
            return seconds
    return inf


SHARED_POLICIES: Mapping[str, SharedPolicy] = {
    "normal-backfilling": SharedPolicy(
        selects=backfilling, places=normal, parallel_mpl=PARALLEL_MPL
    ),
    "uniform-backfilling": SharedPolicy(
        selects=backfilling, places=uniform, parallel_mpl=PARALLEL_MPL
    ),
    "basic": SharedPolicy(selects=fcfs, places=normal, parallel_mpl=1),
    "normal": SharedPolicy(selects=fcfs, places=normal, parallel_mpl=PARALLEL_MPL),
    "uniform": SharedPolicy(selects=fcfs, places=uniform, parallel_mpl=PARALLEL_MPL),
}
"""The policies of the paper by name; its Basic is Normal and FCFS with one job on a node."""
