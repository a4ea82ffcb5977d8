from shared_nodes import job, nodes

from simulator.shared_nodes.cluster import Cluster
from simulator.shared_nodes.jobs import Run
from simulator.shared_nodes.placement import normal, uniform
from simulator.shared_nodes.policies import SHARED_POLICIES


def chosen(name, queue, cluster):
    run = SHARED_POLICIES[name].next_start(queue, cluster)
    return run and (run.job.job_id, run.nodes)


def test_normal_takes_the_nodes_of_which_least_is_wanted():
    runs = [
        Run(job=job("a", share=0.5), nodes=(0,)),
        Run(job=job("b", share=0.1), nodes=(3,)),
    ]
    cluster = Cluster(nodes(4, local=[1]), runs)
    assert normal(job("new", tasks=3), cluster.nodes, cluster) == (1, 2, 3)


def test_uniform_shares_with_a_job_of_its_size_and_only_with_it():
    """Fig. 2a of the paper, where Normal spreads the third job over the nodes of both others."""
    runs = [
        Run(job=job("1", tasks=4, share=0.2), nodes=(0, 1, 2, 3)),
        Run(job=job("2", tasks=2, share=0.3), nodes=(4, 5)),
    ]
    cluster = Cluster(nodes(6), runs)
    third = job("3", tasks=2)
    assert uniform(third, cluster.nodes, cluster) == (4, 5)
    assert normal(third, cluster.nodes, cluster) == (0, 1)


def test_uniform_takes_idle_nodes_first():
    cluster = Cluster(nodes(4), [Run(job=job("1", tasks=2), nodes=(0, 1))])
    assert uniform(job("2", tasks=2), cluster.nodes, cluster) == (2, 3)


def test_uniform_mixes_computation_with_communication():
    runs = [
        Run(job=job("computes", tasks=2, share=0.8), nodes=(0, 1)),
        Run(job=job("communicates", tasks=2, share=0.2), nodes=(2, 3)),
    ]
    cluster = Cluster(nodes(4), runs)
    assert uniform(job("new", tasks=2, share=0.9), cluster.nodes, cluster) == (2, 3)
    assert uniform(job("new", tasks=2, share=0.1), cluster.nodes, cluster) == (0, 1)


def test_uniform_prefers_nodes_whose_jobs_all_have_just_these_nodes():
    runs = [
        Run(job=job("1", tasks=2, share=0.3), nodes=(0, 1)),
        Run(job=job("2", tasks=1, share=0.1), nodes=(1,)),
        Run(job=job("3", tasks=2, share=0.7), nodes=(2, 3)),
    ]
    cluster = Cluster(nodes(4), runs)
    assert uniform(job("new", tasks=2, share=0.9), cluster.nodes, cluster) == (2, 3)


def test_basic_lets_no_jobs_share_a_node():
    cluster = Cluster(nodes(2), [Run(job=job("a"), nodes=(0,))])
    assert chosen("basic", [job("b", tasks=2), job("c")], cluster) is None
    assert chosen("basic", [job("c")], cluster) == ("c", (1,))
    assert chosen("normal", [job("b", tasks=2)], cluster) == ("b", (0, 1))


def test_a_node_takes_four_parallel_tasks_besides_local_ones():
    cluster = Cluster(nodes(1, local=[0]), [Run(job=job(f"{n}"), nodes=(0,)) for n in range(3)])
    run = SHARED_POLICIES["normal"].next_start([job("fourth")], cluster)
    cluster.start(run)
    assert SHARED_POLICIES["normal"].next_start([job("fifth")], cluster) is None


def full_but_one():
    """Node 0 is free until the four jobs of node 1 end, in 200 s as four share a CPU."""
    return Cluster(
        nodes(2), [Run(job=job(f"{n}", seconds=100, share=0.5), nodes=(1,)) for n in range(4)]
    )


def test_fcfs_lets_nobody_pass_the_head():
    assert chosen("normal", [job("head", tasks=2), job("small")], full_but_one()) is None


def test_backfilling_starts_what_does_not_delay_the_head():
    queue = [job("head", tasks=2), job("small", seconds=900)]
    assert chosen("normal-backfilling", queue, full_but_one()) == ("small", (0,))


def test_backfilling_starts_nothing_that_slows_down_those_the_head_waits_for():
    """The head waits for the wide job, which a task on node 0 would slow down."""
    runs = [Run(job=job(f"{n}", share=0.1), nodes=(1,)) for n in range(3)]
    wide = Run(job=job("wide", tasks=2, seconds=50, share=0.8), nodes=(0, 1))
    cluster = Cluster(nodes(2), [*runs, wide])
    queue = [job("head", tasks=2), job("heavy", share=0.9), job("light", share=0.1)]
    before = [run.contention for run in cluster.runs]
    assert chosen("normal-backfilling", queue, cluster) == ("light", (0,))
    assert [run.contention for run in cluster.runs] == before


def test_backfilling_starts_nothing_that_occupies_what_the_head_waits_for():
    """On 2 nodes one of which has one place left, the head needs both in 10 s."""
    runs = [Run(job=job(f"long{n}", seconds=1000, share=0.1), nodes=(0,)) for n in range(3)]
    runs += [Run(job=job("short", seconds=10, share=0.1), nodes=(1,))]
    runs += [Run(job=job(f"more{n}", seconds=1000, share=0.1), nodes=(1,)) for n in range(3)]
    cluster = Cluster(nodes(2), runs)
    head = job("head", tasks=2, share=0.1)
    assert chosen("normal-backfilling", [head, job("b", seconds=500, share=0.1)], cluster) is None
    assert chosen("normal-backfilling", [head, job("b", seconds=5, share=0.1)], cluster) == (
        "b",
        (0,),
    )
