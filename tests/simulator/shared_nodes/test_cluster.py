from shared_nodes import job, nodes

from simulator.shared_nodes.cluster import Cluster, Contention, RunningJob


def test_contention_is_that_of_the_fullest_and_the_busiest_node():
    wide = RunningJob(job=job("wide", tasks=3, share=0.5), nodes=(0, 1, 2))
    light = [RunningJob(job=job(f"light{n}", share=0.1), nodes=(0,)) for n in range(2)]
    heavy = RunningJob(job=job("heavy", share=1.0), nodes=(1,))
    Cluster(nodes(3, local=[2]), [wide, *light, heavy])
    assert wide.contention == Contention(mpl=3, cpu=1.5)  # Eq 3 on node 0, Eq 7 on node 1
    assert heavy.contention == Contention(mpl=2, cpu=1.5)
    assert [run.contention for run in light] == [Contention(3, 0.7)] * 2


def test_local_tasks_compete():
    run = RunningJob(job=job("a", share=0.5), nodes=(0,))
    Cluster(nodes(1, local=[0]), [run])
    assert run.contention == Contention(mpl=2, cpu=0.65)


def test_contention_ends_with_the_run_that_made_it():
    first = RunningJob(job=job("first", share=0.9), nodes=(0,))
    second = RunningJob(job=job("second", tasks=2, share=0.9), nodes=(0, 1))
    cluster = Cluster(nodes(2), [first, second])
    cluster.end(first)
    assert cluster.runs == [second]
    assert second.contention == Contention(mpl=1, cpu=0.9)


def test_a_copy_leaves_the_original_as_it_is():
    run = RunningJob(job=job("a"), nodes=(0,), elapsed=5.0, cpu_time=2.0)
    cluster = Cluster(nodes(1, local=[0]), [run])
    copied = cluster.copy()
    assert [(r.elapsed, r.cpu_time, r.contention) for r in copied.runs] == [(5.0, 2.0, (2, 0.65))]
    copied.runs[0].elapsed = 9.0
    copied.end(copied.runs[0])
    assert run.elapsed == 5.0
    assert cluster.nodes[0].runs == [run]
