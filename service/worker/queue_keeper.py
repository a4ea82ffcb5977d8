"""The live queues of this process, and the tasks that keep them current."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog
from msgspec.structs import replace

from service.errors import ForecastsBusyError, ForecastTooLongError
from service.live_queue.forecast_record import (
    LiveQueue,
    job_forecasts,
    packed,
    unpacked,
)
from service.live_queue.playing import (
    LIVE,
    QueueColumns,
    beyond_depth,
    first_no_interval,
    play_pools,
    queue_columns,
)
from service.live_queue.snapshot import JobState, QueueSnapshot
from service.live_queue.taken_processors import QueueNodes, nodes_by_queue
from service.metrics import Metrics
from service.settings import Settings
from service.store import Queues, Store, StoreError
from service.worker.changed_queues import CLOCKS_APART, ChangedQueues, as_reported
from service.worker.log_follower import LogFollower
from service.worker.processes import ForecastProcess
from service.worker.queue_estimates import QueueEstimates
from service.worker.queued_facts import with_facts
from service.worker.risks import MOSTLY_USED, jobs_at_risk
from service.worker.started_jobs import new_starts
from service.worker.wait_scores import (
    StartedJob,
    left_jobs,
    ran_unseen,
    start_scores,
    started_jobs,
    told_record,
    wait_scores,
    with_unplanned_waits,
)

log = structlog.get_logger()

FOLLOWING_SECONDS = 1.0
"""Seconds between looks for queues that another process has renewed."""

MOST_ATTEMPTS = 5
"""Most attempts to store a queue while other processes store newer versions of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedQueue:
    """A queue as it is stored.

    Attributes:
        version: in the store; 0 before it is there.
        columns: as they were played, where this process has played them.
    """

    queue: LiveQueue
    version: int
    columns: QueueColumns | None = None


class StoredQueues:
    """Reads live queues from the store, and each version only once.

    Attributes:
        read: queues that were read or stored, by cluster.
    """

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self.read: dict[str, VersionedQueue] = {}

    def of(self, cluster: str) -> LiveQueue | None:
        """Return the queue of a cluster with its forecast; None if none is stored.

        Raises:
            StoreUnavailableError: it cannot be read now.
        """
        stored = self.renewed(cluster)
        return stored.queue if stored else None

    def renewed(self, cluster: str) -> VersionedQueue | None:
        """Return the queue of a cluster as the store has it now; None if none is stored."""
        version = self._queues.versions().get(cluster)
        before = self.read.get(cluster)
        if before is not None and before.version == version:
            return before
        row = None if version is None else self._queues.read(cluster)
        if row is None:
            self.read.pop(cluster, None)
            return None
        queue = unpacked(row[1], cluster)
        if self.read.get(cluster) is before:  # else a newer one was stored meanwhile
            self.read[cluster] = VersionedQueue(queue=queue, version=row[0])
        return self.read.get(cluster)


