"""Shows queues to each caller as far as the caller may see them, and the errors of waits."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace as replace_with
from itertools import islice
from math import inf
from weakref import ref

from msgspec.structs import replace

from predictors.base import Question
from predictors.jobs import Prediction, in_agreement, milliseconds
from service.auth import Caller, Pseudonyms
from service.contract.answers import LimitAnswer
from service.contract.queue_answers import (
    ClustersAnswer,
    EndedJobAnswer,
    ForecastPointAnswer,
    JobTotalsAnswer,
    LiveJobAnswer,
    LiveJobDetailAnswer,
    PoolAnswer,
    QueueAnswer,
    QueueHeadAnswer,
    TotalsAnswer,
    WaitScoreAnswer,
    WaitScoresAnswer,
)
from service.contract.queue_bodies import QueueQuery
from service.errors import UnknownJobError, UnknownSnapshotError
from service.live_queue.forecast_record import (
    ForecastPoint,
    ForecastState,
    JobForecast,
    LiveQueue,
    bounds,
    forecast_state,
    is_planned,
)
from service.live_queue.snapshot import JobState, LiveJob, QueueSnapshot, pool_places
from service.live_queue.taken_processors import longest_of
from service.operations.history_showing import KnownClusters, read_ended_job, usual_cluster
from service.operations.predicting import limit_answer, running_on
from service.operations.starts_showing import SHOWN_WEEKS, told_answers
from service.store import WaitScore
from service.worker.wait_scores import ARRIVAL, SINCE, usual_wait
from service.worker.worker import Worker

WAITING_FIRST = {JobState.WAITING: 0, JobState.RUNNING: 1, JobState.HELD: 2}


class ShowingQueue:
    """Shows one queue at a time.

    Args:
        max_age: seconds after which a snapshot is old.
        find_queue: returns the queue of a cluster; None if none was handed over.
    """

    def __init__(
        self,
        *,
        method: str,
        max_age: float,
        find_queue: Callable[[str], LiveQueue | None],
        pseudonyms: Pseudonyms,
        clock: Callable[[], float],
    ) -> None:
        self._method = method
        self._max_age = max_age
        self._find_queue = find_queue
        self._pseudonym = pseudonyms.user
        self._clock = clock
        self._totals: dict[str, tuple[ref[QueueSnapshot], TotalsAnswer]] = {}

    def queue(self, cluster: str, query: QueueQuery, caller: Caller) -> QueueAnswer:
        """Return a queue and its jobs, as far as the caller may see them.

        Raises:
            UnknownSnapshotError: none was handed over.
        """
        queue = self.live_queue(cluster)
        found = in_order(self._matching(queue, query, caller), queue, query.sort)
        rules, state = queue.snapshot.rules, self._forecast_state(queue)
        return QueueAnswer(
            cluster=cluster,
            taken_at=queue.snapshot.taken_at,
            forecast_at=state.made_at,
            forecast_age=state.age,
            no_interval=state.no_interval,
            is_old=state.is_old,
            forecast_error=queue.trouble,
            planned_jobs=queue.planned,
            samples=queue.samples,
            totals=self._totals_of(queue.snapshot),
            usual_error=queue.told.usual_error,
            observed_coverage=queue.told.observed_coverage(),
            policy=rules.policy,
            plans_by=rules.plans_by,
            method=self._method,
            pools=pool_answers(queue.snapshot),
            matching=len(found),
            jobs=[
                job_answer(job, queue)
                for job in islice(found, query.offset, query.offset + query.limit)
            ],
        )

    def live_queue(self, cluster: str) -> LiveQueue:
        """Return the queue of a cluster.

        Raises:
            UnknownSnapshotError: none was handed over.
        """
        queue = self._find_queue(cluster)
        if queue is None:
            raise UnknownSnapshotError
        return queue

    def _forecast_state(self, queue: LiveQueue) -> ForecastState:
        return forecast_state(queue, self._clock(), self._max_age)

    def _totals_of(self, snapshot: QueueSnapshot) -> TotalsAnswer:
        """Return the totals, counted once: a queue has many jobs, and its head many readers.

        The snapshot itself is not kept: its jobs may be erased.
        """
        counted = self._totals.get(snapshot.cluster)
        if counted is None or counted[0]() is not snapshot:
            counted = self._totals[snapshot.cluster] = (ref(snapshot), totals_answer(snapshot.jobs))
        return counted[1]

    def _matching(self, queue: LiveQueue, query: QueueQuery, caller: Caller) -> list[LiveJob]:
        wanted = {query.user, self._pseudonym(query.user)}
        return [
            job
            for job in queue.snapshot.jobs
            if caller.can_see(job.submission.user)
            and (query.user is None or job.submission.user in wanted)
            and (query.queue is None or job.submission.queue == query.queue)
            and (query.state is None or job.state == query.state)
        ]


class ShowingQueues(ShowingQueue):
    """Shows the queues of all clusters, their jobs and the errors of their forecast waits."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(
            method=worker.settings.method,
            max_age=worker.settings.snapshot_max_age_seconds,
            find_queue=worker.queues.of,
            pseudonyms=worker.pseudonyms,
            clock=worker.clock,
        )
        self._worker = worker
        self._coverage = worker.settings.coverage
        self._least_warning = worker.settings.least_warning
        self._keeper = worker.queues
        self._follower = worker.follower
        self._store = worker.store
        self.known = KnownClusters(worker)

    async def all_clusters(self) -> ClustersAnswer:
        """Return all queues without their jobs, and the names of all clusters."""
        names = await self.known.names()
        usual = usual_cluster(names, self.known.queued)
        return ClustersAnswer(clusters=self.heads(), known=names, usual=usual)

    def heads(self) -> list[QueueHeadAnswer]:
        """Return all queues without their jobs."""
        return [self._head(queue) for queue in self._keeper.all]

    def _head(self, queue: LiveQueue) -> QueueHeadAnswer:
        state = self._forecast_state(queue)
        return QueueHeadAnswer(
            cluster=queue.snapshot.cluster,
            taken_at=queue.snapshot.taken_at,
            forecast_at=state.made_at,
            forecast_age=state.age,
            no_interval=state.no_interval,
            is_old=state.is_old,
            forecast_error=queue.trouble,
            planned_jobs=queue.planned,
            samples=queue.samples,
            totals=self._totals_of(queue.snapshot),
            usual_error=queue.told.usual_error,
            observed_coverage=queue.told.observed_coverage(),
        )

    async def job(
        self, cluster: str, job_id: str, caller: Caller
    ) -> LiveJobDetailAnswer | EndedJobAnswer:
        """Return a job of the queue with its forecasts, else the runs of one that has ended.

        Raises:
            UnknownJobError: there is no such job, or the caller may not see it.
            StoreUnavailableError: the history cannot be read now.
        """
        queue = self._keeper.of(cluster)
        jobs = queue.snapshot.jobs if queue else ()
        job = next((each for each in jobs if each.job_id == job_id), None)
        if queue is None or job is None or not caller.can_see(job.submission.user):
            return await self._ended_job(cluster, job_id, caller, has_queue=queue is not None)
        return self._live_job(queue, job)

    async def _ended_job(
        self, cluster: str, job_id: str, caller: Caller, *, has_queue: bool
    ) -> EndedJobAnswer:
        """Return the runs of a job that has ended; without a queue, an error says so, too."""
        try:
            return await asyncio.to_thread(read_ended_job, self._store, cluster, job_id, caller)
        except UnknownJobError as error:
            if has_queue:
                raise
            raise UnknownJobError(f"{error} {UnknownSnapshotError()}") from error

    def _live_job(self, queue: LiveQueue, job: LiveJob) -> LiveJobDetailAnswer:
        """Return a job of the queue, its forecasts, and the runs that its prediction rests on."""
        forecast, state = queue.forecasts.get(job.job_id), self._forecast_state(queue)
        elapsed = None if job.start_time is None else max(0.0, self._clock() - job.start_time)
        prediction = self._prediction(job, forecast, elapsed)
        return LiveJobDetailAnswer(
            cluster=queue.snapshot.cluster,
            taken_at=queue.snapshot.taken_at,
            forecast_at=state.made_at,
            forecast_age=state.age,
            no_interval=state.no_interval,
            is_old=state.is_old,
            job=replace_with(
                job_answer(job, queue), predicted_walltime=prediction.predicted_walltime
            ),
            forecasts=[point_answer(point) for point in forecast.points] if forecast else [],
            method=prediction.method,
            plans_by_predictions=self._worker.plans_by_predictions(queue.snapshot.cluster),
            likely=prediction.median,
            interval=prediction.interval,
            basis=prediction.basis,
            explanation=prediction.explanation,
            limit=self._limit(job, elapsed),
        )

    def _limit(self, job: LiveJob, elapsed: float | None) -> LimitAnswer:
        """Return whether a job will end at its limit, by the runs known now."""
        submission = replace(job.submission, submit_time=self._clock())
        state, nodes = self._follower.state_of(submission.cluster), self._keeper.queue_nodes
        longest = longest_of(nodes(submission.cluster), submission.queue)
        risk = state.limit_risk(submission, elapsed, longest=longest)
        return limit_answer(risk, warning=self._least_warning(elapsed))

    def _prediction(
        self, job: LiveJob, forecast: JobForecast | None, elapsed: float | None
    ) -> Prediction:
        """Return the prediction of a job as of now; of one that runs, planned stays as it was."""
        prediction = self._follower.state_of(job.submission.cluster).ask(
            self._method,
            replace(job.submission, submit_time=self._clock()),
            Question(coverage=self._coverage, elapsed=elapsed, explain=True),
        )
        runs = job.state is JobState.RUNNING
        if runs and forecast is not None and forecast.predicted is not None:
            prediction = replace(prediction, predicted_walltime=forecast.predicted)
        return in_agreement(running_on(prediction, elapsed))

    async def waits(self, cluster: str) -> WaitScoresAnswer:
        """Return the errors of forecast waits: of all queues together, then of each.

        Raises:
            StoreUnavailableError: they cannot be read now.
        """
        scores = await asyncio.to_thread(self._store.queues.scores, cluster)
        each = [wait_answer(score.queue, [score]) for score in scores]
        told = await asyncio.to_thread(self._store.queues.start_scores, cluster, SHOWN_WEEKS)
        return WaitScoresAnswer(
            cluster=cluster, scores=[*all_waits(scores), *each], told=[*told_answers(told)]
        )


