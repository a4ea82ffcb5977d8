"""What the child process does: a queue in, starts and ends out, all picklable."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from predictors.errors import sample
from simulator.forecast import Forecast, QueuedJobs, Snapshot, forecast
from simulator.semantics import Semantics
from simulator.shared import simulation
from simulator.shared.cluster import Cluster
from simulator.shared.jobs import Run, SharedJob
from simulator.shared.pace import ESTIMATORS, Pace, TurnedOut
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQueue:
    """A non-dedicated cluster, its queue and its rules.

    Attributes:
        cluster: its nodes and what runs on them.
        waiting: in order.
        policy: by name.
        parallel_mpl: most parallel tasks of a node.
        remaining_time: formula by name.
        cpu_time: formula by name.
        characterised: ids of jobs whose execution time somebody knows; they differ in no future,
            unless it is history that says when they end.
    """

    cluster: Cluster
    waiting: Sequence[SharedJob]
    policy: str
    parallel_mpl: int
    remaining_time: str
    cpu_time: str
    characterised: Collection[str]

    @property
    def by_history(self) -> bool:
        """Whether runs end as they are predicted, and not after their execution time."""
        return self.remaining_time == "hybrid"

    def uncertain(self, job: SharedJob) -> bool:
        """Whether a prediction decides when the job ends."""
        return self.by_history or job.job_id not in self.characterised


def play_shared(
    queue: SharedQueue, ratios: Sequence[float], samples: int
) -> tuple[Mapping[str, Span], list[Mapping[str, Span]]]:
    """The forecast for a non-dedicated cluster, and others as ``play_dedicated`` makes them.

    There are no others if every application is characterised.
    """
    rules = replace(SHARED_POLICIES[queue.policy], parallel_mpl=queue.parallel_mpl)
    pace = ESTIMATORS[f"{queue.remaining_time}-{queue.cpu_time}"]

    def play(pace: Pace) -> Mapping[str, Span]:
        return simulation.forecast(queue.cluster, queue.waiting, rules, pace)

    jobs = [*(run.job for run in queue.cluster.runs), *queue.waiting]
    draws = samples if ratios and any(map(queue.uncertain, jobs)) else 0
    futures = [
        play(TurnedOut(pace, _other_jobs(queue, ratios, Random(seed))))  # noqa: S311 - repeatable
        for seed in range(draws)
    ]
    return play(pace), futures


def _other_jobs(
    queue: SharedQueue, ratios: Sequence[float], random: Random
) -> Mapping[str, SharedJob]:
    """The uncertain jobs, each longer or shorter by one of the ratios that it has not outlived."""
    spent = {run.job.job_id: _spent(run, queue) for run in queue.cluster.runs}
    jobs = {job.job_id: job for job in (*(run.job for run in queue.cluster.runs), *queue.waiting)}
    found = {}
    for job_id, job in jobs.items():
        ratio = sample(ratios, spent.get(job_id, 0.0), random.random())
        if ratio is not None and queue.uncertain(job):
            found[job_id] = job.times(ratio)
    return found


def _spent(run: Run, queue: SharedQueue) -> float:
    """How much of its job a run has behind it, in units of what is predicted."""
    if queue.by_history and run.job.predicted_runtime is not None:
        return run.elapsed / run.job.predicted_runtime
    return run.cpu_time / run.job.cpu_time


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