class QueueKeeper:
    """Takes queues, forecasts them in a process, scores jobs that start, and stores everything.

    Every worker has one. A queue is handed over to any of them; the others read it from the store.

    Args:
        store: the latest state of all queues.
        follower: of the log, for predictions.
        process: in which queues are played.

    Attributes:
        changes: notes the clusters with reported starts and ends.
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
        self._stored = StoredQueues(store.queues)
        self._queues = self._stored.read
        self._pending: dict[str, tuple[QueueSnapshot, float]] = {}
        self._handed_over = asyncio.Event()
        self.changes = ChangedQueues(self._handed_over.set, self._queues, self._pending)

    def take(self, snapshot: QueueSnapshot, now: float) -> None:
        """Replace the queue of a cluster, and forecast it soon."""
        self._pending[snapshot.cluster] = (snapshot, now)
        self._metrics.queues.counted(snapshot.cluster, state_counts(snapshot))
        self._handed_over.set()

    def of(self, cluster: str) -> LiveQueue | None:
        """Return the queue of a cluster, its jobs with the last forecast; None without a queue."""
        stored, pending = self._queues.get(cluster), self._pending.get(cluster)
        if pending is None:
            return stored.queue if stored else None
        snapshot, received_at = pending
        if stored is None:
            return LiveQueue(snapshot=snapshot, received_at=received_at)
        return replace(stored.queue, snapshot=snapshot, received_at=received_at)

    def queue_nodes(self, cluster: str) -> Mapping[str | None, QueueNodes]:
        """Return the nodes of a cluster by queue, as they were handed over last."""
        stored, pending = self._queues.get(cluster), self._pending.get(cluster)
        snapshot = pending[0] if pending else stored.queue.snapshot if stored else None
        return nodes_by_queue(snapshot.queue_nodes) if snapshot else {}

    @property
    def all(self) -> list[LiveQueue]:
        """Return the queues in the order of their clusters."""
        names = sorted(self._queues.keys() | self._pending.keys())
        return [queue for name in names if (queue := self.of(name)) is not None]

    def last_forecast(self, cluster: str) -> VersionedQueue | None:
        """Return the queue that was forecast last; None before the first forecast."""
        stored = self._queues.get(cluster)
        return stored if stored and stored.queue.forecast_at is not None else None

    async def run(self) -> None:
        """Renew queues as they are handed over or change; never returns."""
        while True:
            await self._handed_over.wait()
            self._handed_over.clear()
            for cluster in sorted(self._pending.keys() | self.changes.due()):
                began = time.monotonic()
                try:
                    await self._take_changes(cluster)
                    if cluster in self._pending:
                        await self._renew(cluster)
                except StoreError as error:
                    log.warning("a live queue cannot be stored", reason=str(error))
                except Exception:
                    log.exception("a live queue cannot be forecast", cluster=cluster)
                    self._give_up(cluster)
                self.changes.end(cluster, began)

    async def _take_changes(self, cluster: str) -> None:
        """Take the stored queue with what was reported since, unless a newer one is pending.

        A queue that is not handed over any more is left alone: its new jobs are unknown.
        """
        self.changes.begin(cluster)
        if cluster in self._pending:
            return
        stored = await asyncio.to_thread(self._stored.renewed, cluster)
        if stored is None or self._is_old(stored.queue.snapshot):
            return
        snapshot = stored.queue.snapshot
        changed = await asyncio.to_thread(self._with_changes, snapshot)
        if changed is not snapshot:
            self._pending.setdefault(cluster, (changed, stored.queue.received_at))

    def _is_old(self, snapshot: QueueSnapshot) -> bool:
        return self._clock() - snapshot.taken_at > self._settings.snapshot_max_age_seconds

    def _with_changes(self, snapshot: QueueSnapshot) -> QueueSnapshot:
        """Return the queue with the starts and ends that were reported since; runs in a thread."""
        max_age = self._settings.snapshot_max_age_seconds
        return as_reported(snapshot, self._store.queues, now=self._clock(), max_age=max_age)

    async def follow(self) -> None:
        """Read the queues that other processes have renewed; never returns."""
        while True:
            try:
                await self._look()
            except StoreError as error:
                log.debug("live queues cannot be read", reason=str(error))
            await asyncio.sleep(FOLLOWING_SECONDS)

    async def _look(self) -> None:
        known = dict(self._queues)  # others may be stored while the versions are read
        versions = await asyncio.to_thread(self._store.queues.versions)
        for cluster in known.keys() - versions.keys():
            stored = self._queues.get(cluster)
            if stored is known[cluster] and stored.version:  # it was erased
                del self._queues[cluster]
        for cluster, version in versions.items():
            stored = self._queues.get(cluster)
            if stored is None or stored.version != version:  # after an erasure it begins with 1
                await asyncio.to_thread(self._stored.renewed, cluster)

    async def _renew(self, cluster: str) -> None:
        """Forecast the pending queue, score the jobs that have started since, and store it."""
        for _ in range(MOST_ATTEMPTS):
            stored = await asyncio.to_thread(self._stored.renewed, cluster)
            snapshot, received_at = await self._completed(cluster, stored)
            if stored is not None and self._is_newer(stored, snapshot):
                self.changes.note({cluster})  # another process has taken it, perhaps too early
                break
            await self._count_risks(snapshot, received_at)
            renewed, started = await self._forecast(snapshot, received_at, stored)
            if await self._store_queue(renewed, stored, started):
                self._count_waits(renewed.queue, started)
                break
        else:
            log.warning(
                "a live queue is not stored: other processes stored newer versions meanwhile",
                cluster=cluster,
                attempts=MOST_ATTEMPTS,
            )
        if self._pending.get(cluster, (None, 0.0))[0] is snapshot:
            del self._pending[cluster]

    async def _completed(
        self, cluster: str, stored: VersionedQueue | None
    ) -> tuple[QueueSnapshot, float]:
        """Return the pending queue with facts and reported changes, and when it came."""
        pending, before = self._pending[cluster], stored.queue.snapshot if stored else None
        find = self._store.queues.facts_at_submission
        known = await asyncio.to_thread(with_facts, pending[0], before, find)
        known = await asyncio.to_thread(self._with_changes, known)
        if self._pending[cluster] is pending:
            self._pending[cluster] = known, pending[1]
        return known, pending[1]

    def _is_newer(self, stored: VersionedQueue, snapshot: QueueSnapshot) -> bool:
        """Return whether the stored queue was taken after the snapshot.

        A queue from the future is not newer: a clock that was a day ahead would hide the queues
        of a day.
        """
        latest = self._clock() + CLOCKS_APART
        return snapshot.taken_at < stored.queue.snapshot.taken_at <= latest

    def _give_up(self, cluster: str) -> None:
        """Keep the pending queue without a forecast, so that the service survives."""
        queue, stored = self.of(cluster), self._queues.get(cluster)
        if queue is not None:
            queue = replace(queue, trouble="The forecast failed; the service's log says why.")
            version = stored.version if stored else 0
            self._queues[cluster] = VersionedQueue(queue=queue, version=version)
        self._pending.pop(cluster, None)

    async def _forecast(
        self, snapshot: QueueSnapshot, received_at: float, stored: VersionedQueue | None
    ) -> tuple[VersionedQueue, list[StartedJob]]:
        """Return the queue with a new forecast, and the jobs that have started since the last."""
        before = stored.queue if stored else LiveQueue(snapshot=snapshot, received_at=received_at)
        version = stored.version + 1 if stored else 1
        began = time.perf_counter()
        estimates = await self.estimates.estimate(snapshot, before.forecasts)
        columns = await asyncio.to_thread(queue_columns, snapshot, estimates)
        queue = replace(before, snapshot=snapshot, received_at=received_at, trouble=None)
        queue.left = left_jobs(before, snapshot)
        try:
            played = await self._process.run(
                play_pools,
                columns.pools,
                snapshot.rules,
                self._follower.state_of(snapshot.cluster).error_ratios.ascending(),
                self._settings.forecast_samples,
                LIVE,
            )
        except (ForecastTooLongError, ForecastsBusyError) as error:
            queue.trouble = str(error)
            return VersionedQueue(queue=queue, version=version), []
        unseen = await self._unseen_starts(queue)
        started = [*started_jobs(before, snapshot), *ran_unseen(queue.left, unseen)]
        queue.left = {key: each for key, each in queue.left.items() if key not in unseen}
        queue.forecasts = await asyncio.to_thread(
            job_forecasts, snapshot, estimates, columns.pools, played, before
        )
        queue.forecast_at = snapshot.now
        queue.no_interval = first_no_interval(columns.pools, played)
        queue.planned = sum(len(each.starts.expected) for each in played)
        queue.unplayed = len(beyond_depth(snapshot)) + sum(
            len(pool.waiting) - len(each.starts.expected)
            for pool, each in zip(columns.pools, played, strict=True)
        )
        queue.samples = min((each.samples for each in played), default=0)
        queue.cost = sum(each.cost for each in played)
        queue.unplanned_waits = with_unplanned_waits(before.unplanned_waits, started)
        queue.told = told_record(before.told, started)
        self._metrics.queues.forecast_seconds.labels(snapshot.cluster).observe(
            time.perf_counter() - began
        )
        return VersionedQueue(queue=queue, version=version, columns=columns), started

    async def _unseen_starts(self, queue: LiveQueue) -> dict[str, float]:
        """Return the starts of jobs that have left the queue and completed since, by job id."""
        submitted = {key: each.job.submission.submit_time for key, each in queue.left.items()}
        return await asyncio.to_thread(self._store.queues.starts, queue.snapshot.cluster, submitted)

    async def _store_queue(
        self, renewed: VersionedQueue, before: VersionedQueue | None, started: list[StartedJob]
    ) -> bool:
        """Store a queue, scores and starts; return False if another process was first."""
        queue = renewed.queue
        earlier = before.queue.snapshot.jobs if before else ()
        running = new_starts(queue.snapshot.jobs, earlier, self._clock())
        content = await asyncio.to_thread(packed, queue)
        is_stored = await asyncio.to_thread(
            self._store.queues.replace,
            queue.snapshot.cluster,
            renewed.version,
            content,
            received_at=queue.received_at,
            scores=wait_scores(started),
            start_scores=start_scores(started),
            started=running,
        )
        if is_stored:
            self._queues[queue.snapshot.cluster] = renewed
        return is_stored

    def _count_waits(self, queue: LiveQueue, started: list[StartedJob]) -> None:
        """Count the waits of jobs that have started, and their first forecasts, in the metrics."""
        names = {name for pool in queue.snapshot.pools for name in pool.queues}
        for each in started:
            if not each.forecast.points or each.forecast.arrived_unplanned:
                continue  # it was held, too far behind at its arrival, or larger than the machine
            submission = each.job.submission
            self._metrics.queues.observe_wait(
                queue.snapshot.cluster,
                submission.queue if submission.queue in names else None,
                observed=each.start_time - submission.submit_time,
                forecast=each.forecast.points[0].start - submission.submit_time,
            )

    async def _count_risks(self, snapshot: QueueSnapshot, now: float) -> None:
        """Count the running jobs that will probably be cut, in the metrics."""
        state = self._follower.state_of(snapshot.cluster)
        least = self._settings.running_warning_probability
        found = await jobs_at_risk(snapshot, state, now=now, used=MOSTLY_USED, least=least)
        self._metrics.queues.at_risk.labels(snapshot.cluster).set(len(found))

    def set_gauges(self) -> None:
        """Set the ages of the queues in the metrics."""
        now = self._clock()
        for queue in self.all:
            self._metrics.queues.age.labels(queue.snapshot.cluster).set(
                now - queue.snapshot.taken_at
            )


def state_counts(snapshot: QueueSnapshot) -> dict[str, int]:
    """Return the number of jobs in each state."""
    counts = dict.fromkeys((state.value for state in JobState), 0)
    for job in snapshot.jobs:
        counts[job.state.value] += 1
    return counts
