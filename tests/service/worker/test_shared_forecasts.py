"""What a forecast waits for, and what it does not."""

import asyncio

import pytest
from compiled_engine import compiled_versions
from shared_nodes import job, nodes

from service.operations.playing import SharedQueue, play_shared
from service.worker.forecast_process import ForecastProcess, nothing
from simulator.scheduling.simulate import warm_up
from simulator.shared_nodes.cluster import Cluster
from simulator.shared_nodes.policies import SHARED_POLICIES


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
