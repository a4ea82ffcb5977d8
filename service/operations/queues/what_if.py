"""Telling when a job that is not in the queue would start, by what is asked for it."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from predictors.base import Question
from predictors.jobs import Prediction, Submission
from predictors.methods.least_cost import LeastCost
from predictors.registry import UNCERTAIN
from service.auth import Caller
from service.contract.answers import BasisAnswer, IntervalAnswer
from service.contract.bodies import method_of
from service.contract.queue_answers import WhatIfAnswer, WhatIfVariantAnswer
from service.contract.queue_bodies import VariantBody, WhatIfRequest
from service.errors import ForbiddenError
from service.operations.predicting import explanation_of, interval_of
from service.operations.queues.showing import ShowingQueues
from service.pseudonyms import Pseudonyms
from service.queues.estimate import Estimate
from service.queues.live_machine import pool_of
from service.queues.live_playing import (
    WORK_AWAITED,
    AddedForecast,
    AddedJob,
    play_added,
    samples_for,
)
from service.queues.outlook import LiveQueue
from service.queues.queue_columns import (
    PoolQueue,
    columns,
    number_of,
    owner_of,
    pool_queues,
    semantics_of,
)
from service.queues.request import suggested_request
from service.queues.snapshot import JobState, LiveJob
from service.settings import Settings
from service.worker.live_state import ClusterState
from service.worker.log_follower import LogFollower
from service.worker.processes import ForecastProcess
from service.worker.queues.queue_keeper import Kept, QueueKeeper
from simulator.scheduling.futures import LADDER

PERCENTS = tuple(level / 100 for level in range(1, 100))
"""Levels at which the distribution of a job's runtime is looked at."""


class AddedTimes(NamedTuple):
    """Start and end of a job that was added, in Unix seconds, and their ranges."""

    start: float
    end: float
    start_interval: IntervalAnswer | None
    end_interval: IntervalAnswer | None


Obstacle = Literal["no-queue", "too-large", "no-forecast"]