def in_order(jobs: list[LiveJob], queue: LiveQueue, sort: str) -> list[LiveJob]:
    """Return the jobs in an order of ``QueueQuery``; equal ones stay in the order of the queue."""
    if sort == "running-first":
        return jobs
    if sort == "waiting-first":
        return sorted(jobs, key=lambda job: WAITING_FIRST[job.state])
    if sort == "processors":
        return sorted(jobs, key=lambda job: -job.processors)
    return sorted(jobs, key=lambda job: forecast_time(job, queue, sort))


def forecast_time(job: LiveJob, queue: LiveQueue, which: str) -> float:
    """Return the start or the end of a job; infinity without a forecast."""
    if which == "start" and job.start_time is not None:
        return job.start_time
    point = last_point(job, queue)
    if point is None:
        return inf
    return point.start if which == "start" else point.end


def last_point(job: LiveJob, queue: LiveQueue) -> ForecastPoint | None:
    """Return the last forecast of a job in its present state; None if it was in another, or held.

    A job that has started since then may run beyond the end that was forecast.
    """
    forecast, runs = queue.forecasts.get(job.job_id), job.state is JobState.RUNNING
    if forecast is None or job.state is JobState.HELD or forecast.waits == runs:
        return None
    return forecast.last


def totals_answer(jobs: Iterable[LiveJob]) -> TotalsAnswer:
    """Return the jobs and their processors in each state."""
    sums = {state: JobTotalsAnswer(jobs=0, processors=0) for state in JobState}
    for job in jobs:
        sums[job.state].jobs += 1
        sums[job.state].processors += job.processors
    return TotalsAnswer(
        running=sums[JobState.RUNNING], waiting=sums[JobState.WAITING], held=sums[JobState.HELD]
    )


