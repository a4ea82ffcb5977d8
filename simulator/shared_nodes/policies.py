"""Scheduling policies of shared nodes: which waiting job is started next, and where."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from simulator.shared_nodes.cluster import Cluster, Node, Room
from simulator.shared_nodes.formulas import cpu as expected_remaining_time
from simulator.shared_nodes.jobs import RESOLUTION, RunningJob, SharedJob, millionths

PARALLEL_MPL = 4
"""The paper lets no node have more parallel tasks than this, however little they want."""

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
    """The nodes of which least is wanted, so that no local user is crowded out.

    By CPUs wanted, then number of tasks, then number of the node. CPUs are whole millionths, so
    that nodes of which the same is wanted are equal however the sum came about.
    """
    least_used = sorted(open_nodes, key=lambda node: (node.room.wanted, node.tasks, node.number))
    return tuple(sorted(node.number for node in least_used[: job.tasks]))


def uniform(job: SharedJob, open_nodes: Sequence[Node], cluster: Cluster) -> tuple[int, ...]:
    """The same nodes as another job of its size, where no idle ones are left.

    Idle nodes come first. Then the nodes of a running job with as many tasks: rather where all
    jobs have just these nodes, then where fewer are bound by the same thing, computation or
    communication, then where less CPU is wanted. Otherwise as ``normal``.
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
    """How little the nodes of the partner suit the job; the lowest number decides among equals."""
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
        selects: the job selection.
        places: the node selection.
        parallel_mpl: how many parallel tasks a node may have at most.
        cpu_limit: CPUs that may be wanted of a node, local users included.
    """

    selects: "Selection"
    places: Placement
    parallel_mpl: int
    cpu_limit: float = CPU_LIMIT

    def next_start(self, queue: Sequence[SharedJob], cluster: Cluster) -> RunningJob | None:
        """The run to start now, if any; to be asked again until there is none."""
        return self.selects(self, queue, cluster)

    def admits(self, job: SharedJob, room: Room) -> bool:
        """Whether a node with this load takes a task of the job too.

        Only while fewer than ``parallel_mpl`` parallel tasks are there and what is wanted stays
        within ``cpu_limit`` and the node's memory: so the MPL depends on the node's state.
        """
        return (
            room.parallel_tasks < self.parallel_mpl
            and room.wanted + job.wanted <= millionths(self.cpu_limit)
            and (room.memory is None or room.used_memory + job.memory <= room.memory)
        )

    def open_nodes(self, job: SharedJob, cluster: Cluster) -> list[Node]:
        """The nodes that take a task of the job."""
        return [node for node in cluster.nodes if self.admits(job, node.room)]

    def can_ever_run(self, job: SharedJob, idle: Cluster) -> bool:
        """Whether enough nodes of a cluster on which only local users are take the job."""
        return len(self.open_nodes(job, idle)) >= job.tasks

    def fit(self, job: SharedJob, cluster: Cluster) -> RunningJob | None:
        """The run of the job on nodes that take it, if they are enough."""
        open_nodes = self.open_nodes(job, cluster)
        if len(open_nodes) < job.tasks:
            return None
        return RunningJob(job=job, nodes=self.places(job, open_nodes, cluster))


Selection = Callable[[SharedPolicy, Sequence[SharedJob], Cluster], RunningJob | None]


def fcfs(policy: SharedPolicy, queue: Sequence[SharedJob], cluster: Cluster) -> RunningJob | None:
    """The job at the head of the queue."""
    return policy.fit(queue[0], cluster) if queue else None


def backfilling(
    policy: SharedPolicy, queue: Sequence[SharedJob], cluster: Cluster
) -> RunningJob | None:
    """The head, else the first job whose start does not delay the start of the head.

    When the head starts is expected from the remaining times by Eqs 5-7, with the contention as
    it is: a job that would slow down those for whose nodes the head waits delays it too.
    """
    if not queue:
        return None
    head, *others = queue
    if run := policy.fit(head, cluster):
        return run
    open_nodes: dict[tuple[int, int], list[Node]] = {}
    reserved: float | None = None
    for job in others:
        wants = (job.wanted, job.memory)
        if wants not in open_nodes:
            open_nodes[wants] = policy.open_nodes(job, cluster)
        if len(open_nodes[wants]) < job.tasks:
            continue
        if reserved is None:
            reserved = _seconds_until_open(policy, head, cluster)
        run = RunningJob(job=job, nodes=policy.places(job, open_nodes[wants], cluster))
        cluster.start(run)
        delayed = _seconds_until_open(policy, head, cluster) > reserved + RESOLUTION
        cluster.end(run)
        if not delayed:
            return run
    return None


def _seconds_until_open(policy: SharedPolicy, head: SharedJob, cluster: Cluster) -> float:
    """When enough nodes will take the head, if running jobs end as expected; never is infinite."""
    rooms = [replace(node.room) for node in cluster.nodes]
    is_open = {number for number, room in enumerate(rooms) if policy.admits(head, room)}
    ends = sorted((expected_remaining_time(run), place) for place, run in enumerate(cluster.runs))
    for seconds, place in ends:
        run = cluster.runs[place]
        for number in run.nodes:
            rooms[number].give_back(run.job)
            if policy.admits(head, rooms[number]):
                is_open.add(number)
        if len(is_open) >= head.tasks:
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
