"""Running jobs that will probably be cut at their limits."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from predictors.limits import LimitRisk
from service.live_queue.snapshot import JobState, LiveJob, QueueSnapshot
from service.worker.live_state import ClusterState

MOSTLY_USED = 0.8
"""Usual share of its limit from which on a running job is looked at."""


class RunningRisk(NamedTuple):
    """A running job, the seconds that it has run, and the probability that it will be cut."""

    job: LiveJob
    elapsed: float
    risk: LimitRisk


def jobs_at_risk(
    snapshot: QueueSnapshot, state: ClusterState, *, now: float, used: float, least: float
) -> Iterator[RunningRisk]:
    """Yield running jobs that will be cut with a probability of ``least`` or more.

    Args:
        snapshot: of the cluster's jobs.
        state: of the cluster's predictors.
        used: least share of its limit that a job has run for.
        least: probability.
    """
    for job in snapshot.jobs:
        if job.state is not JobState.RUNNING or job.start_time is None:
            continue
        elapsed = now - job.start_time
        if elapsed >= used * job.submission.requested_walltime:
            risk = state.limit_risk(replace(job.submission, submit_time=now), elapsed)
            if risk.warns(least):
                yield RunningRisk(job, elapsed, risk)
