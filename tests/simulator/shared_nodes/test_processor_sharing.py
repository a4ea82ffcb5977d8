import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_nodes import idle_clusters, job, nodes, shared_jobs

from simulator.shared_nodes.cluster import Cluster, RunningJob
from simulator.shared_nodes.pace import ProcessorSharing, fair_fractions


def on_one_node(*shares, local=()):
    runs = [RunningJob(job=job(f"{n}", share=share), nodes=(0,)) for n, share in enumerate(shares)]
    return Cluster(nodes(1, local), runs)


@pytest.mark.parametrize(
    ("shares", "local", "fractions"),
    [
        ([0.6, 0.3], (), [0.6, 0.3]),
        ([0.9, 0.3], (), [0.7, 0.3]),
        ([0.9, 0.3], (0,), [0.55, 0.3]),
        ([0.9, 0.9], (), [0.5, 0.5]),
        ([1.0, 1.0, 0.2], (), [0.4, 0.4, 0.2]),
    ],
)
def test_what_a_task_does_not_want_goes_to_the_others(shares, local, fractions):
    assert fair_fractions(on_one_node(*shares, local=local)) == pytest.approx(fractions)


def test_the_most_crowded_node_holds_a_job_back_and_its_other_nodes_share_what_it_leaves():
    wide = RunningJob(job=job("wide", tasks=2, share=0.9), nodes=(0, 1))
    crowd = [RunningJob(job=job(f"crowd{n}", share=0.6), nodes=(0,)) for n in range(2)]
    other = RunningJob(job=job("other", share=0.9), nodes=(1,))
    fractions = fair_fractions(Cluster(nodes(2), [wide, *crowd, other]))
    assert fractions == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_remaining_time_is_the_cpu_time_that_is_really_needed_at_the_fraction_it_gets():
    run = RunningJob(job=job("a", seconds=100, share=0.9), nodes=(0,), cpu_time=10.0)
    other = RunningJob(job=job("b", seconds=100, share=0.9), nodes=(0,))
    cluster = Cluster(nodes(1), [run, other])
    pace = ProcessorSharing({"a": 100.0})
    assert pace.remaining_times(cluster) == pytest.approx([180.0, 180.0])
    assert pace.used_cpu_times(cluster, 30.0) == pytest.approx([15.0, 15.0])


@given(cluster=idle_clusters(), jobs=shared_jobs(), data=st.data())
def test_shares_are_feasible_and_nobody_is_held_back_by_less_than_a_full_node(cluster, jobs, data):
    for each in jobs:
        placed = data.draw(st.permutations(range(4)))[: each.tasks]
        cluster.start(RunningJob(job=each, nodes=tuple(placed)))
    fraction = dict(zip(map(id, cluster.runs), fair_fractions(cluster), strict=True))
    used = [n.local_cpu + sum(fraction[id(run)] for run in n.runs) for n in cluster.nodes]
    assert max(used) <= 1 + 1e-9
    for run in cluster.runs:
        assert 0 < fraction[id(run)] <= run.job.cpu_share
        satisfied = fraction[id(run)] == run.job.cpu_share
        assert satisfied or any(
            used[n] > 1 - 1e-9
            and fraction[id(run)] >= max(fraction[id(r)] for r in cluster.nodes[n].runs) - 1e-9
            for n in run.nodes
        )
