"""Asks the service's own methods about the jobs of a live queue, letting requests pass between."""

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from predictors.accuracy_groups import group_named
from predictors.jobs import Submission
from service.queues.estimate import Estimate
from service.queues.outlook import Outlook
from service.queues.snapshot import JobState, LiveJob, QueueSnapshot
from service.settings import Settings
from service.worker.live_state import ClusterState
from service.worker.log_follower import LogFollower
from simulator.scheduling.futures import LADDER

QUESTIONS_PER_TURN = 1
"""Jobs that are asked about at a time, and for which a prediction waits at most."""

JOBS_PER_TURN = 64
"""Jobs that are looked at at a time where most are like one before."""


class QueueEstimates:
    """Estimates of all jobs of a queue; jobs that wait and are alike are asked about once."""

    def __init__(self, settings: Settings, follower: LogFollower) -> None:
        self._settings = settings
        self._follower = follower
        self._default_priority = group_named(settings.default_group).priority

    async def of(self, snapshot: QueueSnapshot, outlooks: Mapping[str, Outlook]) -> list[Estimate]:
        """One estimate for each job.

        Args:
            snapshot: the queue.
            outlooks: of its jobs, by job id: a job that runs keeps what was predicted before.
        """
        known: dict[tuple[Any, ...], Estimate] = {}
        estimates: list[Estimate] = []
        asked = 0
        for place, job in enumerate(snapshot.jobs):
            likeness = likeness_of(job)
            estimate = known.get(likeness) if likeness else None
            if estimate is None:
                estimate = self.one(job, snapshot.taken_at, outlooks.get(job.job_id))
                asked += 1
                if likeness:
                    known[likeness] = estimate
            estimates.append(estimate)
            if asked >= QUESTIONS_PER_TURN or place % JOBS_PER_TURN == JOBS_PER_TURN - 1:
                asked = 0
                await asyncio.sleep(0)
        return estimates

    def one(self, job: LiveJob, now: float, outlook: Outlook | None) -> Estimate:
        """The estimate of one job."""
        submission = job.submission
        state = self._follower.state_of(submission.cluster)
        runs = job.state is JobState.RUNNING
        if runs and outlook is not None:
            runtime = outlook.predicted
        else:
            runtime = state.ask(self._settings.method, submission).predicted_walltime
        as_of_now = replace(submission, submit_time=now)
        elapsed = max(0.0, now - (job.start_time or now)) if runs else None
        return Estimate(
            runtime=min(runtime, submission.requested_walltime),
            priority=self.priority(state, submission),
            ladder=state.quantiles(self._settings.method, as_of_now, LADDER, elapsed),
        )

    def priority(self, state: ClusterState, submission: Submission) -> float:
        """Of the accuracy group of the job's user."""
        ranked = state.accuracies.of(submission.user)
        return ranked.priority if ranked else self._default_priority


def likeness_of(job: LiveJob) -> tuple[Any, ...] | None:
    """What decides the prediction of a job that has not started; None for one that has."""
    if job.state is JobState.RUNNING:
        return None
    asked = job.submission
    return (
        asked.user,
        asked.group,
        asked.project,
        asked.queue,
        asked.application,
        asked.requested_walltime,
        asked.requested_processors,
        asked.requested_memory,
    )