class WhatIf:
    """Predicts a job that is not submitted, and plays the queue with it at its end."""

    def __init__(  # noqa: PLR0913 - each is a part of the worker, named where it is handed over
        self,
        settings: Settings,
        *,
        keeper: QueueKeeper,
        showing: ShowingQueues,
        follower: LogFollower,
        pseudonyms: Pseudonyms,
        process: ForecastProcess,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._keeper = keeper
        self._showing = showing
        self._follower = follower
        self._hide = pseudonyms.submission
        self._process = process
        self._clock = clock

    async def ask(self, cluster: str, body: WhatIfRequest, caller: Caller) -> WhatIfAnswer:
        """When the job would start and end, as it is written and otherwise.

        Raises:
            ForbiddenError: it is a job of somebody else than the caller.
            InvalidFieldError: there is no method of that name.
            ForecastsBusyError: too many forecasts are being made.
            ForecastTooLongError: it takes too long.
        """
        now = self._clock()
        method = method_of(body, self._settings.method)
        submission = self._own(self._hide(body.submission.submission(cluster, now)), caller)
        state = self._follower.state_of(cluster)
        prediction = state.ask(method, submission, self._question(body))
        runtimes = self._runtimes(state, method, submission)
        suggestion = suggested_request(
            PERCENTS, runtimes, body.share, submission.requested_walltime
        )
        requests = [submission, *(varied(submission, each) for each in body.variants)]
        if suggestion is not None:
            requests.append(replace(submission, requested_walltime=suggestion))
        answers = await self._variants(cluster, requests, method, runtimes)
        queue = self._keeper.of(cluster)
        return WhatIfAnswer(
            cluster=cluster,
            now=now,
            taken_at=queue.snapshot.taken_at if queue else None,
            is_old=queue is not None and self._showing.is_old(queue),
            method=prediction.method,
            median=prediction.median,
            basis=BasisAnswer(prediction.basis.jobs, prediction.basis.reason),
            explanation=explanation_of(prediction),
            share=body.share,
            suggested_walltime=suggestion,
            as_written=answers[0],
            suggested=answers[-1] if suggestion is not None else None,
            variants=answers[1 : len(body.variants) + 1],
        )

    def _own(self, submission: Submission, caller: Caller) -> Submission:
        """The submission as the caller's own, where the caller may ask about no other."""
        if caller.only is None:
            return submission
        if submission.user not in {None, caller.only}:
            raise ForbiddenError("This token is good for what is its own user's.")
        return replace(submission, user=caller.only)

    def _question(self, body: WhatIfRequest) -> Question:
        return Question(coverage=self._settings.coverage, explain=body.explain)

    def _runtimes(
        self, state: ClusterState, method: str, submission: Submission
    ) -> Sequence[float] | None:
        """The runtimes that ``PERCENTS`` of like jobs do not exceed, by a method that can tell."""
        answering = state.resolved(method)
        able = answering if answering in UNCERTAIN else LeastCost.name
        return state.quantiles(able, submission, PERCENTS)

    async def _variants(
        self,
        cluster: str,
        requests: Sequence[Submission],
        method: str,
        runtimes: Sequence[float] | None,
    ) -> list[WhatIfVariantAnswer]:
        """What would come of each request."""
        state, usual = self._follower.state_of(cluster), Question(coverage=self._settings.coverage)
        predictions = [state.ask(method, request, usual) for request in requests]
        estimates = [
            Estimate(
                runtime=prediction.predicted_walltime,
                priority=self._keeper.estimates.priority(state, request),
                ladder=state.quantiles(method, request, LADDER),
            )
            for request, prediction in zip(requests, predictions, strict=True)
        ]
        kept = self._keeper.forecast_of(cluster)
        obstacles = [self._obstacle(cluster, kept, request) for request in requests]
        played = await self._played(kept, requests, estimates, obstacles)
        taken_at = kept.queue.snapshot.taken_at if kept else 0.0
        return [
            variant_answer(request, prediction, obstacle, held, times)
            for request, prediction, obstacle, held, times in zip(
                requests,
                predictions,
                obstacles,
                self._shares_held(state, method, requests, runtimes),
                [times_of(taken_at, each) if each else None for each in played],
                strict=True,
            )
        ]

    def _shares_held(
        self,
        state: ClusterState,
        method: str,
        requests: Sequence[Submission],
        runtimes: Sequence[float] | None,
    ) -> list[float | None]:
        """The share of runs like it that each request would hold.

        Methods tell ``runtimes`` up to the first request, so a longer one is asked about anew.
        """
        written = requests[0]
        shares = []
        for walltime in (request.requested_walltime for request in requests):
            limit = max(written.requested_walltime, walltime)
            told = runtimes
            if limit > written.requested_walltime:
                told = self._runtimes(state, method, replace(written, requested_walltime=limit))
            shares.append(share_held(told, walltime, limit))
        return shares

    def _obstacle(self, cluster: str, kept: Kept | None, request: Submission) -> Obstacle | None:
        """Why it cannot be told when the job would start."""
        if kept is None:
            return "no-queue" if self._keeper.of(cluster) is None else "no-forecast"
        pools = kept.queue.snapshot.pools
        pool = pools[pool_of(pools, request.queue)]
        return "too-large" if (request.requested_processors or 1) > pool.processors else None

    async def _played(
        self,
        kept: Kept | None,
        requests: Sequence[Submission],
        estimates: Sequence[Estimate],
        obstacles: Sequence[Obstacle | None],
    ) -> list[AddedForecast | None]:
        """The forecast of each job that can start."""
        places = [place for place, obstacle in enumerate(obstacles) if obstacle is None]
        if kept is None or not places:
            return [None] * len(requests)
        queue = kept.queue
        pools = kept.pools or pool_queues(queue.snapshot, self._remembered(queue))
        added = [added_job(queue, pools, requests[place], estimates[place]) for place in places]
        jobs = max(len(pools[each.pool]) for each in added)
        played = await self._process.run(
            play_added,
            pools,
            added,
            semantics_of(queue.snapshot.rules),
            self._follower.state_of(queue.snapshot.cluster).errors.quantiles(),
            samples_for(jobs, self._settings.forecast_samples, plays=len(added), work=WORK_AWAITED),
        )
        found: list[AddedForecast | None] = [None] * len(requests)
        for place, times in zip(places, played, strict=True):
            found[place] = times
        return found

    def _remembered(self, queue: LiveQueue) -> list[Estimate]:
        """The estimates of a queue that another process has forecast, without its ladders."""
        state = self._follower.state_of(queue.snapshot.cluster)
        return [
            Estimate(
                runtime=queue.outlooks[job.job_id].predicted
                if job.job_id in queue.outlooks
                else job.submission.requested_walltime,
                priority=self._keeper.estimates.priority(state, job.submission),
            )
            for job in queue.snapshot.jobs
        ]


def varied(submission: Submission, variant: VariantBody) -> Submission:
    """The submission with what the variant asks for instead."""
    given = variant.model_dump(exclude_none=True)
    return replace(submission, **given)


def added_job(
    queue: LiveQueue, pools: Sequence[PoolQueue], request: Submission, estimate: Estimate
) -> AddedJob:
    """The job at the end of the queue of its processors."""
    pool = pool_of(queue.snapshot.pools, request.queue)
    job = LiveJob(
        submission=replace(request, job_id="added", user=request.user), state=JobState.WAITING
    )
    owner = number_of(request.user, pools[pool], queue.snapshot.jobs)
    return AddedJob(
        pool=pool,
        job=columns([job], [estimate], [0], {owner_of(job): owner}),
        ladder=estimate.ladder,
    )


def share_held(runtimes: Sequence[float] | None, walltime: float, limit: float) -> float | None:
    """The share of runs like it that end within a walltime.

    Args:
        runtimes: that ``PERCENTS`` of them do not exceed. Those that took longer than ``limit``
            are told as ``limit``.
        walltime: seconds, at most ``limit``.
        limit: seconds.
    """
    if runtimes is None:
        return None
    ended = bisect_left(runtimes, limit)
    if walltime >= limit and ended < len(runtimes):
        return PERCENTS[ended - 1] if ended else 0.0
    return float(np.interp(walltime, runtimes, PERCENTS, left=0.0, right=1.0))


def variant_answer(
    request: Submission,
    prediction: Prediction,
    obstacle: Obstacle | None,
    held: float | None,
    times: AddedTimes | None,
) -> WhatIfVariantAnswer:
    """What would come of a request."""
    return WhatIfVariantAnswer(
        requested_walltime=request.requested_walltime,
        requested_processors=request.requested_processors or 1,
        queue=request.queue,
        predicted_walltime=prediction.predicted_walltime,
        walltime_interval=interval_of(prediction),
        share_held=held,
        start_time=times.start if times else None,
        end_time=times.end if times else None,
        wait=max(0.0, times.start - request.submit_time) if times else None,
        start_interval=times.start_interval if times else None,
        end_interval=times.end_interval if times else None,
        obstacle=obstacle,
    )


def times_of(now: float, played: AddedForecast) -> AddedTimes:
    """What was played from ``now`` on."""
    ranges = [
        IntervalAnswer(lower=now + each[0], upper=now + each[1], coverage=played.coverage)
        if each is not None and played.coverage is not None
        else None
        for each in (played.start_range, played.end_range)
    ]
    return AddedTimes(now + played.start, now + played.end, *ranges)
