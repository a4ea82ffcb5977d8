"""Starts of jobs: found in queues, and followed from the store."""

import asyncio
from collections.abc import Iterable

import structlog

from predictors.jobs import Submission
from predictors.memory.running_jobs import Start
from service.live_queue.snapshot import LiveJob
from service.store import Store, StoreError
from service.worker.live_state import LiveState

log = structlog.get_logger()

FOLLOWING_SECONDS = 1.0
"""Seconds between looks for starts that any process has recorded."""

KNOWN_SECONDS = 5.0
"""Seconds after which every process knows of a recorded start; then it counts in all of them."""


def known_start(submission: Submission, start_time: float, now: float) -> Start:
    """Return a start that is about to be recorded."""
    return Start(submission, start_time, known_from=max(start_time, now + KNOWN_SECONDS))


def new_starts(jobs: Iterable[LiveJob], before: Iterable[LiveJob], now: float) -> list[Start]:
    """Return the starts of the jobs in a queue that are not in the queue before."""
    known = {(job.job_id, job.start_time) for job in before}
    return [
        known_start(job.submission, job.start_time, now)
        for job in jobs
        if job.start_time is not None and (job.job_id, job.start_time) not in known
    ]


class StartFollower:
    """Notes the starts in the store in the live state, in the order in which they were recorded."""

    def __init__(self, store: Store) -> None:
        self._starts = store.starts
        self._place = self._learned = 0
        self._is_fresh = False

    def learn(self, live: LiveState, clusters: Iterable[str]) -> None:
        """Note the last starts of clusters in a new state; runs in a thread."""
        self._learned = self._starts.last()
        for cluster in {*clusters, *self._starts.clusters()}:
            live.recall(self._starts.newest(cluster))

    def restart(self) -> None:
        """Follow from where the new state was learned, now that it is in force."""
        self._place, self._is_fresh = self._learned, True

    async def run(self, live: LiveState) -> None:
        """Note starts as they are recorded; never returns."""
        while True:
            try:
                await self._look(live)
            except StoreError as error:
                log.debug("starts cannot be read", reason=str(error))
            await asyncio.sleep(FOLLOWING_SECONDS)

    async def _look(self, live: LiveState) -> None:
        """Note new starts, and once more a second later: a run may have ended meanwhile."""
        place = self._place
        last = await asyncio.to_thread(self._starts.last)
        if last <= place and not self._is_fresh:
            return
        found = await asyncio.to_thread(self._starts.since, place)
        if self._place == place:  # else a new state is in force, which begins elsewhere
            live.started(found)
            self._place, self._is_fresh = last, last > place
