"""Node selection: on which of the nodes that take another parallel task a job is started."""

from collections.abc import Callable, Sequence

from simulator.shared_nodes.cluster import Cluster, Node
from simulator.shared_nodes.jobs import RunningJob, SharedJob

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
