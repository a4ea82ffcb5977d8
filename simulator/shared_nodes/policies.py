"""Scheduling policies of shared nodes: which waiting job is started next, and where."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from simulator.shared_nodes.cluster import Cluster, Node
from simulator.shared_nodes.jobs import RESOLUTION, Run, SharedJob
from simulator.shared_nodes.placement import Placement, normal, uniform
from simulator.shared_nodes.remaining_time import cpu as expected_remaining_time

PARALLEL_MPL = 4
"""The paper lets no node have more parallel tasks than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPolicy:
    """A job selection and a node selection.

    Attributes:
        selects: the job selection.
        places: the node selection.
        parallel_mpl: how many parallel tasks a node may have at most.
    """

    selects: "Selection"
    places: Placement
    parallel_mpl: int

    def next_start(self, queue: Sequence[SharedJob], cluster: Cluster) -> Run | None:
        """The run to start now, if any; to be asked again until there is none."""
        return self.selects(self, queue, cluster)

    def open_nodes(self, cluster: Cluster) -> list[Node]:
        """The nodes that take another parallel task."""
        return [node for node in cluster.nodes if len(node.runs) < self.parallel_mpl]

    def fit(self, job: SharedJob, open_nodes: Sequence[Node], cluster: Cluster) -> Run | None:
        """The run of the job on these nodes, if they are enough."""
        if len(open_nodes) < job.tasks:
            return None
        return Run(job=job, nodes=self.places(job, open_nodes, cluster))


Selection = Callable[[SharedPolicy, Sequence[SharedJob], Cluster], Run | None]


def fcfs(policy: SharedPolicy, queue: Sequence[SharedJob], cluster: Cluster) -> Run | None:
    """The job at the head of the queue."""
    return policy.fit(queue[0], policy.open_nodes(cluster), cluster) if queue else None


def backfilling(policy: SharedPolicy, queue: Sequence[SharedJob], cluster: Cluster) -> Run | None:
    """The head, else the first job whose start does not delay the start of the head.

    When the head starts is expected from the remaining times by Eqs 5-7, with the contention as
    it is: a job that would slow down those for whose nodes the head waits delays it too.
    """
    if not queue:
        return None
    head, *others = queue
    open_nodes = policy.open_nodes(cluster)
    fits = [job for job in others if job.tasks <= len(open_nodes)]
    if head.tasks <= len(open_nodes) or not fits:
        return policy.fit(head, open_nodes, cluster)
    reserved = _seconds_until_open(policy, head.tasks, cluster)
    for job in fits:
        run = Run(job=job, nodes=policy.places(job, open_nodes, cluster))
        cluster.start(run)
        delayed = _seconds_until_open(policy, head.tasks, cluster) > reserved + RESOLUTION
        cluster.end(run)
        if not delayed:
            return run
    return None


def _seconds_until_open(policy: SharedPolicy, wanted: int, cluster: Cluster) -> float:
    """When so many nodes will take another parallel task, if running jobs end as expected."""
    counts = [len(node.runs) for node in cluster.nodes]
    is_open = sum(count < policy.parallel_mpl for count in counts)
    ends = sorted((expected_remaining_time(run), run.nodes) for run in cluster.runs)
    for seconds, nodes in ends:
        for number in nodes:
            counts[number] -= 1
            is_open += counts[number] == policy.parallel_mpl - 1
        if is_open >= wanted:
            return seconds
    raise ValueError(f"A job of {wanted} tasks does not fit on {len(counts)} nodes.")


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
