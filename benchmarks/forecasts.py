"""Measures the cost of one forecast: the paper's shared cluster, and a large dedicated one.

    .venv/bin/python benchmarks/forecasts.py

Shared: 16 nodes and the 30 jobs of Hanzich et al. 2005, all submitted, running as far as they
fit after a minute; every policy with every combination of estimators, in process and over HTTP.
The paper's forecasts always took less than 4 ms, so the slowest of ours decides. Dedicated: 1,000
running and 1,000 waiting jobs on 10,000 cores, every policy. Each forecast is made over and over;
the table shows the median and the slowest, in CPU time, for the machines that measure are shared;
over HTTP, where three processes work, by the clock on the wall.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
from httpx import Client

from simulator.cli.players import private_service
from simulator.engine.policies import POLICIES
from simulator.scheduling.forecast import QueuedJobs, Snapshot, forecast
from simulator.scheduling.semantics import Semantics
from simulator.shared_nodes import simulation
from simulator.shared_nodes.cluster import Node, SharedJob
from simulator.shared_nodes.pace import ESTIMATORS, ProcessorSharing
from simulator.shared_nodes.policies import SHARED_POLICIES

sys.path.append(str(Path(__file__).parents[1]))
from papers.hanzich.nas import idle_cluster, workload

NOW = 1_700_000_000.0
"""Unix time of the snapshots that are posted."""

REPEATS = 40
SHARED_LIMIT = 4.0
"""Milliseconds, from the paper."""

EASY_LIMIT = 50.0
"""Milliseconds, with 2,000 jobs."""


def milliseconds(call: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """Median and maximum of CPU time over so many calls, after one that does not count."""
    call()
    taken = []
    for _ in range(repeats):
        began = process_time()
        call()
        taken.append(1000 * (process_time() - began))
    return median(taken), max(taken)


def state_of(policy: str) -> simulation.SharedSimulation:
    """The paper's cluster, a minute after all 30 jobs have been submitted."""
    rules = SHARED_POLICIES[policy]
    state = simulation.SharedSimulation(idle_cluster(0.5, seed=1), [], rules, ProcessorSharing())
    for arrival in workload(seed=1):
        state.submit(arrival.job)
    state.run(60.0)
    return state


def shared(policy: str) -> dict[str, tuple[float, float]]:
    """Every combination of estimators in one state of the paper's cluster."""
    rules, state = SHARED_POLICIES[policy], state_of(policy)
    return {
        name: milliseconds(partial(simulation.forecast, state.cluster, state.queue, rules, pace))
        for name, pace in ESTIMATORS.items()
        if not name.startswith("hybrid")
    }


def body_of(policy: str) -> dict[str, object]:
    """The state as a resource manager sends it."""
    state = state_of(policy)
    return {
        "now": NOW,
        "policy": policy,
        "samples": 0,
        "machine": {"nodes": [node_of(node) for node in state.cluster.nodes]},
        "running": [
            {
                **job_of(run.job),
                "start_time": NOW - run.elapsed,
                "used_cpu_time": run.cpu_time,
                "nodes": [f"{number}" for number in run.nodes],
            }
            for run in state.cluster.runs
        ],
        "waiting": [job_of(job) for job in state.queue],
    }


def node_of(node: Node) -> dict[str, object]:
    """A node as a resource manager sends it."""
    return {
        "name": f"{node.number}",
        "local_tasks": node.load.local_tasks,
        "local_cpu": node.local_cpu,
        "memory": node.load.memory,
        "local_memory": node.without_runs().load.used_memory,
    }


def job_of(job: SharedJob) -> dict[str, object]:
    """A job as a resource manager sends it, a minute after its submission."""
    return {
        "job_id": job.job_id,
        "submit_time": NOW - 60,
        "requested_walltime": 5 * job.execution_time,
        "requested_processors": job.tasks,
        "requested_memory": job.memory,
        "execution_time": job.execution_time,
        "cpu_share": job.cpu_share,
    }


def over_http() -> dict[str, tuple[float, float, float]]:
    """First, median and slowest answer of a service of our own for each policy, in milliseconds."""
    found = {}
    with TemporaryDirectory() as directory:
        settings = {"WALLTIMED_DATABASE_URL": f"sqlite:///{directory}/history.db"}
        with private_service(settings=settings) as service, Client(base_url=service.url) as client:
            for policy in SHARED_POLICIES:
                body = body_of(policy)
                taken = []
                for _ in range(REPEATS):
                    began = perf_counter()
                    client.post("/v1/forecasts", json=body, timeout=60).raise_for_status()
                    taken.append(1000 * (perf_counter() - began))
                found[policy] = taken[0], median(taken[1:]), max(taken[1:])
    return found


def large_snapshot(jobs: int = 1000, cores: int = 10_000, seed: int = 1) -> Snapshot:
    """As many running jobs as waiting ones, the machine nearly full."""
    random = np.random.default_rng(seed)

    def queued(*, most: int, running: bool) -> QueuedJobs:
        request = random.choice([1800, 7200, 43200, 86400], jobs)
        estimate = np.maximum(60, (request * random.beta(0.6, 1.2, jobs)).astype(np.int64))
        age = (estimate * random.random(jobs)).astype(np.int64) if running else np.arange(jobs)
        return QueuedJobs(
            processors=random.integers(1, most, jobs),
            request=request,
            estimate=estimate,
            runtime=estimate,
            age=age if running else age[::-1],
            priority=np.zeros(jobs),
            owner=np.arange(jobs),
            array=np.full(jobs, -1),
            array_limit=np.zeros(jobs, np.int64),
        )

    return Snapshot(
        processors=cores,
        running=queued(most=19, running=True),
        waiting=queued(most=200, running=False),
    )


def verdict(taken: float, limit: float) -> str:
    """The word for a target that was reached or not."""
    return f"{'reached' if taken <= limit else 'missed'} <= {limit:g} ms"


def main() -> None:
    """Print both tables."""
    print("16 shared nodes, 30 jobs: milliseconds per forecast, median (slowest)")
    for policy in SHARED_POLICIES:
        found = shared(policy)
        cells = "".join(f"  {name} {mid:.2f} ({top:.2f})" for name, (mid, top) in found.items())
        print(
            f"{policy:<20}{cells}  {verdict(max(top for _, top in found.values()), SHARED_LIMIT)}"
        )
    print("\nthe same over HTTP, wall clock: milliseconds per forecast, first, median (slowest)")
    for policy, (first, mid, top) in over_http().items():
        print(f"{policy:<20}{first:9.2f} {mid:9.2f} ({top:.2f})  {verdict(top, SHARED_LIMIT)}")
    print("\n10,000 cores, 1,000 running and 1,000 waiting jobs: median (slowest)")
    snapshot = large_snapshot()
    for policy in POLICIES:
        semantics = Semantics(policy=policy)
        mid, top = milliseconds(partial(forecast, snapshot, semantics), repeats=10)
        word = f"  {verdict(mid, EASY_LIMIT)}" if policy == "easy" else ""
        print(f"{policy:<20}{mid:9.2f} ({top:.2f}){word}")


if __name__ == "__main__":
    main()
