"""The work of a forecast's child process: a queue in, starts and ends out, all picklable."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from predictors.memory.error_ratios import sample
from simulator.scheduling.forecast import Forecast, Snapshot, forecast
from simulator.scheduling.futures import Ladders, Places, drawn_from, futures
from simulator.scheduling.semantics import Semantics
from simulator.shared_nodes import simulation
from simulator.shared_nodes.cluster import Cluster
from simulator.shared_nodes.jobs import RunningJob, SharedJob
from simulator.shared_nodes.pace import ESTIMATORS, Pace, TurnedOut
from simulator.shared_nodes.policies import SharedPolicy
from simulator.shared_nodes.simulation import Span


def play_dedicated(
    snapshot: Snapshot,
    semantics: Semantics,
    ratios: Sequence[float],
    samples: int,
    ladders: Ladders | None = None,
) -> tuple[Forecast, list[Forecast]]:
    """The forecast, and others in which jobs run longer or shorter than predicted.

    Args:
        snapshot: jobs in it run for as long as predicted.
        semantics: the rules.
        ratios: of runtime to prediction, ascending, as they were lately.
        samples: how many other futures; none without ratios and ladders.
        ladders: what running and waiting jobs may take, where it is told.
    """
    return forecast(snapshot, semantics), futures(snapshot, semantics, ratios, samples, ladders)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQueue:
    """A non-dedicated cluster, its queue and its rules.

    Attributes:
        cluster: its nodes and what runs on them.
        waiting: in order.
        rules: start the jobs.
        remaining_time: formula by name.
        cpu_time: formula by name.
        characterised: ids of jobs whose execution time somebody knows; they differ in no future,
            unless it is history that says when they end.
        owners: whose each job is, by job id.
        ladders: runtimes at the levels ``LADDER`` by job id, of those jobs whose method tells them;
            of running ones they are those of jobs that ran as long.
    """

    cluster: Cluster
    waiting: Sequence[SharedJob]
    rules: SharedPolicy
    remaining_time: str
    cpu_time: str
    characterised: Collection[str]
    owners: Mapping[str, str]
    ladders: Mapping[str, Sequence[float]] = field(default_factory=dict)

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
    pace = ESTIMATORS[f"{queue.remaining_time}-{queue.cpu_time}"]

    def play(pace: Pace) -> Mapping[str, Span]:
        return simulation.forecast(queue.cluster, queue.waiting, queue.rules, pace)

    jobs = [*(run.job for run in queue.cluster.runs), *queue.waiting]
    can_vary = (ratios or queue.ladders) and any(map(queue.uncertain, jobs))
    draws = samples if can_vary else 0
    others = [
        play(TurnedOut(pace, _other_jobs(queue, ratios, Random(seed))))  # noqa: S311 - repeatable
        for seed in range(draws)
    ]
    return play(pace), others


def _other_jobs(
    queue: SharedQueue, ratios: Sequence[float], random: Random
) -> Mapping[str, SharedJob]:
    """The uncertain jobs, each as long as it may be by its ladder.

    A job without a ladder is longer or shorter by one of the ratios that it has not outlived.
    """
    spent = {run.job.job_id: _spent(run, queue) for run in queue.cluster.runs}
    jobs = {job.job_id: job for job in (*(run.job for run in queue.cluster.runs), *queue.waiting)}
    places = Places(random)
    found = {}
    for job_id, job in jobs.items():
        place, ladder = places.of(queue.owners[job_id]), queue.ladders.get(job_id)
        if ladder is None:
            ratio = sample(ratios, spent.get(job_id, 0.0), place)
        else:
            ratio = drawn_from(ladder, place) / (job.predicted_runtime or job.execution_time)
        if ratio is not None and queue.uncertain(job):
            found[job_id] = job.times(ratio)
    return found


def _spent(run: RunningJob, queue: SharedQueue) -> float:
    """The part of its job that a run has behind it, as a multiple of the predicted runtime."""
    if queue.by_history and run.job.predicted_runtime is not None:
        return run.elapsed / run.job.predicted_runtime
    return run.cpu_time / run.job.cpu_time
