"""Running jobs that will probably be cut at their limits."""

import asyncio
from typing import NamedTuple

from msgspec.structs import replace

from predictors.limits import LimitRisk
from service.live_queue.snapshot import JobState, LiveJob, QueueSnapshot
from service.live_queue.taken_processors import longest_of, nodes_by_queue
from service.worker.live_state import ClusterState

MOSTLY_USED = 0.8
"""Usual share of its limit from which on a running job is looked at."""


class RunningRisk(NamedTuple):
    """A running job, the seconds that it has run, and the probability that it will be cut."""

    job: LiveJob
    elapsed: float
    risk: LimitRisk


JOBS_PER_TURN = 64
"""Number of jobs looked at in one turn of the event loop; other requests pass in between."""


async def jobs_at_risk(
    snapshot: QueueSnapshot, state: ClusterState, *, now: float, used: float, least: float
) -> list[RunningRisk]:
    """Return the running jobs that will be cut with a probability of ``least`` or more.

    Args:
        snapshot: of the cluster's jobs.
        state: of the cluster's predictors.
        used: least share of its limit that a job has run for.
        least: probability.
    """
    found: list[RunningRisk] = []
    late = [
        (job, now - job.start_time)
        for job in snapshot.jobs
        if job.state is JobState.RUNNING
        and job.start_time is not None
        and now - job.start_time >= used * job.submission.requested_walltime
    ]
    nodes = nodes_by_queue(snapshot.queue_nodes)
    for place, (job, elapsed) in enumerate(late, start=1):
        risk = state.limit_risk(
            replace(job.submission, submit_time=now),
            elapsed,
            longest=longest_of(nodes, job.submission.queue),
        )
        if risk.warns(least):
            found.append(RunningRisk(job, elapsed, risk))
        if place % JOBS_PER_TURN == 0:
            await asyncio.sleep(0)
    return found
