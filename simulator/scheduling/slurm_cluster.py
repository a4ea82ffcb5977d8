"""A workload on a simulated Slurm cluster before its first submission."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from simulator.engine.slurm.slurm_loop import BY_ESTIMATE, BY_LIMIT
from simulator.engine.slurm.slurm_state import (
    NodeGroup,
    PartitionNodes,
    ReservedNodes,
    SlurmState,
    new_slurm_state,
)
from simulator.engine.state import UNKNOWN
from simulator.scheduling.semantics import PSP_AGING, Semantics
from simulator.scheduling.slurm_rules import (
    LoggedTimes,
    SlurmCluster,
    SlurmPartition,
    SlurmRules,
)
from simulator.scheduling.workload import Workload, WorkloadError
from simulator.traces.trace import Integers, Reals

UPDATER_SECONDS = 60
"""Seconds between two rounds of ``walltimed slurm-updater``, by default."""

MOST_NODES = 2**16
"""Nodes of a twin. A plan is a set of nodes for each of hundreds of times."""


def empty_cluster(workload: Workload, semantics: Semantics) -> SlurmState:
    """Return a cluster before the first submission.

    Without a site's configuration it has one partition of equal nodes, which jobs take whole.

    Raises:
        WorkloadError: the machine has too many nodes, or a job does not fit into its partition.
    """
    rules = semantics.slurm
    assert rules is not None  # noqa: S101 - the policy is slurm
    cluster = rules.cluster or plain_cluster(workload)
    partitions = queues_of_jobs(workload, cluster)
    columns: dict[str, Integers | Reals | int] = {
        "partition": partitions,
        "limit": limits_of(workload.request),
        "fixed_score": _fixed_scores(workload, rules, cluster, partitions),
        "epilog": rules.epilog,
        "first_epilog": rules.epilog,
    }
    numbers = {**rules.numbers(), **_effects(semantics)}
    state = empty_nodes(workload, cluster, columns, numbers, whole_nodes=rules.cluster is None)
    return with_logged_times(state, rules.logged) if rules.logged else state


def empty_nodes(
    workload: Workload,
    cluster: SlurmCluster,
    columns: Mapping[str, Integers | Reals | int],
    rules: Mapping[str, int],
    *,
    whole_nodes: bool,
) -> SlurmState:
    """Return nodes on which nothing runs, and the jobs before their submission.

    Args:
        columns: further columns of the jobs, see ``new_slurm_state``.
        rules: numbers by fields of ``simulator.engine.slurm.slurm_state.RULES``.
        whole_nodes: the processors of a job are whole nodes.
    """
    names = ("submit", "processors", "runtime", "request")
    of_workload = {name: getattr(workload, name) for name in names}
    nodes = workload.processors if whole_nodes else _nodes(workload, cluster)
    gpus = _gpus(workload, cluster)
    return new_slurm_state(
        {
            **of_workload,
            **columns,
            "nodes": np.where(gpus > 0, _gpu_nodes(workload), nodes),
            "gpus": gpus,
            "user": numbered(workload.trace.user),
            "account": numbered(workload.trace.group),
        },
        groups=_groups(cluster),
        partitions=[_nodes_of(each) for each in cluster.partitions],
        rules=rules,
        reservations=list(_reservations(workload, cluster)),
    )


def queues_of_jobs(workload: Workload, cluster: SlurmCluster) -> Integers:
    """Return the place of each job's queue among a cluster's partitions.

    Raises:
        WorkloadError: the cluster has too many nodes, or a job does not fit into its partition.
    """
    if cluster.nodes > MOST_NODES:
        raise WorkloadError(
            f"A twin plans sets of nodes, at most {MOST_NODES:,}: {cluster.nodes:,} need "
            "--cores-per-node, --slurm-config or --pbs-config."
        )
    names = partition_names(workload)
    partitions = np.array([cluster.place_of(name) for name in names], np.int64)
    _check_sizes(workload, cluster, partitions)
    _check_gpus(workload, cluster, partitions)
    return partitions


def plain_cluster(workload: Workload) -> SlurmCluster:
    """Return a cluster of one partition of equal nodes, which jobs take whole."""
    nodes = workload.processors_of_machine
    return SlurmCluster(
        groups=((nodes, 1, 1),),
        partitions=(SlurmPartition(name="all", ranges=((0, nodes),), exclusive=True),),
    )


def _groups(cluster: SlurmCluster) -> list[NodeGroup]:
    if not cluster.gpus:
        return [NodeGroup(*group) for group in cluster.groups]
    kinds = [kind for nodes, *kind in cluster.groups for _ in range(nodes)]
    return [
        NodeGroup(1, cpus, weight, gpus)
        for (cpus, weight), gpus in zip(kinds, cluster.gpus, strict=True)
    ]


def _nodes_of(partition: SlurmPartition) -> PartitionNodes:
    return PartitionNodes(partition.tier, partition.exclusive, _members(partition.ranges))


def _members(ranges: Sequence[tuple[int, int]]) -> list[int]:
    return [node for begin, end in ranges for node in range(begin, end)]


def _reservations(workload: Workload, cluster: SlurmCluster) -> Iterator[ReservedNodes]:
    """Yield reservations on the workload's clock; none if its log has no dates.

    Those that come again have done so since before the first submission.
    """
    zero = workload.trace.unix_start + workload.origin
    if not workload.trace.unix_start:
        return
    places = {each.name: place for place, each in enumerate(cluster.partitions)}
    for each in cluster.reservations:
        begin, end = each.begin - zero, each.end - zero
        if each.period:
            earlier = (end - 1) // each.period * each.period
            begin, end = begin - earlier, end - earlier
        if end > 0:
            yield ReservedNodes(
                members=_members(each.ranges),
                begin=begin,
                end=end,
                period=each.period,
                all_nodes=each.all_nodes,
                partition=places.get(each.partition, UNKNOWN),
                maintenance=each.maintenance,
            )


def partition_names(workload: Workload) -> list[str]:
    """Return the name of each job's queue, by the log's header, else its number."""
    names = {}
    for key in ("Partition", "Queue"):
        for line in workload.trace.header.get(key, "").splitlines():
            number, _, name = line.strip().partition(" ")
            names[number] = name.split()[0] if name.strip() else number
    return [names.get(str(number), str(number)) for number in workload.trace.queue.tolist()]


def _check_sizes(workload: Workload, cluster: SlurmCluster, partitions: Integers) -> None:
    """Refuse a job that no number of free nodes of its partition would hold.

    Raises:
        WorkloadError: the message names the job.
    """
    sizes = np.array([cluster.cpus_of(each) for each in cluster.partitions], np.int64)
    too_large = np.flatnonzero(workload.processors > sizes[partitions])
    if len(too_large):
        first = too_large[0]
        partition = cluster.partitions[partitions[first]]
        down = " on nodes that are up" if cluster.down else ""
        raise WorkloadError(
            f"Job {workload.trace.job[first]} has {workload.processors[first]:,} processors, "
            f"partition {partition.name} {sizes[partitions[first]]:,}{down}."
        )


def _check_gpus(workload: Workload, cluster: SlurmCluster, partitions: Integers) -> None:
    """Refuse a job with GPUs that its partition has too few nodes for.

    Raises:
        WorkloadError: the message names the job.
    """
    gpus, nodes = _gpus(workload, cluster), _gpu_nodes(workload)
    if not gpus.any():
        return
    cpus = -(-workload.processors // nodes)
    wanted = np.stack([partitions, nodes, cpus, gpus])[:, gpus > 0]
    kinds, first = np.unique(wanted, axis=1, return_index=True)
    for place, kind in zip(np.flatnonzero(gpus)[first].tolist(), kinds.T.tolist(), strict=True):
        partition = cluster.partitions[kind[0]]
        found = sum(has[0] >= kind[2] and has[1] >= kind[3] for has in cluster.nodes_of(partition))
        if found < kind[1]:
            raise WorkloadError(
                f"Job {workload.trace.job[place]} has {kind[1]:,} nodes with {kind[2]:,} CPUs and "
                f"{kind[3]:,} GPUs each, partition {partition.name} {found:,} such nodes."
            )


def _gpus(workload: Workload, cluster: SlurmCluster) -> Integers:
    """Return the GPUs of jobs on each of their nodes, where log and cluster have some."""
    gpus = workload.trace.gpus
    if gpus is None or not cluster.gpus:
        return np.zeros(len(workload), np.int64)
    return gpus.astype(np.int64)


def _gpu_nodes(workload: Workload) -> Integers:
    """Return the nodes of jobs that have GPUs, on each of which they have a CPU."""
    nodes = workload.trace.nodes
    if nodes is None:
        return np.ones(len(workload), np.int64)
    return np.clip(nodes.astype(np.int64), 1, workload.processors)


def _nodes(workload: Workload, cluster: SlurmCluster) -> Integers:
    """Return the number of whole nodes that jobs need where all nodes are equal, else 1."""
    cpus = {cpus for _, cpus, _ in cluster.groups}
    if len(cpus) > 1 or not all(each.exclusive for each in cluster.partitions):
        return np.ones(len(workload), np.int64)
    nodes: Integers = -(-workload.processors // cpus.pop())
    return nodes


def limits_of(requests: Integers) -> Integers:
    """Return time limits, which are whole minutes, in seconds."""
    limits: Integers = -(-requests // 60) * 60
    return limits


def numbered(names: Integers) -> Integers:
    """Return the numbers 0, 1, … in the place of arbitrary ones."""
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _fixed_scores(
    workload: Workload, rules: SlurmRules, cluster: SlurmCluster, partitions: Integers
) -> Reals:
    """Return the factors of priorities that do not change: size and partition."""
    base = np.zeros(len(workload))
    if not rules.is_multifactor:
        return base
    total = cluster.cpus
    if rules.priority_weight_job_size:
        nodes = _nodes(workload, cluster) if rules.cluster else workload.processors
        size = (nodes / cluster.nodes + workload.processors / total) / 2
        base += rules.priority_weight_job_size * (1 - size if rules.priority_favor_small else size)
    factors = np.array([each.job_factor for each in cluster.partitions], float)
    if rules.priority_weight_partition and factors.max():
        base += rules.priority_weight_partition * (factors / factors.max())[partitions]
    return base


def with_logged_times(state: SlurmState, logged: LoggedTimes) -> SlurmState:
    """Return a state in which epilogs and cycles are those that a real slurmctld logged."""
    count = len(state.jobs)
    state.jobs["epilog"] = logged.epilogs[:count]
    state.jobs["first_epilog"] = logged.first_epilogs[:count]
    return state._replace(logged_cycles=np.array(logged.cycles, np.int64))


ONLY_SITE_FACTORS = {"multifactor": 1, "weight_age": 0, "weight_fair_share": 0}
"""Rules of a site that turns priority/multifactor on for an order by site factors."""


def _effects(semantics: Semantics) -> dict[str, int]:
    """Return what estimates do: they are TimeMin, or they order the queue."""
    shortest = BY_ESTIMATE if semantics.estimated_order else BY_LIMIT
    return {
        "time_min": int(semantics.estimated_backfilling or semantics.estimated_running),
        "shortest_first": 0 if semantics.order in {"fcfs", PSP_AGING} else shortest,
        **semantics.aging,
        **semantics.ratio.numbers(semantics.order),
        "largest_site_factor": semantics.largest_site_factor,
        # Without aging an order by length takes the place of the priority.
        **({"multifactor": 0} if semantics.order == "sjf" else {}),
        **(ONLY_SITE_FACTORS if semantics.needs_multifactor else {}),
        **(_by_accuracy(semantics) if semantics.order == PSP_AGING else {}),
    }


def _by_accuracy(semantics: Semantics) -> dict[str, int]:
    """Return the rules where ``walltimed slurm-updater --order psp`` renews site factors."""
    assert semantics.slurm is not None  # noqa: S101 - the policy is slurm
    period = min(semantics.slurm.priority_calc_period, UPDATER_SECONDS)
    return {"by_accuracy": 1, "priority_calc_period": period}
