"""The queues that this process knows, and the tasks that keep them current."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from msgspec.structs import replace

from service.errors import ForecastsBusyError, ForecastTooLongError
from service.metrics import Metrics
from service.queues.live_playing import play_pools, samples_for
from service.queues.outlook import Departed, LiveQueue
from service.queues.queue_columns import PoolQueue, pool_queues, semantics_of
from service.queues.snapshot import JobState, QueueSnapshot
from service.queues.waits import StartedJob, departed_jobs, ran_unseen, started_jobs, sums_of
from service.settings import Settings
from service.store import Store, StoreError
from service.worker.log_follower import LogFollower
from service.worker.processes import ForecastProcess
from service.worker.queues.estimating import QueueEstimates
from service.worker.queues.merging import outlooks_of, packed, rows_of, unpacked, without

log = structlog.get_logger()

FOLLOWING_SECONDS = 1.0
"""How often it is looked whether another process has renewed a queue."""

CLOCKS_APART = 60.0
"""Seconds by which the clocks of two machines may differ."""

MOST_ATTEMPTS = 5
"""Processes that renew the same queue at once get out of each other's way so often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A queue as the store has it.

    Attributes:
        queue: with its forecast.
        version: in the store; 0 before it is there.
        pools: as they were played, where this process has done so.
    """

    queue: LiveQueue
    version: int
    pools: list[PoolQueue] | None = None


class QueueKeeper:
    """Takes queues, forecasts them in their own process, scores jobs that start, shares it all.

    Every worker has one. A queue is handed over to any of them; the others read it from the store.

    Args:
        store: the latest state of all queues.
        follower: of the log, for predictions.
        process: in which queues are played.
        settings: of the service.
        metrics: what is counted.
        clock: Unix seconds.
    """

    def __init__(  # noqa: PLR0913 - each is a part of the worker, named where it is handed over
        self,
        *,
        store: Store,
        follower: LogFollower,
        process: ForecastProcess,
        settings: Settings,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._follower = follower
        self._process = process
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self.estimates = QueueEstimates(settings, follower)
        self._kept: dict[str, Kept] = {}
        self._pending: dict[str, tuple[QueueSnapshot, float]] = {}
        self._handed_over = asyncio.Event()

    def take(self, snapshot: QueueSnapshot, now: float) -> None:
        """Put a queue in the place of the one before, and forecast it soon."""
        self._pending[snapshot.cluster] = (snapshot, now)
        self._metrics.queues.counted(snapshot.cluster, counts_of(snapshot))
        self._handed_over.set()

    def of(self, cluster: str) -> LiveQueue | None:
        """The queue of a cluster, if one was handed over; its jobs with the last forecast."""
        kept, pending = self._kept.get(cluster), self._pending.get(cluster)
        if pending is None:
            return kept.queue if kept else None
        snapshot, received_at = pending
        if kept is None:
            return LiveQueue(snapshot=snapshot, received_at=received_at)
        return replace(kept.queue, snapshot=snapshot, received_at=received_at)

    @property
    def all(self) -> list[LiveQueue]:
        """The queues by cluster."""
        names = sorted(self._kept.keys() | self._pending.keys())
        return [queue for name in names if (queue := self.of(name)) is not None]

    def forecast_of(self, cluster: str) -> Kept | None:
        """The queue that was forecast last; for what would become of a job added to it."""
        kept = self._kept.get(cluster)
        return kept if kept and kept.queue.forecast_at is not None else None

    async def run(self) -> None:
        """Renew queues as they are handed over, for ever."""
        while True:
            await self._handed_over.wait()
            self._handed_over.clear()
            for cluster in list(self._pending):
                try:
                    await self._renew(cluster)
                except StoreError as error:
                    log.warning("a live queue cannot be stored", reason=str(error))
                except Exception:
                    log.exception("a live queue cannot be forecast", cluster=cluster)
                    self._give_up(cluster)

    async def follow(self) -> None:
        """Know the queues that other processes have renewed, for ever."""
        while True:
            try:
                await self._look()
            except StoreError as error:
                log.debug("live queues cannot be read", reason=str(error))
            await asyncio.sleep(FOLLOWING_SECONDS)

    async def _look(self) -> None:
        versions = await asyncio.to_thread(self._store.queues.versions)
        for cluster in self._kept.keys() - versions.keys():
            if self._kept[cluster].version:  # it was erased
                del self._kept[cluster]
        for cluster, version in versions.items():
            kept = self._kept.get(cluster)
            if kept is None or kept.version != version:  # one that was erased begins anew with 1
                await self._read(cluster)

    async def _read(self, cluster: str) -> Kept | None:
        """The queue as the store has it now."""
        found = await asyncio.to_thread(self._store.queues.read, cluster)
        if found is None:
            return None
        version, content = found
        kept = self._kept.get(cluster)
        if kept is None or kept.version != version:
            queue = await asyncio.to_thread(unpacked, content, cluster)
            self._kept[cluster] = Kept(queue=queue, version=version)
        return self._kept[cluster]

    async def _renew(self, cluster: str) -> None:
        """Forecast what was handed over, score what has started since, and store it."""
        for _ in range(MOST_ATTEMPTS):
            snapshot, received_at = self._pending[cluster]
            kept = await self._read(cluster)
            if kept is not None and self._is_newer(kept, snapshot):
                break  # another process has handed it over
            renewed, started = await self._forecast(snapshot, received_at, kept)
            if await self._stored(renewed, started):
                self._note(renewed.queue, started)
                break
        if self._pending.get(cluster, (None, 0.0))[0] is snapshot:
            del self._pending[cluster]

    def _is_newer(self, kept: Kept, snapshot: QueueSnapshot) -> bool:
        """Whether what is kept was taken after the snapshot, and not before a clock was set back.

        Else the queue of a clock that was a day ahead would be shown for a day.
        """
        latest = self._clock() + CLOCKS_APART
        return snapshot.taken_at < kept.queue.snapshot.taken_at <= latest

    def _give_up(self, cluster: str) -> None:
        """Keep what was handed over without a forecast: a queue never ends the service."""
        queue, kept = self.of(cluster), self._kept.get(cluster)
        if queue is not None:
            queue = replace(queue, trouble="The forecast failed; the service's log says why.")
            self._kept[cluster] = Kept(queue=queue, version=kept.version if kept else 0)
        self._pending.pop(cluster, None)

    async def _forecast(
        self, snapshot: QueueSnapshot, received_at: float, kept: Kept | None
    ) -> tuple[Kept, list[StartedJob]]:
        """The queue with a new forecast, and the jobs that have started since the one before."""
        before = kept.queue if kept else LiveQueue(snapshot=snapshot, received_at=received_at)
        version = kept.version if kept else 0
        began = time.perf_counter()
        estimates = await self.estimates.of(snapshot, before.outlooks)
        pools = await asyncio.to_thread(pool_queues, snapshot, estimates)
        queue = replace(before, snapshot=snapshot, received_at=received_at, trouble=None)
        try:
            forecasts = await self._process.run(
                play_pools,
                pools,
                semantics_of(snapshot.rules),
                self._follower.state_of(snapshot.cluster).errors.quantiles(),
                samples_for(sum(map(len, pools)), self._settings.forecast_samples),
            )
        except (ForecastTooLongError, ForecastsBusyError) as error:
            queue.trouble = str(error)
            queue.departed = departed_jobs(before, before.snapshot, snapshot)
            return Kept(queue=queue, version=version + 1, pools=None), []
        started, queue.departed = await self._left(before, snapshot)
        queue.outlooks = await asyncio.to_thread(
            outlooks_of, snapshot, estimates, pools, forecasts, before.outlooks
        )
        queue.forecast_at = snapshot.taken_at
        self._metrics.queues.forecast_seconds.labels(snapshot.cluster).observe(
            time.perf_counter() - began
        )
        return Kept(queue=queue, version=version + 1, pools=pools), started

    async def _left(
        self, before: LiveQueue, newer: QueueSnapshot
    ) -> tuple[list[StartedJob], dict[str, Departed]]:
        """The jobs that have started, also those that nobody saw running, and those still open."""
        departed = departed_jobs(before, before.snapshot, newer)
        submitted = {job_id: each.job.submission.submit_time for job_id, each in departed.items()}
        starts = await asyncio.to_thread(self._store.queues.starts, newer.cluster, submitted)
        started = [*started_jobs(before, newer), *ran_unseen(departed, starts)]
        return started, without(departed, starts)

    async def _stored(self, renewed: Kept, started: list[StartedJob]) -> bool:
        queue = renewed.queue
        content = await asyncio.to_thread(packed, queue)
        is_stored = await asyncio.to_thread(
            self._store.queues.replace,
            queue.snapshot.cluster,
            renewed.version,
            content,
            received_at=queue.received_at,
            scores=rows_of(sums_of(started)),
        )
        if is_stored:
            self._kept[queue.snapshot.cluster] = renewed
        return is_stored

    def _note(self, queue: LiveQueue, started: list[StartedJob]) -> None:
        """Count what has started."""
        names = {name for pool in queue.snapshot.pools for name in pool.queues}
        for each in started:
            if not each.outlook.points:
                continue  # it was held until now, or larger than the machine
            name = each.job.submission.queue
            self._metrics.queues.waited(
                queue.snapshot.cluster,
                name if name in names else None,
                come=each.start_time - each.job.submission.submit_time,
                forecast=each.outlook.points[0].start - each.job.submission.submit_time,
            )

    def set_gauges(self) -> None:
        """Show in the metrics how old the queues are."""
        now = self._clock()
        for queue in self.all:
            self._metrics.queues.age.labels(queue.snapshot.cluster).set(
                now - queue.snapshot.taken_at
            )


def counts_of(snapshot: QueueSnapshot) -> dict[str, int]:
    """How many jobs are in each state."""
    counts = dict.fromkeys((state.value for state in JobState), 0)
    for job in snapshot.jobs:
        counts[job.state.value] += 1
    return counts
