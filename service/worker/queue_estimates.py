"""Asks the service's methods about the jobs of a queue, and lets requests pass between."""

import asyncio
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from predictors.accuracy_groups import group_named
from predictors.jobs import Submission
from predictors.memory.error_ratios import ENOUGH_RATIOS, sample
from service.live_queue.forecast_record import JobForecast
from service.live_queue.playing import beyond_depth
from service.live_queue.snapshot import JobState, LiveJob, QueueSnapshot, RuntimeEstimate
from service.settings import Settings
from service.worker.live_state import ClusterState
from service.worker.log_follower import LogFollower
from simulator.scheduling.forecast import QUANTILE_GRID, median_of

QUESTIONS_PER_TURN = 1
"""Jobs that are predicted in one turn of the event loop; other requests pass in between."""

JOBS_PER_TURN = 64
"""Jobs that are looked at in one turn where most are like one before."""


ASKING_SECONDS = 0.25
"""Seconds of predicting in one hand-over after which earlier predictions of waiting jobs count."""

FRESH_SECONDS = 600.0
"""Age at which an earlier prediction may no longer count; some count for up to twice as long."""

Likeness = tuple[Any, ...]
"""The fields of a waiting job that decide its prediction."""


class TimedEstimate(NamedTuple):
    """An estimate of waiting jobs that are alike, and when it was made, in Unix seconds."""

    estimate: RuntimeEstimate
    made_at: float


def fresh_one(
    earlier: Mapping[Likeness, TimedEstimate], likeness: Likeness, now: float
) -> TimedEstimate | None:
    """Return the earlier estimate that still counts; not all of a queue become old at once."""
    found = earlier.get(likeness)
    oldest = now - FRESH_SECONDS * (1 + hash(likeness) % 64 / 64)
    return found if found is not None and found.made_at > oldest else None


class QueueEstimates:
    """Estimates of all jobs of a queue; waiting jobs that are alike are predicted once.

    Where predicting all of a live queue takes long, its last jobs keep earlier predictions.
    """

    def __init__(self, settings: Settings, follower: LogFollower) -> None:
        self._settings = settings
        self._follower = follower
        self._default_priority = group_named(settings.default_group).priority
        self._earlier: dict[str, dict[Likeness, TimedEstimate]] = {}

    def forget(self) -> None:
        """Forget earlier estimates, which rest on runs that may have been deleted."""
        self._earlier.clear()

    async def estimate(
        self,
        snapshot: QueueSnapshot,
        forecasts: Mapping[str, JobForecast] | None = None,
        *,
        method: str | None = None,
    ) -> list[RuntimeEstimate]:
        """Return one estimate for each job; jobs that are not planned yet are not predicted.

        Args:
            forecasts: earlier ones by job id: a running job keeps the prediction made before.
                With them the queue is a live one, of which the likely runtimes are found, too.
            method: that predicts; the service's own by default.
        """
        method = method or self._settings.method
        beyond = beyond_depth(snapshot)
        earlier = {} if forecasts is None else self._earlier.get(snapshot.cluster, {})
        ratios = self._follower.state_of(snapshot.cluster).error_ratios.ascending()
        alike: dict[Likeness, TimedEstimate] = {}
        estimates: list[RuntimeEstimate] = []
        questions, asking = 0, 0.0
        for place, job in enumerate(snapshot.jobs):
            if place in beyond:
                estimates.append(unplanned(job))
                continue
            likeness = likeness_key(job)
            known = alike.get(likeness) if likeness else None
            if known is None and likeness and asking > ASKING_SECONDS:
                known = fresh_one(earlier, likeness, snapshot.now)
            if known is None:
                before, began = (forecasts or {}).get(job.job_id), perf_counter()
                estimate = self._one(snapshot, job, before, method)
                if forecasts is not None:
                    estimate = with_likely(estimate, ratios, snapshot.time_behind(job))
                known = TimedEstimate(estimate, snapshot.now)
                asking += perf_counter() - began
                questions += 1
            if likeness:
                alike[likeness] = known
            estimates.append(known.estimate)
            if questions >= QUESTIONS_PER_TURN or place % JOBS_PER_TURN == JOBS_PER_TURN - 1:
                questions = 0
                await asyncio.sleep(0)
        if forecasts is not None:
            self._earlier[snapshot.cluster] = alike
        return estimates

    def _one(
        self, snapshot: QueueSnapshot, job: LiveJob, before: JobForecast | None, method: str
    ) -> RuntimeEstimate:
        """Return the estimate of one job as of now; only its runtime where the caller predicts."""
        submission = job.submission
        state = self._follower.state_of(snapshot.cluster)
        priority = self.priority(state, submission)
        if job.predicted_walltime is not None:
            runtime = min(job.predicted_walltime, submission.requested_walltime)
            return RuntimeEstimate(runtime=runtime, priority=priority)
        as_of_now = replace(submission, submit_time=snapshot.now)
        if before and before.predicted is not None and job.state is JobState.RUNNING:
            runtime, basis = before.predicted, before.basis
        else:
            prediction = state.ask(method, as_of_now)
            runtime, basis = prediction.predicted_walltime, prediction.basis
        return RuntimeEstimate(
            runtime=min(runtime, submission.requested_walltime),
            priority=priority,
            quantiles=state.quantiles(method, as_of_now, QUANTILE_GRID, snapshot.time_behind(job)),
            basis=basis,
        )

    def priority(self, state: ClusterState, submission: Submission) -> float:
        """Return the priority of the accuracy group of the job's user."""
        ranked = state.accuracy_groups.of(submission.user)
        return ranked.priority if ranked else self._default_priority


def with_likely(
    estimate: RuntimeEstimate, ratios: Sequence[float], behind: float | None
) -> RuntimeEstimate:
    """Return the estimate with its median runtime; unchanged where that is not known.

    The median is that of the distribution, else the prediction times the median of the recent
    ratios of runtime to prediction. A job that the caller has predicted runs as predicted.

    Args:
        ratios: ascending; too few of them are not used.
        behind: seconds of its runtime that a running job has behind it.
    """
    if estimate.quantiles is not None:
        return replace(estimate, likely=median_of(estimate.quantiles))
    if estimate.basis is None or len(ratios) < ENOUGH_RATIOS:
        return estimate
    ratio = sample(ratios, (behind or 0.0) / estimate.runtime, 0.5)
    return estimate if ratio is None else replace(estimate, likely=estimate.runtime * ratio)


def unplanned(job: LiveJob) -> RuntimeEstimate:
    """Return the request in place of an estimate, of a job that is not played."""
    return RuntimeEstimate(
        runtime=job.submission.requested_walltime, priority=0.0, is_predicted=False
    )


def likeness_key(job: LiveJob) -> Likeness | None:
    """Return the fields that decide the prediction of a waiting job as of now.

    Return None for a job that is predicted by itself.
    """
    if job.state is JobState.RUNNING or job.predicted_walltime is not None:
        return None
    submission, facts = job.submission, job.submission.facts
    return (
        None if facts is None else msgspec.msgpack.encode(facts),
        submission.user,
        submission.group,
        submission.project,
        submission.queue,
        submission.application,
        submission.requested_walltime,
        submission.requested_processors,
        submission.requested_memory,
    )
