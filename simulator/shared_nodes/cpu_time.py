"""CPU time that each task of a run will use: formulas of Hanzich et al. 2005, section 3.2."""

from collections.abc import Callable, Mapping

from simulator.shared_nodes.jobs import RunningJob
from simulator.shared_nodes.remaining_time import feasible_cpu

UsedCpuTime = Callable[[RunningJob, float], float]
"""(run, seconds) -> CPU seconds of a task."""


def mpl(run: RunningJob, seconds: float) -> float:
    """Its share in isolation, divided among the tasks of its fullest node (Eq 8)."""
    return seconds * run.job.cpu_share / run.contention.mpl


def cpu(run: RunningJob, seconds: float) -> float:
    """The fraction of a CPU that it can get (Eq 9)."""
    return seconds * feasible_cpu(run)


USED_CPU_TIMES: Mapping[str, UsedCpuTime] = {"mpl": mpl, "cpu": cpu}
