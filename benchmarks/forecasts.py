"""What one forecast costs: the paper's shared cluster, and a large dedicated one.

    .venv/bin/python benchmarks/forecasts.py

Shared: 16 nodes and the 30 jobs of Hanzich et al. 2005, all submitted, running as far as they
fit after a minute; every policy with every combination of estimators. The paper's forecasts
took less than 4 ms. Dedicated: 1,000 running and 1,000 waiting jobs on 10,000 cores, every
policy. Each forecast is made over and over; the table shows the median and the slowest, in CPU
time, for the machines that measure are shared.
"""

from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from simulator.engine.policies import POLICIES
from simulator.scheduling.forecast import QueuedJobs, Snapshot, forecast
from simulator.scheduling.semantics import Semantics
from simulator.shared_nodes import simulation
from simulator.shared_nodes.pace import ESTIMATORS, ProcessorSharing
from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.studies.hanzich.nas import idle_cluster, workload

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


def shared(policy: str) -> dict[str, tuple[float, float]]:
    """Every combination of estimators in one state of the paper's cluster."""
    rules = SHARED_POLICIES[policy]
    state = simulation.SharedSimulation(idle_cluster(0.5, seed=1), [], rules, ProcessorSharing())
    for arrival in workload(seed=1):
        state.submit(arrival.job)
    state.run(60.0)
    return {
        name: milliseconds(
            lambda pace=pace: simulation.forecast(state.cluster, state.queue, rules, pace)
        )
        for name, pace in ESTIMATORS.items()
        if not name.startswith("hybrid")
    }


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
        print(f"{policy:<20}{cells}  {verdict(max(m for m, _ in found.values()), SHARED_LIMIT)}")
    print("\n10,000 cores, 1,000 running and 1,000 waiting jobs: median (slowest)")
    snapshot = large_snapshot()
    for policy in POLICIES:
        semantics = Semantics(policy=policy)
        mid, top = milliseconds(lambda rules=semantics: forecast(snapshot, rules), repeats=10)
        word = f"  {verdict(mid, EASY_LIMIT)}" if policy == "easy" else ""
        print(f"{policy:<20}{mid:9.2f} ({top:.2f}){word}")


if __name__ == "__main__":
    main()
