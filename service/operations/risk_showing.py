"""Shows running jobs that will probably be cut at their limits."""

from service.auth import Caller
from service.contract.queue_answers import AtRiskAnswer, AtRiskJobAnswer
from service.contract.queue_bodies import AtRiskQuery
from service.live_queue.forecast_record import forecast_state
from service.operations.predicting import limit_answer
from service.operations.queue_showing import ShowingQueues
from service.worker.risks import RunningRisk, jobs_at_risk
from service.worker.worker import Worker


class ShowingRisks:
    """Shows which running jobs will probably be cut, from memory."""

    def __init__(self, worker: Worker, queues: ShowingQueues) -> None:
        self._queues = queues
        self._follower = worker.follower
        self._warning = worker.settings.running_warning_probability
        self._max_age = worker.settings.snapshot_max_age_seconds
        self._clock = worker.clock

    async def at_risk(self, cluster: str, query: AtRiskQuery, caller: Caller) -> AtRiskAnswer:
        """Return the jobs at risk that the caller may see, those cut first.

        Raises:
            UnknownSnapshotError: no queue of the cluster was handed over.
        """
        queue, now = self._queues.live_queue(cluster), self._clock()
        snapshot = queue.snapshot
        least = self._warning if query.probability is None else query.probability
        state = self._follower.state_of(cluster)
        found = [
            at_risk_answer(each, least)
            for each in await jobs_at_risk(snapshot, state, now=now, used=query.used, least=least)
            if caller.can_see(each.job.submission.user)
        ]
        return AtRiskAnswer(
            cluster=cluster,
            now=now,
            taken_at=snapshot.taken_at,
            is_old=forecast_state(queue, now, self._max_age).is_old,
            used=query.used,
            probability=least,
            jobs=sorted(found, key=lambda job: job.limit_time),
        )


def at_risk_answer(found: RunningRisk, least: float) -> AtRiskJobAnswer:
    """Return a job at risk with the end that it would have without a limit."""
    job, elapsed, risk = found
    submission, start, needed = job.submission, job.start_time or 0.0, risk.longer_walltime
    return AtRiskJobAnswer(
        job_id=job.job_id,
        user=submission.user,
        project=submission.project,
        queue=submission.queue,
        application=submission.application,
        requested_walltime=submission.requested_walltime,
        requested_processors=submission.requested_processors or 1,
        start_time=start,
        elapsed=round(elapsed, 3),
        limit_time=start + submission.requested_walltime,
        limit=limit_answer(risk, warning=least),
        missing=None if needed is None else needed - submission.requested_walltime,
        end_time=None if needed is None else start + needed,
    )
