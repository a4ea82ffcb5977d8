from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from shared_nodes import idle_clusters, job, nodes, shared_jobs

from simulator.shared_nodes.cluster import Cluster, Node, RunningJob
from simulator.shared_nodes.pace import ProcessorSharing
from simulator.shared_nodes.policies import SHARED_POLICIES, normal, uniform
from simulator.shared_nodes.simulation import SharedSimulation


def chosen(name, queue, cluster):
    run = SHARED_POLICIES[name].next_start(queue, cluster)
    return run and (run.job.job_id, run.nodes)


def test_normal_takes_the_nodes_of_which_least_is_wanted():
    runs = [
        RunningJob(job=job("a", share=0.5), nodes=(0,)),
        RunningJob(job=job("b", share=0.1), nodes=(3,)),
    ]
    cluster = Cluster(nodes(4, local=[1]), runs)
    assert normal(job("new", tasks=3), cluster.nodes, cluster) == (1, 2, 3)


def test_uniform_shares_with_a_job_of_its_size_and_only_with_it():
    """Fig. 2a of the paper, where Normal spreads the third job over the nodes of both others."""
    runs = [
        RunningJob(job=job("1", tasks=4, share=0.2), nodes=(0, 1, 2, 3)),
        RunningJob(job=job("2", tasks=2, share=0.3), nodes=(4, 5)),
    ]
    cluster = Cluster(nodes(6), runs)
    third = job("3", tasks=2)
    assert uniform(third, cluster.nodes, cluster) == (4, 5)
    assert normal(third, cluster.nodes, cluster) == (0, 1)


def test_uniform_takes_idle_nodes_first():
    cluster = Cluster(nodes(4), [RunningJob(job=job("1", tasks=2), nodes=(0, 1))])
    assert uniform(job("2", tasks=2), cluster.nodes, cluster) == (2, 3)


def test_uniform_mixes_computation_with_communication():
    runs = [
        RunningJob(job=job("computes", tasks=2, share=0.8), nodes=(0, 1)),
        RunningJob(job=job("communicates", tasks=2, share=0.2), nodes=(2, 3)),
    ]
    cluster = Cluster(nodes(4), runs)
    assert uniform(job("new", tasks=2, share=0.9), cluster.nodes, cluster) == (2, 3)
    assert uniform(job("new", tasks=2, share=0.1), cluster.nodes, cluster) == (0, 1)


def test_uniform_prefers_nodes_whose_jobs_all_have_just_these_nodes():
    runs = [
        RunningJob(job=job("1", tasks=2, share=0.3), nodes=(0, 1)),
        RunningJob(job=job("2", tasks=1, share=0.1), nodes=(1,)),
        RunningJob(job=job("3", tasks=2, share=0.7), nodes=(2, 3)),
    ]
    cluster = Cluster(nodes(4), runs)
    assert uniform(job("new", tasks=2, share=0.9), cluster.nodes, cluster) == (2, 3)


def test_basic_lets_no_jobs_share_a_node():
    cluster = Cluster(nodes(2), [RunningJob(job=job("a"), nodes=(0,))])
    assert chosen("basic", [job("b", tasks=2), job("c")], cluster) is None
    assert chosen("basic", [job("c")], cluster) == ("c", (1,))
    assert chosen("normal", [job("b", tasks=2)], cluster) == ("b", (0, 1))


@pytest.mark.parametrize(("there", "fits"), [(0.5, True), (0.51, False)])
@pytest.mark.parametrize("policy", ["normal", "uniform", "normal-backfilling"])
def test_a_task_is_taken_only_within_the_limit_of_what_is_wanted(policy, there, fits):
    """0.15 for the local user, 0.5 for the task: 1.15 is the limit."""
    cluster = Cluster(nodes(1, local=[0]), [RunningJob(job=job("old", share=there), nodes=(0,))])
    assert (chosen(policy, [job("new", share=0.5)], cluster) == ("new", (0,))) is fits


def test_the_multiprogramming_level_follows_from_what_is_wanted():
    """Beside a local user a node takes one heavy task, two middling ones or four light ones."""
    for share, most in [(0.9, 1), (0.5, 2), (0.33, 3), (0.25, 4), (0.05, 4)]:
        cluster = Cluster(nodes(1, local=[0]))
        simulation = SharedSimulation(
            cluster,
            [job(f"{n}", share=share) for n in range(6)],
            SHARED_POLICIES["normal"],
            ProcessorSharing(),
        )
        simulation.run(until=0.0)
        assert len(cluster.runs) == most


def test_nobody_computes_beside_a_local_user_who_wants_the_whole_node():
    busy = Node(0, local_tasks=1, local_cpu=0.99)
    cluster = Cluster([busy, Node(1)])
    policy = SHARED_POLICIES["normal"]
    assert chosen("normal", [job("wide", tasks=2, share=0.9)], cluster) is None
    assert not policy.can_ever_run(job("wide", tasks=2, share=0.9), cluster)
    assert policy.can_ever_run(job("wide", tasks=2, share=0.16), cluster)
    assert chosen("normal", [job("narrow", share=0.9)], cluster) == ("narrow", (1,))


