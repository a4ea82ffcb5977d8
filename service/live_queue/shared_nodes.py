"""Plays a queue on shared nodes forward, a machine of Hanzich et al. 2005; called in a process."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random

import numpy as np

from predictors.memory.error_ratios import sample
from service.live_queue.playing import (
    JobTimes,
    PoolForecast,
    has_known_errors,
    job_times,
    no_interval,
    range_coverage,
)
from service.live_queue.snapshot import (
    JobState,
    LiveJob,
    QueueSnapshot,
    RuntimeEstimate,
    SharedUse,
)
from simulator.scheduling.forecast import OwnerLevels, quantile_at
from simulator.shared_nodes import simulation
from simulator.shared_nodes.cluster import SHORTEST_EXECUTION, Cluster, Node, RunningJob, SharedJob
from simulator.shared_nodes.pace import ESTIMATORS, ActualJobs, Pace
from simulator.shared_nodes.policies import SharedPolicy
from simulator.shared_nodes.simulation import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQueue:
    """A cluster of shared nodes and its queue.

    Attributes:
        snapshot: the queue; its rules name the formulas.
        estimates: of its jobs, one for each.
        nodes: the nodes with their local load, and no parallel job on them.
    """

    snapshot: QueueSnapshot
    estimates: Sequence[RuntimeEstimate]
    nodes: Sequence[Node]
    policy: SharedPolicy

    @property
    def by_history(self) -> bool:
        """Return whether runs end as predicted, and not after their execution time."""
        return self.snapshot.rules.remaining_time == "hybrid"

    def is_uncertain(self, job: LiveJob) -> bool:
        """Return whether a prediction decides when the job ends."""
        use = job.shared_use
        return self.by_history or use is None or use.execution_time is None


def shared_job(job: LiveJob, estimate: RuntimeEstimate) -> SharedJob:
    """Return the job as the simulator takes it; without an execution time it runs as predicted."""
    use = job.shared_use or SharedUse()
    return SharedJob(
        job_id=job.job_id,
        tasks=job.processors,
        execution_time=use.execution_time or max(SHORTEST_EXECUTION, estimate.runtime),
        cpu_share=use.cpu_share,
        memory=ceil(job.submission.requested_memory or 0),
        predicted_runtime=estimate.runtime,
        requested_walltime=job.submission.requested_walltime,
    )


def play_shared(queue: SharedQueue, ratios: Sequence[float], samples: int) -> PoolForecast:
    """Play the queue once as predicted, and in ``samples`` other futures.

    There are no other futures if no prediction decides when a job ends.

    Args:
        ratios: recent ratios of runtime to prediction, ascending, for jobs without quantiles.
        samples: number of other futures; none are played while too few errors are known.
    """
    snapshot = queue.snapshot
    jobs = {
        job.job_id: shared_job(job, estimate)
        for job, estimate in zip(snapshot.jobs, queue.estimates, strict=True)
    }
    running = [job for job in snapshot.jobs if job.state is JobState.RUNNING]
    waiting = [job for job in snapshot.jobs if job.state is JobState.WAITING]
    cluster = Cluster(queue.nodes, [_run(snapshot, job, jobs[job.job_id]) for job in running])
    queued = [jobs[job.job_id] for job in waiting]
    futures = [
        simulation.forecast(cluster, queued, queue.policy, pace)
        for pace in _paces(queue, jobs, ratios, samples)
    ]
    return PoolForecast(
        starts=_times(futures, waiting, "start"),
        ends=_times(futures, waiting, "end"),
        running_ends=_times(futures, running, "end"),
        coverage=range_coverage(len(futures)),
        no_interval=no_interval(len(futures), samples)
        if any(map(queue.is_uncertain, snapshot.jobs))
        else "no-prediction",
        nodes=[futures[0][job.job_id].nodes for job in waiting],
    )


def _paces(
    queue: SharedQueue, jobs: Mapping[str, SharedJob], ratios: Sequence[float], samples: int
) -> Iterator[Pace]:
    """Yield the pace at which runs advance as predicted, then those of the other futures."""
    rules = queue.snapshot.rules
    pace = ESTIMATORS[f"{rules.remaining_time}-{rules.cpu_time}"]
    yield pace
    is_known = has_known_errors(ratios, [estimate.quantiles for estimate in queue.estimates])
    if is_known and any(map(queue.is_uncertain, queue.snapshot.jobs)):
        for seed in range(samples):
            random = Random(seed)  # noqa: S311 - repeatable
            yield ActualJobs(pace, _other_jobs(queue, jobs, ratios, random))


def _run(snapshot: QueueSnapshot, job: LiveJob, shared: SharedJob) -> RunningJob:
    use = job.shared_use or SharedUse()
    start = snapshot.taken_at if job.start_time is None else job.start_time
    return RunningJob(
        job=shared,
        nodes=job.nodes,
        elapsed=snapshot.taken_at - start,
        cpu_time=use.used_cpu_time,
    )


def _times(futures: Sequence[Mapping[str, Span]], jobs: Sequence[LiveJob], event: str) -> JobTimes:
    """Return the starts or the ends of the jobs."""
    return job_times(
        [np.array([getattr(spans[job.job_id], event) for job in jobs]) for spans in futures]
    )


def _other_jobs(
    queue: SharedQueue, jobs: Mapping[str, SharedJob], ratios: Sequence[float], random: Random
) -> Mapping[str, SharedJob]:
    """Return the uncertain jobs with the runtimes of one future.

    A job without quantiles runs longer or shorter by one of the ratios that it has not outlived.
    """
    places = OwnerLevels(random)
    found = {}
    for job, estimate in zip(queue.snapshot.jobs, queue.estimates, strict=True):
        shared, place = jobs[job.job_id], places.of(job.owner)
        if estimate.quantiles is None:
            ratio = sample(ratios, _share_behind(queue, job, shared), place)
        else:
            predicted = shared.predicted_runtime or shared.execution_time
            ratio = quantile_at(estimate.quantiles, place) / predicted
        if ratio is not None and queue.is_uncertain(job):
            found[job.job_id] = shared.times(ratio)
    return found


def _share_behind(queue: SharedQueue, job: LiveJob, shared: SharedJob) -> float:
    """Return the runtime that a job has behind it, as a multiple of the predicted runtime."""
    if job.start_time is None:
        return 0.0
    if queue.by_history and shared.predicted_runtime is not None:
        return (queue.snapshot.taken_at - job.start_time) / shared.predicted_runtime
    return (job.shared_use or SharedUse()).used_cpu_time / shared.cpu_time
