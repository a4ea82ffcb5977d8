"""Formulas of Hanzich et al. 2005 for the remaining time and the CPU time of one run (section 3).

Each supposes that the contention of the run stays as it is now. A remaining time is never negative:
a run that used more CPU time than its application is known for ends now.
"""

from collections.abc import Callable, Mapping

from predictors.correction import next_estimate
from simulator.shared_nodes.jobs import RESOLUTION, RunningJob

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