def test_a_limit_of_its_own_lets_a_machine_take_more():
    cluster = Cluster(nodes(1), [RunningJob(job=job("old", share=1.0), nodes=(0,))])
    generous = replace(SHARED_POLICIES["normal"], cpu_limit=2.0)
    assert chosen("normal", [job("new", share=1.0)], cluster) is None
    assert generous.next_start([job("new", share=1.0)], cluster).nodes == (0,)


def test_a_task_is_taken_only_where_its_memory_is_left():
    used = Node(0, local_tasks=1, memory=512, local_memory=180)
    cluster = Cluster([used, Node(1, memory=512)])
    assert chosen("normal", [job("a", tasks=2, share=0.1, memory=332)], cluster) == ("a", (0, 1))
    assert chosen("normal", [job("a", tasks=2, share=0.1, memory=333)], cluster) is None
    assert chosen("normal", [job("a", tasks=1, share=0.1, memory=333)], cluster) == ("a", (1,))


@given(order=st.permutations([0.1, 0.2, 0.3, 0.7]), other=st.permutations([0.1, 0.2, 0.3, 0.7]))
def test_what_is_wanted_does_not_depend_on_the_order_of_starts(order, other):
    runs = [
        RunningJob(job=job(f"{n}-{place}", share=share), nodes=(n,))
        for n, shares in enumerate((order, other))
        for place, share in enumerate(shares)
    ]
    cluster = Cluster(nodes(2), runs)
    assert cluster.nodes[0].load.wanted == cluster.nodes[1].load.wanted == 1_300_000
    assert normal(job("new"), cluster.nodes, cluster) == (0,)


@pytest.mark.parametrize("policy", SHARED_POLICIES)
@examples(30)
@given(cluster=idle_clusters(), jobs=shared_jobs(max_size=20))
def test_no_start_leaves_a_node_with_a_local_user_above_the_limit(policy, cluster, jobs):
    rules = SHARED_POLICIES[policy]
    truth = SharedSimulation(cluster, jobs, rules, ProcessorSharing())
    while truth.queue or cluster.runs:
        for node in cluster.nodes:
            assert node.cpu <= rules.cpu_limit
            assert node.tasks - bool(node.local_cpu) <= rules.parallel_mpl
        truth.run(until=truth.now + 37.0)


def full_but_one():
    """Node 0 is free until the four jobs of node 1 end, in 100 s as they want a CPU together."""
    return Cluster(
        nodes(2),
        [RunningJob(job=job(f"{n}", seconds=100, share=0.25), nodes=(1,)) for n in range(4)],
    )


def test_fcfs_lets_nobody_pass_the_head():
    assert chosen("normal", [job("head", tasks=2), job("small")], full_but_one()) is None


def test_backfilling_starts_what_does_not_delay_the_head():
    queue = [job("head", tasks=2), job("small", seconds=900)]
    assert chosen("normal-backfilling", queue, full_but_one()) == ("small", (0,))


def test_backfilling_starts_nothing_that_slows_down_those_the_head_waits_for():
    """The head waits for the wide job, which a task on node 0 would slow down."""
    runs = [RunningJob(job=job(f"{n}", share=0.1), nodes=(1,)) for n in range(3)]
    wide = RunningJob(job=job("wide", tasks=2, seconds=50, share=0.8), nodes=(0, 1))
    cluster = Cluster(nodes(2), [*runs, wide])
    queue = [job("head", tasks=2), job("heavy", share=0.9), job("light", share=0.1)]
    before = [run.contention for run in cluster.runs]
    assert chosen("normal-backfilling", queue, cluster) == ("light", (0,))
    assert [run.contention for run in cluster.runs] == before


def test_backfilling_starts_nothing_that_occupies_what_the_head_waits_for():
    """On 2 nodes one of which has one place left, the head needs both in 10 s."""
    runs = [RunningJob(job=job(f"long{n}", seconds=1000, share=0.1), nodes=(0,)) for n in range(3)]
    runs += [RunningJob(job=job("short", seconds=10, share=0.1), nodes=(1,))]
    runs += [RunningJob(job=job(f"more{n}", seconds=1000, share=0.1), nodes=(1,)) for n in range(3)]
    cluster = Cluster(nodes(2), runs)
    head = job("head", tasks=2, share=0.1)
    assert chosen("normal-backfilling", [head, job("b", seconds=500, share=0.1)], cluster) is None
    assert chosen("normal-backfilling", [head, job("b", seconds=5, share=0.1)], cluster) == (
        "b",
        (0,),
    )
