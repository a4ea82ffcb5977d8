"""The pace of runs: by the formulas of an estimator, or by the fair shares of the CPUs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol

from simulator.shared_nodes.cluster import Cluster
from simulator.shared_nodes.formulas import (
    REMAINING_TIMES,
    USED_CPU_TIMES,
    RemainingTime,
    UsedCpuTime,
)
from simulator.shared_nodes.jobs import RunningJob, SharedJob


class Pace(Protocol):
    """Gives remaining times and CPU times of runs, as long as no run starts or ends."""

    def remaining_times(self, cluster: Cluster) -> list[float]:
        """Return the seconds until each run of the cluster ends, in the order of its runs."""
        ...

    def used_cpu_times(self, cluster: Cluster, seconds: float) -> list[float]:
        """Return the CPU seconds of a task of each run in the next ``seconds``, in that order."""
        ...


class Estimated(NamedTuple):
    """A combination of a formula for the remaining time with one for the CPU time."""

    remaining_time: RemainingTime
    used_cpu_time: UsedCpuTime

    def remaining_times(self, cluster: Cluster) -> list[float]:
        """Apply the formula to each run."""
        return list(map(self.remaining_time, cluster.runs))

    def used_cpu_times(self, cluster: Cluster, seconds: float) -> list[float]:
        """Apply the formula to each run."""
        return [self.used_cpu_time(run, seconds) for run in cluster.runs]


class ActualJobs(NamedTuple):
    """An estimator that knows other execution times of some jobs than the policies do.

    Attributes:
        estimated: the estimator.
        jobs: jobs with their actual execution times, by job id.
    """

    estimated: Estimated
    jobs: Mapping[str, SharedJob]

    def remaining_times(self, cluster: Cluster) -> list[float]:
        """Apply the formula to the jobs with their actual execution times."""
        remaining_time = self.estimated.remaining_time
        return [remaining_time(self._actual(run)) for run in cluster.runs]

    def used_cpu_times(self, cluster: Cluster, seconds: float) -> list[float]:
        """Apply the formula; the CPU share of a job does not depend on its execution time."""
        return self.estimated.used_cpu_times(cluster, seconds)

    def _actual(self, run: RunningJob) -> RunningJob:
        job = self.jobs.get(run.job.job_id)
        return run if job is None else replace(run, job=job)


ESTIMATORS: Mapping[str, Estimated] = {
    f"{remaining}-{used}": Estimated(REMAINING_TIMES[remaining], USED_CPU_TIMES[used])
    for remaining in REMAINING_TIMES
    for used in USED_CPU_TIMES
}
"""The combinations by name, such as ``cpu-cpu``: remaining time by Eqs 5-7, CPU time by Eq 9."""


class ProcessorSharing:
    """The ground truth: each node's CPU is shared fairly, and tasks wait for each other.

    Every task may use the same fraction of its node's CPU, and what it does not want goes to
    the others (max-min fairness). The tasks of a job advance together: its most contended node
    limits it, and what it leaves on its other nodes is shared there. Local users come first and
    get all they want.

    Args:
        cpu_times: actual CPU seconds of a task, by job id; by default those of the job.
    """

    def __init__(self, cpu_times: Mapping[str, float] | None = None) -> None:
        self._cpu_times = cpu_times or {}

    def remaining_times(self, cluster: Cluster) -> list[float]:
        """Return the remaining CPU time of each run over its fraction of a CPU."""
        return [
            max(0.0, self._needed(run) - run.cpu_time) / fraction
            for run, fraction in zip(cluster.runs, fair_fractions(cluster), strict=True)
        ]

    def used_cpu_times(self, cluster: Cluster, seconds: float) -> list[float]:
        """Return the CPU seconds of a task of each run, at its fraction of a CPU."""
        return [fraction * seconds for fraction in fair_fractions(cluster)]

    def _needed(self, run: RunningJob) -> float:
        return self._cpu_times.get(run.job.job_id, run.job.cpu_time)


def fair_fractions(cluster: Cluster) -> list[float]:
    """Return the fraction of a CPU that each run gets on each of its nodes.

    All fractions grow together; a fraction stops growing when the run has its share in isolation
    or when one of its nodes is used up (progressive filling).
    """
    fractions: dict[int, float] = {}
    growing = {id(run): run for run in cluster.runs}
    left = [1.0 - node.local_cpu for node in cluster.nodes]
    crowd = [len(node.runs) for node in cluster.nodes]
    while growing:
        shares = {
            key: min([run.job.cpu_share, *(left[n] / crowd[n] for n in run.nodes)])
            for key, run in growing.items()
        }
        lowest = min(shares.values())
        for key in [key for key, share in shares.items() if share == lowest]:
            fractions[key] = lowest
            for number in growing.pop(key).nodes:
                left[number] -= lowest
                crowd[number] -= 1
    return [fractions[id(run)] for run in cluster.runs]
