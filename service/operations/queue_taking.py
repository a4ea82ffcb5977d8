"""Takes a queue as its resource manager shows it."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from service.contract.fields import unix_seconds
from service.contract.queue_answers import QueueTakenAnswer
from service.contract.queue_bodies import LiveRunningBody, LiveWaitingBody, QueueBody
from service.errors import InvalidFieldError, SnapshotTooLargeError
from service.live_queue.snapshot import LiveJob, QueueSnapshot
from service.worker.worker import Worker

JOBS_PER_TURN = 256
"""Jobs that are taken in one turn of the event loop; other requests pass in between."""

AHEAD_SECONDS = 300.0
"""Most seconds by which the clock of a resource manager may be ahead."""


class TakingQueues:
    """Replaces the queue of a cluster as a whole."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._keeper = worker.queues
        self._follower = worker.follower
        self._hide = worker.pseudonyms.submission
        self._cluster_limit = worker.cluster_limit
        self._clock = worker.clock

    async def take(self, cluster: str, body: QueueBody) -> QueueTakenAnswer:
        """Take the queue; its forecast is made afterwards.

        Raises:
            SnapshotTooLargeError: it has too many jobs.
            InvalidFieldError: a job is in it twice, or it was taken in the future.
            TooManyClustersError: the service has as many clusters as it may have.
            StartingError: the history has not been read, so the queue could not be forecast.
        """
        self._follower.check_started()
        self._cluster_limit.admit(cluster)
        now = self._clock()
        taken_at = now if body.taken_at is None else unix_seconds(body.taken_at)
        if taken_at > now + AHEAD_SECONDS:
            raise InvalidFieldError("The queue would have been taken in the future.", "taken_at")
        limit = self._settings.snapshot_max_jobs
        if len(body.running) + len(body.waiting) > limit:
            raise SnapshotTooLargeError(f"A queue may have {limit} jobs.")
        seen: set[str] = set()
        running = await self._jobs("running", body.running, cluster, seen)
        waiting = await self._jobs("waiting", body.waiting, cluster, seen)
        snapshot = QueueSnapshot(
            cluster=cluster,
            taken_at=min(taken_at, now),
            rules=body.rules(),
            pools=tuple(pool.pool() for pool in body.pools),
            jobs=(*running, *waiting),
        )
        self._keeper.take(snapshot, now)
        return QueueTakenAnswer(
            cluster=cluster, taken_at=snapshot.taken_at, jobs=len(snapshot.jobs)
        )

    async def _jobs(
        self,
        field: str,
        bodies: Sequence[LiveRunningBody | LiveWaitingBody],
        cluster: str,
        seen: set[str],
    ) -> list[LiveJob]:
        """Return the jobs with pseudonyms; a job id that was seen before is refused."""
        jobs = []
        for place, body in enumerate(bodies):
            job = body.live(cluster)
            if job.job_id in seen:
                raise InvalidFieldError(
                    f"Job {job.job_id} is in the queue twice.", f"{field}.{place}.job_id"
                )
            seen.add(job.job_id)
            hidden = self._hide(job.submission)
            jobs.append(job if hidden is job.submission else replace(job, submission=hidden))
            if place % JOBS_PER_TURN == JOBS_PER_TURN - 1:
                await asyncio.sleep(0)
        return jobs
