"""Forecasts a job that is not in the queue, for several ways to request it."""

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec.structs import replace

from predictors.base import Question
from predictors.jobs import Prediction, Submission, in_agreement
from predictors.methods.least_cost import LeastCost
from predictors.registry import UNCERTAIN
from service.auth import Caller
from service.contract.bodies import method_of
from service.contract.queue_answers import WhatIfAnswer, WhatIfVariantAnswer
from service.contract.queue_bodies import WhatIfRequest
from service.errors import ForecastsBusyError, ForecastTooLongError
from service.live_queue.forecast_record import (
    ForecastPoint,
    LiveQueue,
    bounds,
    calibrated,
    forecast_state,
    waiting_point,
)
from service.live_queue.playing import (
    AWAITED,
    FreeProcessors,
    JobTimes,
    PoolForecast,
    PoolQueue,
    play_pools,
    queue_columns,
    with_job,
)
from service.live_queue.snapshot import (
    JobState,
    LiveJob,
    NoInterval,
    QueueSnapshot,
    RuntimeEstimate,
    pool_places,
)
from service.live_queue.taken_processors import gpu_share, longest_of, nodes_by_queue, nodes_of
from service.live_queue.told_starts import Calibration
from service.operations.predicting import limit_answer
from service.operations.request_reports import suggested_request
from service.worker.live_state import ClusterState
from service.worker.queue_estimates import with_likely
from service.worker.queue_keeper import VersionedQueue
from service.worker.wait_scores import usual_wait
from service.worker.worker import Worker
from simulator.scheduling.forecast import QUANTILE_GRID, Quantiles

PERCENTS = tuple(level / 100 for level in range(1, 100))
"""Levels of the distribution of a job's runtime from which requests are suggested."""

LEVELS = (*PERCENTS, *QUANTILE_GRID)
"""Levels that are asked for together: those of suggestions, then those of the forecast."""

Obstacle = Literal["no-snapshot", "too-large", "no-forecast", "not-planned", "no-time"]


