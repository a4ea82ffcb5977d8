from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from shared_nodes import idle_clusters, job, nodes, shared_jobs

from simulator.shared_nodes.cluster import Cluster, RunningJob
from simulator.shared_nodes.pace import ESTIMATORS, ProcessorSharing
from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.shared_nodes.simulation import SharedSimulation, forecast


def spans(found):
    return {name: (span.start, span.end, span.nodes) for name, span in found.items()}


CROWDED = replace(SHARED_POLICIES["normal"], cpu_limit=2.0)
"""Of a machine on whose nodes more is wanted than they have."""


def half_done():
    """Node 0 has a job that alone would run for 50 s more; node 1 is idle."""
    return Cluster(
        nodes(2), [RunningJob(job=job("old", share=0.5), nodes=(0,), elapsed=70.0, cpu_time=25.0)]
    )


QUEUE = [job("wide", tasks=2, seconds=60, share=1.0), job("small", seconds=10, share=0.2)]


def test_on_unshared_nodes_jobs_follow_each_other():
    found = forecast(half_done(), QUEUE, SHARED_POLICIES["basic"], ESTIMATORS["cpu-cpu"])
    assert spans(found) == {
        "old": (-70.0, 50.0, (0,)),
        "wide": (50.0, 110.0, (0, 1)),
        "small": (110.0, 120.0, (0,)),
    }


def test_on_shared_nodes_the_end_of_one_job_speeds_up_the_others():
    """By MPL: both at half speed. ``old`` ends after 100 s, then ``wide`` has 10 s to go alone."""
    found = forecast(half_done(), QUEUE[:1], CROWDED, ESTIMATORS["mpl-mpl"])
    assert spans(found) == {"old": (-70.0, 100.0, (0,)), "wide": (0.0, 110.0, (0, 1))}


def test_by_cpu_jobs_are_slowed_down_by_what_is_wanted():
    """1.5 CPUs are wanted of node 0: ``old`` ends after 75 s, of 60 s ``wide`` has done 50 s."""
    found = forecast(half_done(), QUEUE[:1], CROWDED, ESTIMATORS["cpu-cpu"])
    assert found["old"].end == pytest.approx(75.0)
    assert found["wide"].end == pytest.approx(85.0)


def test_in_truth_a_light_job_is_not_slowed_down():
    """Of node 0 each gets 0.5 of a CPU: ``old`` ends as alone, ``wide`` has done 25 s by then."""
    found = forecast(half_done(), QUEUE[:1], CROWDED, ProcessorSharing())
    assert found["old"].end == pytest.approx(50.0)
    assert found["wide"].end == pytest.approx(85.0)


def test_a_forecast_leaves_cluster_and_queue_as_they_are():
    cluster, queue = half_done(), list(QUEUE)
    forecast(cluster, queue, SHARED_POLICIES["normal"], ESTIMATORS["cpu-cpu"])
    assert [(run.elapsed, run.cpu_time) for run in cluster.runs] == [(70.0, 25.0)]
    assert queue == QUEUE


def test_a_simulation_can_stop_and_go_on():
    stopping = SharedSimulation(
        half_done(), QUEUE, SHARED_POLICIES["normal"], ESTIMATORS["cpu-cpu"]
    )
    for until in (0.0, 13.0, 75.0, 76.5, 300.0):
        stopping.run(until)
        assert stopping.now == until
    direct = forecast(half_done(), QUEUE, SHARED_POLICIES["normal"], ESTIMATORS["cpu-cpu"])
    assert {name: span.end for name, span in stopping.spans.items()} == pytest.approx(
        {name: span.end for name, span in direct.items()}
    )


@pytest.mark.parametrize("policy", SHARED_POLICIES)
@examples(30)
@given(cluster=idle_clusters(), jobs=shared_jobs(), gaps=st.lists(st.integers(0, 200)))
def test_a_forecast_that_knows_the_pace_is_the_future(policy, cluster, jobs, gaps):
    """Whatever has happened before; as long as nothing is submitted any more."""
    needed = {each.job_id: each.cpu_time * (1 + n % 3) for n, each in enumerate(jobs)}
    chosen, pace = SHARED_POLICIES[policy], ProcessorSharing(needed)
    truth = SharedSimulation(cluster, [], chosen, pace)
    for each, gap in zip(jobs, gaps + [0] * len(jobs), strict=False):
        truth.run(truth.now + gap)
        truth.submit(each)
    now = truth.now
    expected = forecast(truth.cluster, truth.queue, chosen, pace)
    truth.run()
    for name, span in expected.items():
        assert now + span.start == pytest.approx(truth.spans[name].start, abs=1e-6)
        assert now + span.end == pytest.approx(truth.spans[name].end, abs=1e-6)
        assert span.nodes == truth.spans[name].nodes


@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if not e.startswith("hybrid")])
@examples(20)
@given(jobs=shared_jobs())
def test_without_any_sharing_every_estimator_is_exact(estimator, jobs):
    basic = SHARED_POLICIES["basic"]
    expected = forecast(Cluster(nodes(4)), jobs, basic, ESTIMATORS[estimator])
    real = forecast(Cluster(nodes(4)), jobs, basic, ProcessorSharing())
    assert {name: span.nodes for name, span in expected.items()} == {
        name: span.nodes for name, span in real.items()
    }
    assert [span.end for span in expected.values()] == pytest.approx(
        [span.end for span in real.values()]
    )


@pytest.mark.parametrize("policy", SHARED_POLICIES)
@examples(20)
@given(cluster=idle_clusters(), jobs=shared_jobs(max_size=20))
def test_all_jobs_run_once_on_as_many_nodes_as_they_have_tasks_within_the_mpl(
    policy, cluster, jobs
):
    found = forecast(cluster, jobs, SHARED_POLICIES[policy], ESTIMATORS["cpu-cpu"])
    assert set(found) == {each.job_id for each in jobs}
    for each in jobs:
        assert len(set(found[each.job_id].nodes)) == each.tasks
        assert found[each.job_id].end >= found[each.job_id].start + each.execution_time * 0.999
    for moment in {span.start for span in found.values()}:
        there = [span for span in found.values() if span.start <= moment < span.end]
        for node in range(4):
            on_node = sum(node in span.nodes for span in there)
            assert on_node <= SHARED_POLICIES[policy].parallel_mpl


@examples(30)
@given(cluster=idle_clusters(), jobs=shared_jobs(max_size=20))
def test_fcfs_starts_jobs_in_their_order(cluster, jobs):
    found = forecast(cluster, jobs, SHARED_POLICIES["uniform"], ESTIMATORS["mpl-mpl"])
    starts = [found[each.job_id].start for each in jobs]
    assert starts == sorted(starts)
