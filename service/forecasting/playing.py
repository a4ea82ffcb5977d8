"""What the child process does: a queue in, starts and ends out, all picklable."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from predictors.errors import sample
from simulator.forecast import Forecast, QueuedJobs, Snapshot, forecast
from simulator.semantics import Semantics
from simulator.shared import simulation
from simulator.shared.cluster import Cluster
from simulator.shared.jobs import SharedJob
from simulator.shared.pace import ESTIMATORS
from simulator.shared.policies import SHARED_POLICIES
from simulator.shared.simulation import Span
from simulator.trace import Integers


def play_dedicated(
    snapshot: Snapshot, semantics: Semantics, ratios: Sequence[float], samples: int
) -> tuple[Forecast, list[Forecast]]:
    """The forecast, and others in which jobs run longer or shorter than predicted.

    Args:
        snapshot: jobs in it run for as long as predicted.
        semantics: the rules.
        ratios: of runtime to prediction, ascending, as they were lately.
        samples: how many other futures; none without ratios.
    """
    played = forecast(snapshot, semantics)
    futures = [
        forecast(_varied(snapshot, ratios, Random(seed)), semantics)  # noqa: S311 - repeatable
        for seed in range(samples if ratios else 0)
    ]
    return played, futures


def play_shared(
    cluster: Cluster, queue: Sequence[SharedJob], policy: str, parallel_mpl: int, estimator: str
) -> Mapping[str, Span]:
    """The forecast for a non-dedicated cluster."""
    rules = replace(SHARED_POLICIES[policy], parallel_mpl=parallel_mpl)
    return simulation.forecast(cluster, queue, rules, ESTIMATORS[estimator])


def _varied(snapshot: Snapshot, ratios: Sequence[float], random: Random) -> Snapshot:
    running, waiting = snapshot.running, snapshot.waiting
    return snapshot.with_runtimes(
        _drawn(running, running.age, ratios, random),
        _drawn(waiting, np.zeros_like(waiting.age), ratios, random),
    )


def _drawn(
    jobs: QueuedJobs, elapsed: Integers, ratios: Sequence[float], random: Random
) -> Integers:
    """A runtime for each job, from the ratios of those that ran on; else as it was."""
    drawn = jobs.runtime.copy()
    rows = zip(jobs.estimate.tolist(), jobs.request.tolist(), elapsed.tolist(), strict=True)
    for row, (estimate, request, passed) in enumerate(rows):
        ratio = sample(ratios, passed / estimate, random.random())
        if ratio is not None:
            drawn[row] = max(passed + 1, min(request, round(estimate * ratio)))
    return drawn
