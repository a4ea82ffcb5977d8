"""Telling when the jobs of a queue will start and end, and where."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import structlog
from msgspec.structs import replace
from numpy.typing import NDArray

from predictors.accuracy_groups import group_named
from service.contract.answers import IntervalAnswer
from service.contract.bodies import method_of
from service.contract.fields import unix_seconds
from service.contract.forecast_answers import ForecastAnswer, JobForecastAnswer
from service.contract.forecast_bodies import ForecastRequest, QueuedJobBody, RunningJobBody
from service.errors import InvalidFieldError, QueueTooLargeError
from service.operations.node_notes import NodeNotes
from service.operations.playing import SharedQueue, play_dedicated, play_shared
from service.operations.snapshots import (
    JobEstimate,
    JobEstimates,
    JobName,
    check_queue,
    dedicated,
    names_nodes,
    nodes_of,
    owner_of,
    processors_of,
    shared,
    shared_rules,
)
from service.pseudonyms import Pseudonyms
from service.settings import Settings
from service.worker.live_state import ClusterState
from service.worker.log_follower import LogFollower
from service.worker.processes import ForecastProcesses
from simulator.scheduling.futures import LADDER, nominal_coverage
from simulator.scheduling.semantics import Semantics
from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.shared_nodes.simulation import Span

log = structlog.get_logger()

NODES_PER_JOB = 100
"""The largest number of nodes of a machine, per job that a forecast may have."""

MOST_PLACES = 10**7
"""Processors of the machine and of all jobs, where each of them is named."""

PREDICTIONS_PER_TURN = 16
"""Number of jobs predicted in one turn of the event loop; other requests pass in between."""


Times = NDArray[np.int64] | NDArray[np.float64]
"""Seconds from now, whole ones on dedicated clusters."""


class Forecasting:
    """Plays queues forward, in other processes."""

    def __init__(
        self,
        settings: Settings,
        *,
        follower: LogFollower,
        pseudonyms: Pseudonyms,
        processes: ForecastProcesses,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._follower = follower
        self._pseudonyms = pseudonyms
        self._processes = processes
        self._clock = clock
        self._notes = NodeNotes()
        self._default_priority = group_named(settings.default_group).priority

    async def forecast(self, body: ForecastRequest) -> ForecastAnswer:
        """When every job of the queue will start and end.

        Raises:
            QueueTooLargeError: it has too many jobs.
            InvalidFieldError: no machine can be in such a state, or no scheduler so.
            ForecastsBusyError: too many forecasts are being made.
            ForecastTooLongError: it takes too long.
        """
        self._check_size(body)
        now = self._clock() if body.now is None else unix_seconds(body.now)
        method = method_of(body, self._settings.method)
        check_queue(body, now)
        estimates = await self._estimates(body, method, now)
        play = self._shared if body.policy in SHARED_POLICIES else self._dedicated
        jobs = await play(body, now, estimates)
        self._note_nodes(body, now, jobs)
        answering = self._follower.state_of(body.cluster).resolved(method)
        return ForecastAnswer(
            cluster=body.cluster, now=now, policy=body.policy, method=answering, jobs=jobs
        )

    def _check_size(self, body: ForecastRequest) -> None:
        jobs, limit = [*body.running, *body.waiting], self._settings.forecast_jobs
        if len(jobs) > limit or len(nodes_of(body.machine)) > NODES_PER_JOB * limit:
            raise QueueTooLargeError(f"A forecast takes at most {limit} jobs.")
        places = processors_of(body.machine) + sum(job.requested_processors for job in jobs)
        if body.policy == "fcfs-pinned" and places > MOST_PLACES:
            raise QueueTooLargeError("A forecast with pinned nodes takes at most 10^7 processors.")

    async def _estimates(self, body: ForecastRequest, method: str, now: float) -> JobEstimates:
        """The predictions and priorities of all jobs of a snapshot."""
        jobs: list[QueuedJobBody] = [*body.running, *body.waiting]
        estimates: dict[JobName, JobEstimate] = {}
        for start in range(0, len(jobs), PREDICTIONS_PER_TURN):
            state = self._follower.state_of(body.cluster)
            for job in jobs[start : start + PREDICTIONS_PER_TURN]:
                estimates[job.job_id] = self._estimate(job, body, method, now, state)
            await asyncio.sleep(0)
        return estimates

    def _estimate(
        self,
        job: QueuedJobBody,
        body: ForecastRequest,
        method: str,
        now: float,
        state: ClusterState,
    ) -> JobEstimate:
        """What its scheduler took it for at its submission, and what it may take as of now."""
        runtime, ladder = job.predicted_walltime, None
        if runtime is None:
            submission = self._pseudonyms.submission(job.within(body.cluster))
            runtime = state.ask(method, submission).predicted_walltime
            as_of_now = replace(submission, submit_time=now)
            ladder = state.quantiles(method, as_of_now, LADDER, time_behind(job, body, now))
        ranked = state.accuracies.of(self._pseudonyms.user(job.user))
        return JobEstimate(
            runtime=min(runtime, job.requested_walltime),
            priority=ranked.priority if ranked else self._default_priority,
            ladder=ladder,
        )

    async def _dedicated(
        self, body: ForecastRequest, now: float, estimates: JobEstimates
    ) -> list[JobForecastAnswer]:
        snapshot = dedicated(body, now, estimates)
        ladders = (
            [estimates[job.job_id].ladder for job in body.running],
            [estimates[job.job_id].ladder for job in body.waiting],
        )
        played, futures = await self._processes.dedicated.run(
            play_dedicated, snapshot, semantics_of(body), *self._variety(body), ladders
        )
        ends = Ranges([future.running_end for future in futures], now)
        running = zip(
            body.running, played.running_end.tolist(), snapshot.running.age.tolist(), strict=True
        )
        answers = [
            running_answer(
                job, now + end, end + age, nodes=job.nodes, interval=ends.interval_of(row)
            )
            for row, (job, end, age) in enumerate(running)
        ]
        starts = Ranges([future.start for future in futures], now)
        ends = Ranges([future.end for future in futures], now)
        places = played.nodes if names_nodes(body) else None
        for row, job in enumerate(body.waiting):
            answer = waiting_answer(job, now + int(played.start[row]), now + int(played.end[row]))
            answer.start_interval, answer.end_interval = (
                starts.interval_of(row),
                ends.interval_of(row),
            )
            answer.nodes = named(body, places[row]) if places else None
            answers.append(answer)
        return answers

    def _variety(self, body: ForecastRequest) -> tuple[Sequence[float], int]:
        """Ratios of runtime to prediction that futures draw from, and how many are drawn."""
        wanted = self._settings.forecast_samples if body.samples is None else body.samples
        return self._follower.state_of(body.cluster).errors.quantiles(), wanted

    async def _shared(
        self, body: ForecastRequest, now: float, estimates: JobEstimates
    ) -> list[JobForecastAnswer]:
        cluster, waiting_jobs = shared(body, now, estimates)
        queue = SharedQueue(
            cluster=cluster,
            waiting=waiting_jobs,
            rules=shared_rules(body),
            remaining_time=body.remaining_time,
            cpu_time=body.cpu_time,
            characterised=characterised_in(body),
            owners={str(job.job_id): owner_of(job) for job in (*body.running, *body.waiting)},
            ladders={str(job_id): each.ladder for job_id, each in estimates.items() if each.ladder},
        )
        spans, futures = await self._processes.shared.run(play_shared, queue, *self._variety(body))
        answers = []
        ends = Ranges([ends_of(future, body.running) for future in futures], now)
        for row, job in enumerate(body.running):
            span = spans[str(job.job_id)]
            end, runtime = now + span.end, span.end - span.start
            interval = ends.interval_of(row)
            answers.append(running_answer(job, end, runtime, nodes=job.nodes, interval=interval))
        starts = Ranges([starts_of(future, body.waiting) for future in futures], now)
        ends = Ranges([ends_of(future, body.waiting) for future in futures], now)
        for row, waiting in enumerate(body.waiting):
            span = spans[str(waiting.job_id)]
            answer = waiting_answer(waiting, now + span.start, now + span.end)
            answer.start_interval, answer.end_interval = (
                starts.interval_of(row),
                ends.interval_of(row),
            )
            answer.nodes = named(body, span.nodes)
            answers.append(answer)
        return answers

    def _note_nodes(
        self, body: ForecastRequest, now: float, answers: Sequence[JobForecastAnswer]
    ) -> None:
        """Say since when the nodes of the waiting jobs have been the same."""
        waiting = {
            str(answer.job_id): answer
            for answer in answers
            if answer.state == "waiting" and answer.nodes is not None
        }
        nodes = {job_id: tuple(answer.nodes or ()) for job_id, answer in waiting.items()}
        for job_id, since in self._notes.since((body.cluster, body.policy), now, nodes).items():
            waiting[job_id].nodes_since = since


def characterised_in(body: ForecastRequest) -> set[str]:
    """Return the ids of jobs that say how long they run in isolation."""
    jobs: list[QueuedJobBody] = [*body.running, *body.waiting]
    return {str(job.job_id) for job in jobs if job.execution_time is not None}


def time_behind(job: QueuedJobBody, body: ForecastRequest, now: float) -> float | None:
    """How much of its runtime a running job has behind it, in seconds; None if it waits.

    On shared nodes, unless its runtime there is what is predicted, that is how long it would
    have run alone for the CPU time that it has used.
    """
    if not isinstance(job, RunningJobBody):
        return None
    if body.policy in SHARED_POLICIES and body.remaining_time != "hybrid":
        return (job.used_cpu_time or 0.0) / (job.cpu_share or 1.0)
    return max(0.0, now - unix_seconds(job.start_time))


def starts_of(future: Mapping[str, Span], jobs: Sequence[QueuedJobBody]) -> Times:
    """Seconds until the jobs start, on shared nodes."""
    return np.array([future[str(job.job_id)].start for job in jobs])


def ends_of(future: Mapping[str, Span], jobs: Sequence[QueuedJobBody]) -> Times:
    """Seconds until the jobs end, on shared nodes."""
    return np.array([future[str(job.job_id)].end for job in jobs])


def named(body: ForecastRequest, places: Sequence[int]) -> list[str]:
    """The names of nodes."""
    nodes = nodes_of(body.machine)
    return [nodes[place].name for place in places]


def semantics_of(body: ForecastRequest) -> Semantics:
    """The rules of the scheduler.

    Raises:
        InvalidFieldError: a plan on named nodes is kept in order of submission only.
    """
    if body.policy == "fcfs-pinned" and body.order != "fcfs":
        raise InvalidFieldError("fcfs-pinned serves the queue in the order fcfs.", "order")
    by_predictions = body.plans_by == "predictions"
    return Semantics(
        policy=body.policy,
        order=body.order,
        depth=body.depth,
        compression=body.compression,
        correction=body.correction,
        pinning=body.pinning,
        pinned=body.pinned,
        estimated_order=by_predictions,
        estimated_backfilling=by_predictions,
        estimated_running=by_predictions,
    )


class Ranges:
    """The ranges of times over several futures, job by job.

    Args:
        futures: seconds from now of every job, in each future.
        now: Unix seconds.
    """

    def __init__(self, futures: Sequence[Times], now: float) -> None:
        self._coverage = nominal_coverage(len(futures))
        self._lower = now + np.min(futures, axis=0) if futures else None
        self._upper = now + np.max(futures, axis=0) if futures else None

    def interval_of(self, row: int) -> IntervalAnswer | None:
        """The range of n futures holds another one with probability (n - 1) / (n + 1)."""
        if self._lower is None or self._upper is None:
            return None
        return IntervalAnswer(
            lower=float(self._lower[row]), upper=float(self._upper[row]), coverage=self._coverage
        )


def running_answer(
    job: RunningJobBody,
    end: float,
    runtime: float,
    *,
    nodes: list[str] | None,
    interval: IntervalAnswer | None = None,
) -> JobForecastAnswer:
    """The forecast of a running job."""
    submit, start = unix_seconds(job.submit_time), unix_seconds(job.start_time)
    return JobForecastAnswer(
        job_id=job.job_id,
        state="running",
        predicted_walltime=float(runtime),
        start_time=start,
        end_time=end,
        wait=start - submit,
        turnaround=end - submit,
        nodes=nodes,
        nodes_since=None,
        start_interval=None,
        end_interval=interval,
    )


def waiting_answer(job: QueuedJobBody, start: float, end: float) -> JobForecastAnswer:
    """The forecast of a waiting job, without its nodes and intervals."""
    submit = unix_seconds(job.submit_time)
    return JobForecastAnswer(
        job_id=job.job_id,
        state="waiting",
        predicted_walltime=end - start,
        start_time=start,
        end_time=end,
        wait=start - submit,
        turnaround=end - submit,
        nodes=None,
        nodes_since=None,
        start_interval=None,
        end_interval=None,
    )
