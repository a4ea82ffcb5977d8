"""Jobs and nodes of non-dedicated clusters for tests."""

from hypothesis import strategies

from simulator.shared_nodes.cluster import Cluster, Node, SharedJob


def job(name, tasks=1, seconds=100.0, share=0.5, memory=0):
    """A job that alone runs so long with such a share of a CPU."""
    return SharedJob(
        job_id=name, tasks=tasks, execution_time=seconds, cpu_share=share, memory=memory
    )


def nodes(count, local=()):
    """Nodes, some of which have a local task of 15%."""
    return [
        Node(number, local_tasks=1, local_cpu=0.15) if number in local else Node(number)
        for number in range(count)
    ]


@strategies.composite
def shared_jobs(draw, most_tasks=4, max_size=12):
    """Some jobs that fit on so many nodes."""
    kinds = strategies.tuples(
        strategies.integers(1, most_tasks),
        strategies.integers(1, 500),
        strategies.sampled_from([0.05, 0.2, 0.45, 0.5, 0.7, 0.95, 1.0]),
    )
    drawn = draw(strategies.lists(kinds, min_size=1, max_size=max_size))
    return [job(f"j{place}", *kind) for place, kind in enumerate(drawn)]


@strategies.composite
def idle_clusters(draw, size=4):
    """Nodes without parallel jobs, any of which may have a local user."""
    return Cluster(nodes(size, draw(strategies.sets(strategies.integers(0, size - 1)))))