def pool_answers(snapshot: QueueSnapshot) -> list[PoolAnswer]:
    """Return the pools of the machine, and their processors in use."""
    used, places_of_pools = [0] * len(snapshot.pools), pool_places(snapshot.pools)
    for job in snapshot.jobs:
        if job.state is JobState.RUNNING:
            used[places_of_pools[job.submission.queue]] += job.processors
    return [
        PoolAnswer(processors=pool.processors, used=taken, queues=list(pool.queues))
        for pool, taken in zip(snapshot.pools, used, strict=True)
    ]


def job_answer(job: LiveJob, queue: LiveQueue) -> LiveJobAnswer:
    """Return a job with its last forecast; a held job has none."""
    forecast = queue.forecasts.get(job.job_id)
    submission, runs = job.submission, job.state is JobState.RUNNING
    point = last_point(job, queue)
    start = job.start_time if runs else point.start if point else None
    arrived_planned = forecast and forecast.points and not forecast.arrived_unplanned
    first = forecast.points[0] if forecast and arrived_planned else None
    is_forecast = forecast if point else None
    return LiveJobAnswer(
        job_id=job.job_id,
        state=job.state.value,
        reason=job.reason,
        user=submission.user,
        project=submission.project,
        queue=submission.queue,
        application=submission.application,
        requested_walltime=submission.requested_walltime,
        requested_processors=submission.requested_processors or 1,
        submit_time=submission.submit_time,
        position=forecast.position if forecast else None,
        predicted_walltime=milliseconds(forecast.predicted, submission.requested_walltime)
        if forecast and forecast.predicted is not None
        else None,
        basis=forecast.basis if forecast else None,
        is_planned=is_planned(forecast, queue.snapshot.rules),
        usual_wait=None
        if forecast is None or forecast.is_reached
        else usual_wait(
            queue.unplanned_waits,
            submission.queue,
            waited=queue.snapshot.now - submission.submit_time,
        ),
        scheduler_start=None if runs else job.scheduler_start,
        start_time=start,
        end_time=point.end if point else None,
        start_interval=bounds(point.start_interval) if point and not runs else None,
        end_interval=bounds(point.end_interval) if point else None,
        wait=None if start is None else max(0.0, round(start - submission.submit_time, 3)),
        wait_forecast_at_arrival=round(first.start - submission.submit_time, 3) if first else None,
        shift=is_forecast.shift_seconds(running=runs) if is_forecast else None,
        shift_since_arrival=is_forecast.shift_seconds(running=runs, since_arrival=True)
        if is_forecast
        else None,
    )


