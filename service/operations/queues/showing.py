"""Showing the queues, to each caller what is theirs to see."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from predictors.base import Question
from service.auth import Caller
from service.contract.answers import BasisAnswer, IntervalAnswer
from service.contract.queue_answers import (
    ForecastPointAnswer,
    JobTotalsAnswer,
    LiveJobAnswer,
    LiveJobDetailAnswer,
    PoolAnswer,
    QueueAnswer,
    QueueHeadAnswer,
    QueuesAnswer,
    TotalsAnswer,
)
from service.contract.queue_bodies import QueueQuery
from service.errors import UnknownQueueError
from service.operations.predicting import explanation_of
from service.operations.predicting import interval_of as walltime_interval_of
from service.pseudonyms import Pseudonyms
from service.queues.live_machine import pool_of
from service.queues.outlook import LiveQueue, Outlook, Point, Span
from service.queues.snapshot import JobState, LiveJob, QueueSnapshot
from service.settings import Settings
from service.worker.log_follower import LogFollower
from service.worker.queues.queue_keeper import QueueKeeper


class ShowingQueue:
    """Shows one queue at a time.

    Args:
        settings: of the service.
        queue_of: the queue of a cluster; None if none was handed over.
        pseudonyms: replaces the names of people.
        clock: Unix seconds.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        queue_of: Callable[[str], LiveQueue | None],
        pseudonyms: Pseudonyms,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._queue_of = queue_of
        self._pseudonym = pseudonyms.user
        self._clock = clock
        self._totals: dict[str, tuple[QueueSnapshot, TotalsAnswer]] = {}

    def queue(self, cluster: str, query: QueueQuery, caller: Caller) -> QueueAnswer:
        """A queue and its jobs, as far as the caller may see them.

        Raises:
            UnknownQueueError: none was handed over.
        """
        queue = self.known(cluster)
        found = self._found(queue, query, caller)
        rules = queue.snapshot.rules
        return QueueAnswer(
            **self._head(queue),
            policy=rules.policy,
            plans_by=rules.plans_by,
            method=self._settings.method,
            pools=pools_of(queue.snapshot),
            found=len(found),
            jobs=[
                job_answer(job, queue.outlooks.get(job.job_id))
                for job in islice(found, query.offset, query.offset + query.limit)
            ],
        )

    def known(self, cluster: str) -> LiveQueue:
        """The queue of a cluster.

        Raises:
            UnknownQueueError: none was handed over.
        """
        queue = self._queue_of(cluster)
        if queue is None:
            raise UnknownQueueError("No queue was handed over for this cluster.")
        return queue

    def is_old(self, queue: LiveQueue) -> bool:
        """Whether a newer one should have come."""
        return self._clock() - queue.snapshot.taken_at > self._settings.queue_old_seconds

    def _head(self, queue: LiveQueue) -> dict[str, Any]:
        return {
            "cluster": queue.snapshot.cluster,
            "taken_at": queue.snapshot.taken_at,
            "forecast_at": queue.forecast_at,
            "is_old": self.is_old(queue),
            "trouble": queue.trouble,
            "totals": self._totals_of(queue.snapshot),
        }

    def _totals_of(self, snapshot: QueueSnapshot) -> TotalsAnswer:
        """Counted once: a large queue has many jobs, and many look at its head."""
        counted = self._totals.get(snapshot.cluster)
        if counted is None or counted[0] is not snapshot:
            counted = self._totals[snapshot.cluster] = (snapshot, totals_of(snapshot.jobs))
        return counted[1]

    def _found(self, queue: LiveQueue, query: QueueQuery, caller: Caller) -> list[LiveJob]:
        wanted = {query.user, self._pseudonym(query.user)}
        return [
            job
            for job in queue.snapshot.jobs
            if caller.sees(job.submission.user)
            and (query.user is None or job.submission.user in wanted)
            and (query.queue is None or job.submission.queue == query.queue)
            and (query.state is None or job.state == query.state)
        ]


