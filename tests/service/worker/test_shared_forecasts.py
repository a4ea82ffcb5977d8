"""What a forecast waits for, and what it does not."""

import asyncio

import pytest
from compiled_engine import compiled_versions
from shared_nodes import job, nodes

from service.operations.playing import SharedQueue, play_shared
from service.worker.processes import ForecastProcess, nothing
from simulator.scheduling.simulate import warm_up
from simulator.shared_nodes.cluster import Cluster
from simulator.shared_nodes.jobs import RunningJob
from simulator.shared_nodes.policies import SHARED_POLICIES

STEPS = [float(step) for step in range(10, 210, 10)]


def shared_queue(cluster, waiting, **known):
    """A queue of jobs of one user of which nobody knows the execution time."""
    usual = {"rules": SHARED_POLICIES["uniform-backfilling"], "characterised": set()}
    jobs = [*(run.job for run in cluster.runs), *waiting]
    owners = {each.job_id: "user u" for each in jobs}
    estimators = {"remaining_time": "cpu", "cpu_time": "cpu"}
    return SharedQueue(
        cluster=cluster, waiting=waiting, owners=owners, **usual | estimators | known
    )


def test_jobs_on_shared_nodes_take_what_their_own_distribution_says():
    queue = shared_queue(Cluster(nodes(1)), [job("a", seconds=100.0)], ladders={"a": STEPS})
    span, futures = play_shared(queue, [], 50)
    assert span["a"].end == 100.0
    ends = {round(future["a"].end, 6) for future in futures}
    assert len(futures) == 50
    assert ends <= set(STEPS)
    assert len(ends) > 10


def test_a_running_job_on_a_shared_node_takes_what_is_left():
    running = RunningJob(
        job=job("a", seconds=100.0, share=0.5), nodes=(0,), elapsed=80.0, cpu_time=40.0
    )
    left = [seconds for seconds in STEPS if seconds > 80]
    ladder = [left[step * len(left) // 20] for step in range(20)]
    queue = shared_queue(Cluster(nodes(1), [running]), [], ladders={"a": ladder})
    _, futures = play_shared(queue, [0.1], 50)
    ends = {round(future["a"].end) for future in futures}
    assert ends <= {round(seconds - 80) for seconds in left}
    assert len(ends) > 5


def test_a_job_without_a_ladder_varies_by_the_ratios_and_a_known_one_not_at_all():
    waiting = [job("a", seconds=100.0), job("b", seconds=100.0)]
    queue = shared_queue(Cluster(nodes(2)), waiting, ladders={"b": STEPS}, characterised={"b"})
    _, futures = play_shared(queue, [0.5], 5)
    assert {future["a"].end - future["a"].start for future in futures} == {50.0}
    assert {future["b"].end - future["b"].start for future in futures} == {100.0}


@pytest.mark.cold
@pytest.mark.parametrize(("prepare", "compiled"), [(nothing, False), (warm_up, True)])
def test_only_a_process_for_dedicated_machines_waits_for_the_engines_compiler(prepare, compiled):
    queue = SharedQueue(
        cluster=Cluster(nodes(2)),
        waiting=[job("a", tasks=2, seconds=60.0)],
        rules=SHARED_POLICIES["uniform-backfilling"],
        remaining_time="cpu",
        cpu_time="cpu",
        characterised={"a"},
        owners={"a": "user u"},
    )
    process = ForecastProcess(600.0, prepare=prepare)

    async def played():
        spans, _ = await process.run(play_shared, queue, [], 0)
        return spans["a"].end, await process.run(compiled_versions)

    try:
        end, versions = asyncio.run(played())
    finally:
        process.close()
    assert end == 60.0
    assert (versions > 0) is compiled