class WhatIf:
    """Predicts a job that is not submitted, and plays the queue with the job at its end."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._settings = worker.settings
        self._keeper = worker.queues
        self._follower = worker.follower
        self._live = worker.live
        self._hide = worker.pseudonyms.submission
        self._process = worker.forecasts.awaited
        self._clock = worker.clock
        self._free: dict[str, tuple[LiveQueue, list[FreeProcessors]]] = {}

    async def ask(self, cluster: str, body: WhatIfRequest, caller: Caller) -> WhatIfAnswer:
        """Return the forecasts of the job as requested, and of other requests for it.

        Raises:
            ForbiddenError: the caller may not ask about another user's job.
            InvalidFieldError: there is no method of that name.
        """
        now = self._clock()
        method = method_of(body.method, self._settings.method)
        asked = caller.own(self._hide(body.submission.submitted(cluster, now)))
        nodes = self._keeper.queue_nodes(cluster)
        submission = body.submission.taken(asked, nodes)
        state = self._follower.state_of(cluster)
        question = Question(coverage=self._settings.coverage, explain=body.explain)

        def predicted(request: Submission) -> Prediction:
            return in_agreement(state.ask(method, request, question))

        prediction = predicted(submission)
        like = LikeRuns(state, method, submission, prediction)
        suggestion = like.suggestion(body.share)
        variants = [each.model_dump(exclude_none=True) for each in body.variants]
        others = [body.submission.taken(replace(asked, **each), nodes) for each in variants]
        if suggestion is not None:
            others.append(replace(submission, requested_walltime=suggestion))
        requests = [submission, *others]
        predictions = [prediction, *map(predicted, others)]
        answers, reason = await self._variants(cluster, like, requests, predictions)
        queue = self._keeper.of(cluster)
        forecast = forecast_state(queue, self._clock(), self._settings.snapshot_max_age_seconds)
        return WhatIfAnswer(
            cluster=cluster,
            now=now,
            taken_at=queue.snapshot.taken_at if queue else None,
            forecast_at=forecast.made_at,
            forecast_age=forecast.age,
            no_interval=reason,
            is_old=forecast.is_old,
            method=prediction.method,
            plans_by_predictions=self._worker.plans_by_predictions(cluster),
            basis=prediction.basis,
            explanation=prediction.explanation,
            share=body.share,
            suggested_walltime=suggestion,
            limit=limit_answer(
                state.limit_risk(submission, longest=longest_of(nodes, submission.queue)),
                warning=self._settings.warning_probability,
            ),
            usual_wait=usual_wait(queue.unplanned_waits, submission.queue, waited=0.0)
            if queue and answers[0].obstacle == "not-planned"
            else None,
            as_written=answers[0],
            suggested=answers[-1] if suggestion is not None else None,
            variants=answers[1 : len(body.variants) + 1],
        )

    async def _variants(
        self,
        cluster: str,
        like: "LikeRuns",
        requests: Sequence[Submission],
        predictions: Sequence[Prediction],
    ) -> tuple[list[WhatIfVariantAnswer], NoInterval | None]:
        """Return the forecast of each request or the obstacle to it, and why none has intervals."""
        forecast = self._keeper.last_forecast(cluster)
        obstacles = [self._obstacle(cluster, forecast, request) for request in requests]
        jobs = {
            place: (request, self._estimate(like, request, prediction))
            for place, (request, prediction) in enumerate(zip(requests, predictions, strict=True))
            if obstacles[place] is None
        }
        played: list[PoolForecast] = []
        points: dict[int, ForecastPoint] = {}
        if forecast is not None and jobs:
            try:
                played = await self._forecasts(forecast, list(jobs.values()))
            except (ForecastsBusyError, ForecastTooLongError):
                obstacles = [obstacle or "no-time" for obstacle in obstacles]
            made_at = forecast.queue.snapshot.now
            told = forecast.queue.told
            points = {
                place: calibrated(
                    waiting_point(each, -1, made_at), Calibration(told, each.coverage)
                )
                for place, each in zip(jobs, played, strict=False)
            }
        rows = zip(requests, predictions, obstacles, strict=True)
        answers = [
            variant_answer(*row, like.share_within(row[0].requested_walltime), points.get(place))
            for place, row in enumerate(rows)
        ]
        return answers, next((each.no_interval for each in played), None)

    def _estimate(
        self, like: "LikeRuns", request: Submission, prediction: Prediction
    ) -> RuntimeEstimate:
        estimate = RuntimeEstimate(
            runtime=prediction.predicted_walltime,
            priority=self._keeper.estimates.priority(like.state, request),
            quantiles=like.quantiles(request),
            basis=prediction.basis,
        )
        if prediction.median is not None:
            return replace(estimate, likely=prediction.median)
        return with_likely(estimate, like.state.error_ratios.ascending(), None)

    def _obstacle(
        self, cluster: str, forecast: VersionedQueue | None, request: Submission
    ) -> Obstacle | None:
        """Return why the start of the job cannot be forecast; None if it can."""
        if forecast is None:
            return "no-snapshot" if self._keeper.of(cluster) is None else "no-forecast"
        pools = forecast.queue.snapshot.pools
        pool = pools[pool_places(pools)[request.queue]]
        if added_job(forecast.queue.snapshot, request).processors > pool.processors:
            return "too-large"
        return "not-planned" if forecast.queue.unplayed else None

    async def _forecasts(
        self, forecast: VersionedQueue, jobs: Sequence[tuple[Submission, RuntimeEstimate]]
    ) -> list[PoolForecast]:
        """Return the forecast of each job, as if it alone were added to the queue.

        Where the plays would take longer than a caller waits, each job gets the first gap of the
        last forecast.
        """
        if forecast.queue.cost * len(jobs) > AWAITED.total:
            pools = await self._free_processors(forecast.queue)
            return [in_gap(forecast.queue, pools, *job) for job in jobs]
        return await self._play(forecast, jobs)

    async def _free_processors(self, queue: LiveQueue) -> list[FreeProcessors]:
        """Return the free processors of each pool, computed once for each forecast."""
        cluster = queue.snapshot.cluster
        before = self._free.get(cluster)
        if before is None or before[0] is not queue:
            before = self._free[cluster] = queue, await asyncio.to_thread(free_processors, queue)
        return before[1]

    async def _play(
        self, forecast: VersionedQueue, jobs: Sequence[tuple[Submission, RuntimeEstimate]]
    ) -> list[PoolForecast]:
        """Play the queue once for each job, which stands at its end."""
        snapshot = forecast.queue.snapshot
        pools = await asyncio.to_thread(self._with_each, forecast, jobs)
        samples = self._settings.forecast_samples
        ratios = self._live.of(snapshot.cluster).error_ratios.ascending()
        return await self._process.run(play_pools, pools, snapshot.rules, ratios, samples, AWAITED)

    def _with_each(
        self, forecast: VersionedQueue, jobs: Sequence[tuple[Submission, RuntimeEstimate]]
    ) -> list[PoolQueue]:
        """Return the pool that each job joins, with the job at the end of its queue."""
        queue = forecast.queue
        columns = forecast.columns or queue_columns(queue.snapshot, self._estimates_of(queue))
        return [
            with_job(
                queue.snapshot,
                columns,
                added_job(queue.snapshot, request),
                estimate,
            )
            for request, estimate in jobs
        ]

    def _estimates_of(self, queue: LiveQueue) -> list[RuntimeEstimate]:
        """Return the estimates of a queue that another process has forecast, without quantiles."""
        state = self._live.of(queue.snapshot.cluster)
        return [
            RuntimeEstimate(
                runtime=last_predicted(queue, job),
                likely=last_likely(queue, job),
                priority=self._keeper.estimates.priority(state, job.submission),
            )
            for job in queue.snapshot.jobs
        ]


def added_job(snapshot: QueueSnapshot, request: Submission) -> LiveJob:
    """Return the job that waits at the end of a queue."""
    nodes = nodes_of(nodes_by_queue(snapshot.queue_nodes), request.queue)
    gpus = request.facts.gpus if request.facts else None
    return LiveJob(
        submission=replace(request, job_id="added"),
        state=JobState.WAITING,
        gpu_share=gpu_share(gpus, nodes),
    )


def last_predicted(queue: LiveQueue, job: LiveJob) -> float:
    """Return the runtime of a job as it was last predicted, else the request."""
    forecast = queue.forecasts.get(job.job_id)
    known = forecast.predicted if forecast else None
    return job.submission.requested_walltime if known is None else known


def last_likely(queue: LiveQueue, job: LiveJob) -> float | None:
    """Return the runtime of a job in the last forecast; None if it did not reach the job."""
    forecast = queue.forecasts.get(job.job_id)
    point = forecast.last if forecast else None
    return point.end - point.start if point else None


def free_processors(queue: LiveQueue) -> list[FreeProcessors]:
    """Return the free processors of each pool by the last forecast."""
    snapshot, places_of_pools = queue.snapshot, pool_places(queue.snapshot.pools)
    spans: list[list[tuple[float, float, int]]] = [[] for _ in snapshot.pools]
    for job in snapshot.jobs:
        forecast = queue.forecasts.get(job.job_id)
        point = forecast.last if forecast and job.state is not JobState.HELD else None
        if point is not None:
            spans[places_of_pools[job.submission.queue]].append(
                (point.start - snapshot.now, point.end - snapshot.now, job.processors)
            )
    return [
        FreeProcessors.beside(each, pool.processors)
        for each, pool in zip(spans, snapshot.pools, strict=True)
    ]


def in_gap(
    queue: LiveQueue,
    pools: Sequence[FreeProcessors],
    request: Submission,
    estimate: RuntimeEstimate,
) -> PoolForecast:
    """Return the forecast of a job that takes the first gap and moves no other job."""
    place = pool_places(queue.snapshot.pools)[request.queue]
    by_requests = queue.snapshot.rules.plans_by == "requests"
    length = request.requested_walltime if by_requests else estimate.runtime
    start = pools[place].first_gap(added_job(queue.snapshot, request).processors, length)
    none = JobTimes(np.array([]), None, None)
    return PoolForecast(
        starts=JobTimes(np.array([start]), None, None),
        ends=JobTimes(np.array([start + estimate.expected]), None, None),
        running_ends=none,
        coverage=None,
        no_interval="no-time",
    )


class LikeRuns:
    """The runtimes of jobs like a submission, asked once for each request.

    ``least-cost`` answers in the place of a method without a distribution. Nothing is known for a
    user without runs: those of other users are not like this user's.
    """

    def __init__(
        self, state: ClusterState, method: str, submission: Submission, prediction: Prediction
    ) -> None:
        self.state = state
        self._submission = submission
        self._has_distribution = method in UNCERTAIN
        self._method, basis = method, prediction.basis
        if not self._has_distribution:
            self._method = LeastCost.name
            basis = state.ask(self._method, submission).basis
        self._is_known = basis.reason != "others"
        self._answers: dict[tuple[float, int | None, str | None], Sequence[float] | None] = {}

    def quantiles(self, request: Submission) -> Quantiles:
        """Return the runtimes at ``QUANTILE_GRID``; None from a method without a distribution."""
        found = self._at_levels(request) if self._has_distribution else None
        return found and found[len(PERCENTS) :]

    def runtimes(self, limit: float) -> Sequence[float] | None:
        """Return the runtimes in seconds at the levels ``PERCENTS``, longer ones as ``limit``."""
        request = replace(self._submission, requested_walltime=limit)
        found = self._at_levels(request) if self._is_known else None
        return found and found[: len(PERCENTS)]

    def _at_levels(self, request: Submission) -> Sequence[float] | None:
        """Return the runtimes at ``LEVELS``; None where too little is known."""
        key = request.requested_walltime, request.requested_processors, request.queue
        if key not in self._answers:
            self._answers[key] = self.state.quantiles(self._method, request, LEVELS)
        return self._answers[key]

    def suggestion(self, share: float) -> float | None:
        """Return a shorter request that holds ``share`` of the runs; None without one."""
        written = self._submission.requested_walltime
        return suggested_request(PERCENTS, self.runtimes(written), share, written)

    def share_within(self, walltime: float) -> float | None:
        """Return the share of the runs that end within a walltime; None if nothing is known."""
        limit = max(self._submission.requested_walltime, walltime)
        runtimes = self.runtimes(limit)
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
    share_within: float | None,
    point: ForecastPoint | None,
) -> WhatIfVariantAnswer:
    """Combine request, prediction and forecast into the answer of one variant."""
    return WhatIfVariantAnswer(
        requested_walltime=request.requested_walltime,
        requested_processors=request.requested_processors or 1,
        queue=request.queue,
        predicted_walltime=prediction.predicted_walltime,
        likely=prediction.median,
        interval=prediction.interval,
        share_within=share_within,
        start_time=point.start if point else None,
        end_time=point.end if point else None,
        wait=max(0.0, round(point.start - request.submit_time, 3)) if point else None,
        start_interval=bounds(point.start_interval) if point else None,
        end_interval=bounds(point.end_interval) if point else None,
        obstacle=obstacle,
    )