class ShowingQueues(ShowingQueue):
    """Answers from memory what is known of all queues and their jobs."""

    def __init__(
        self,
        settings: Settings,
        *,
        keeper: QueueKeeper,
        follower: LogFollower,
        pseudonyms: Pseudonyms,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(settings, queue_of=keeper.of, pseudonyms=pseudonyms, clock=clock)
        self._keeper = keeper
        self._follower = follower

    @property
    def clusters(self) -> list[str]:
        """Those of which there is a queue."""
        return [queue.snapshot.cluster for queue in self._keeper.all]

    def queues(self) -> QueuesAnswer:
        """All queues without their jobs."""
        return QueuesAnswer(queues=[QueueHeadAnswer(**self._head(q)) for q in self._keeper.all])

    def job(self, cluster: str, job_id: str, caller: Caller) -> LiveJobDetailAnswer:
        """One job, how its forecast moved, and the runs that its prediction rests on.

        Raises:
            UnknownQueueError: there is no such job, or the caller may not see it.
        """
        queue = self.known(cluster)
        job = next((each for each in queue.snapshot.jobs if each.job_id == job_id), None)
        if job is None or not caller.sees(job.submission.user):
            raise UnknownQueueError("There is no such job in the queue.")
        outlook = queue.outlooks.get(job_id)
        elapsed = None if job.start_time is None else max(0.0, self._clock() - job.start_time)
        prediction = self._follower.state_of(cluster).ask(
            self._settings.method,
            job.submission,
            Question(coverage=self._settings.coverage, elapsed=elapsed, explain=True),
        )
        return LiveJobDetailAnswer(
            cluster=cluster,
            taken_at=queue.snapshot.taken_at,
            is_old=self.is_old(queue),
            job=job_answer(job, outlook),
            forecasts=[point_answer(point) for point in outlook.points] if outlook else [],
            method=prediction.method,
            walltime_interval=walltime_interval_of(prediction),
            median=prediction.median,
            basis=BasisAnswer(prediction.basis.jobs, prediction.basis.reason),
            explanation=explanation_of(prediction),
        )


def totals_of(jobs: Iterable[LiveJob]) -> TotalsAnswer:
    """How many jobs there are in each state, and how many processors they take."""
    sums = {state: JobTotalsAnswer(jobs=0, processors=0) for state in JobState}
    for job in jobs:
        sums[job.state].jobs += 1
        sums[job.state].processors += job.processors
    return TotalsAnswer(
        running=sums[JobState.RUNNING], waiting=sums[JobState.WAITING], held=sums[JobState.HELD]
    )


def pools_of(snapshot: QueueSnapshot) -> list[PoolAnswer]:
    """The machine, and how much of it is in use."""
    used = [0] * len(snapshot.pools)
    for job in snapshot.jobs:
        if job.state is JobState.RUNNING:
            used[pool_of(snapshot.pools, job.submission.queue)] += job.processors
    return [
        PoolAnswer(processors=pool.processors, used=taken, queues=list(pool.queues))
        for pool, taken in zip(snapshot.pools, used, strict=True)
    ]


def job_answer(job: LiveJob, outlook: Outlook | None) -> LiveJobAnswer:
    """A job with its last forecast; a held job has none."""
    asked, runs = job.submission, job.state is JobState.RUNNING
    point = None if outlook is None or job.state is JobState.HELD else outlook.last
    start = job.start_time if runs else point.start if point else None
    first = outlook.points[0] if outlook and outlook.points else None
    return LiveJobAnswer(
        job_id=job.job_id,
        state=job.state.value,
        reason=job.reason,
        user=asked.user,
        project=asked.project,
        queue=asked.queue,
        application=asked.application,
        requested_walltime=asked.requested_walltime,
        requested_processors=job.processors,
        submit_time=asked.submit_time,
        position=outlook.position if outlook else None,
        predicted_walltime=outlook.predicted if outlook else None,
        start_time=start,
        end_time=point.end if point else None,
        start_interval=interval_of(point.start_span) if point and not runs else None,
        end_interval=interval_of(point.end_span) if point else None,
        wait=None if start is None else max(0.0, start - asked.submit_time),
        wait_forecast_at_arrival=first.start - asked.submit_time if first else None,
        moved=outlook.moved(running=runs) if outlook and point else None,
        moved_since_arrival=outlook.moved_since_arrival(running=runs)
        if outlook and point
        else None,
    )


def point_answer(point: Point) -> ForecastPointAnswer:
    """The answer's word for one forecast."""
    return ForecastPointAnswer(
        made_at=point.made_at,
        start_time=point.start,
        end_time=point.end,
        start_interval=interval_of(point.start_span),
        end_interval=interval_of(point.end_span),
    )


def interval_of(span: Span | None) -> IntervalAnswer | None:
    """The answer's word for bounds."""
    if span is None:
        return None
    return IntervalAnswer(lower=span.lower, upper=span.upper, coverage=span.coverage)
