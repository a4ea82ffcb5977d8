"""The pace of runs: by the formulas of an estimator, or by the fair shares of the CPUs.

The formulas for the remaining time and the CPU time of one run are those of Hanzich et al. 2005,
section 3. Each supposes that the contention of the run stays as it is now. A remaining time is
never negative: a run that used more CPU time than its application is known for ends now.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol

from predictors.correction import next_estimate
from simulator.shared_nodes.cluster import RESOLUTION, Cluster, RunningJob, SharedJob

RemainingTime = Callable[[RunningJob], float]
"""(run) -> seconds until its end."""

UsedCpuTime = Callable[[RunningJob, float], float]
"""(run, seconds) -> CPU seconds that each task will use in them."""


def isolated(run: RunningJob) -> float:
    """RemainTime_isol: the remaining time in isolation (Eq 2)."""
    job = run.job
    return max(0.0, job.execution_time * (job.cpu_time - run.cpu_time) / job.cpu_time)


def proportional(run: RunningJob) -> float:
    """Remaining time at the mean speed until now (Eq 1).

    A run that has used no CPU time yet is expected to run as in isolation.
    """
    if run.cpu_time < RESOLUTION:
        return isolated(run)
    return max(0.0, run.elapsed * (run.job.cpu_time - run.cpu_time) / run.cpu_time)


def mpl(run: RunningJob) -> float:
    """Remaining time in isolation, times the number of tasks on the fullest node (Eq 4)."""
    return isolated(run) * run.contention.mpl


def feasible_cpu(run: RunningJob) -> float:
    """CPU_feas: the fraction of a CPU that each task can get on the busiest node (Eq 6).

    The paper speaks of percentages, but divides CPU(J) by CPU_max(J), whose ratio is none, and
    compares it with CPU(J). Our reading: both are fractions of the one CPU of a node. Where more
    than one CPU is wanted, every task gets the same part of its share; where less is wanted, the
    minimum leaves a task what it uses in isolation.
    """
    return min(run.job.cpu_share, run.job.cpu_share / run.contention.cpu)


def cpu(run: RunningJob) -> float:
    """Remaining time in isolation, times the CPU share over the feasible share (Eqs 5-7)."""
    return isolated(run) * run.job.cpu_share / feasible_cpu(run)


def hybrid(run: RunningJob) -> float:
    """Predicted runtime on shared nodes, less the elapsed time (section 5, future work).

    An outlived prediction is doubled up to the request, as on dedicated clusters. Without a
    prediction the answer is that of Eqs 5-7.
    """
    job = run.job
    if job.predicted_runtime is None:
        return cpu(run)
    limit = job.predicted_runtime if job.requested_walltime is None else job.requested_walltime
    return max(0.0, next_estimate(job.predicted_runtime, limit, run.elapsed) - run.elapsed)


REMAINING_TIMES: Mapping[str, RemainingTime] = {
    "proportional": proportional,
    "mpl": mpl,
    "cpu": cpu,
    "hybrid": hybrid,
}


def cpu_time_by_mpl(run: RunningJob, seconds: float) -> float:
    """CPU time at the share in isolation, divided by the tasks of the fullest node (Eq 8)."""
    return seconds * run.job.cpu_share / run.contention.mpl


def cpu_time_by_cpu(run: RunningJob, seconds: float) -> float:
    """CPU time at the feasible fraction of a CPU (Eq 9)."""
    return seconds * feasible_cpu(run)


USED_CPU_TIMES: Mapping[str, UsedCpuTime] = {"mpl": cpu_time_by_mpl, "cpu": cpu_time_by_cpu}


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