def point_answer(point: ForecastPoint) -> ForecastPointAnswer:
    """Return one forecast as the API answers it."""
    return ForecastPointAnswer(
        made_at=point.made_at,
        start_time=point.start,
        end_time=point.end,
        start_interval=bounds(point.start_interval),
        end_interval=bounds(point.end_interval),
    )


def all_waits(scores: Sequence[WaitScore]) -> list[WaitScoreAnswer]:
    """Return the errors of all queues together, of first and of later forecasts."""
    by_time = [[score for score in scores if score.made == made] for made in (ARRIVAL, SINCE)]
    return [wait_answer(None, group) for group in by_time if group]


def wait_answer(queue: str | None, scores: Sequence[WaitScore]) -> WaitScoreAnswer:
    """Return the mean errors over one or more sums."""

    def total(name: str) -> float:
        return float(sum(getattr(score, name) for score in scores))

    jobs, intervals = total("jobs"), total("intervals")
    return WaitScoreAnswer(
        queue=queue,
        made="arrival" if scores[0].made == ARRIVAL else "since",
        jobs=round(jobs),
        mean_wait=total("wait") / jobs,
        mean_absolute_error=total("absolute_error") / jobs,
        mean_error=total("error") / jobs,
        coverage=total("covered") / intervals if intervals else None,
    )
