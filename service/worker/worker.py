"""One serving process: its parts, start and end."""

import asyncio
import gc
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf

import structlog
from prometheus_client import Counter

from service.auth import Guard, read_pseudonyms
from service.contract.answers import HealthAnswer, HealthStatus
from service.metrics import Metrics
from service.settings import Settings
from service.store import (
    LogReader,
    Store,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    open_store,
)
from service.worker.live_state import LiveState
from service.worker.log_follower import LogFollower
from service.worker.prediction_recorder import PredictionRecorder
from service.worker.processes import (
    ChildProcess,
    ForecastProcess,
    ForecastProcesses,
    bound_threads,
    settle_process,
)
from service.worker.queue_keeper import QueueKeeper
from service.worker.started_jobs import StartFollower
from service.worker.tuning_rounds import TuningKeeper, from_store
from service.worker.writer import ClusterLimit, Writer, surplus_sentence
from terminal.words import DAY

log = structlog.get_logger()

HOUSEKEEPING_SECONDS = 1.0
"""Seconds after which tokens are read again and gauges set."""

TOKENS_ANEW_SECONDS = 0.1
"""Least seconds between the beginnings of two reads of tokens."""

CATCHING_UP_SLICE = 1000
CATCHING_UP_ROUNDS = 1000
"""Completions at a time, and times: stored while the history was read again, and applied before
its use."""

LATE_SHARE = 6
"""Least time between two folds for late runs, in times of the last fold."""

DAMAGED_SECONDS = 60.0
"""Seconds after which a damaged history is read again; an administrator has to restore it."""

LIVE_SECONDS = 60.0
"""Seconds after which the forecast of a live queue is given up, with its process."""

LISTED = 20
"""Largest number of clusters in a log record."""

PLANNING_MODES = frozenset({"order", "soft", "default-limit"})
"""Modes of submit filters in which a scheduler plans or orders by predictions."""


class Worker:
    """One serving process: store, live state, the log's follower, the writer.

    Several workers may share a store; they have only the log of completions in common.

    Args:
        owns_process: whether the process does nothing else, so that the worker may set its garbage
            collector and thread switching.

    Attributes:
        pseudonyms: replaces the names of people before anything is stored.
        metrics: of the process.
        guard: admits requests.
        store: the history.
        cluster_limit: admits completions by cluster.
        live: the state, a fold of the history.
        follower: applies the log of completions to ``live``.
        starts: applies recorded starts to ``live``.
        writer: commits completions and predictions.
        recorder: takes answered predictions.
        tuning: runs tuning rounds.
        forecasts: the processes that play queues forward.
        queues: the live queues.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        owns_process: bool = False,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.pseudonyms = read_pseudonyms(settings.pseudonym_key_file)
        self.metrics = Metrics()
        self.guard = Guard(always=not (settings.is_loopback or settings.allow_unauthenticated))
        self.store: Store = open_store(
            settings.database_url.get_secret_value(),
            sqlite_synchronous=settings.sqlite_synchronous,
        )
        self.live = LiveState(settings, self.metrics)
        self.cluster_limit = ClusterLimit(self.live.names, settings.max_clusters)
        self.starts = StartFollower(self.store)
        self.writer = Writer(
            self.store,
            retention_seconds=settings.prediction_retention_days * DAY,
            score_retention_seconds=settings.score_retention_days * DAY,
        )
        self.recorder = PredictionRecorder(
            record=self.writer.record,
            rate=settings.shadow_max_per_second,
            methods=settings.shadow_methods,
            clock=clock,
        )
        self.follower = LogFollower(
            self.live,
            before_learning=self.recorder.flush,
            has_to_store=self.writer.has_to_store,
            clock=clock,
        )
        self.writer.before_acknowledging = self.follower.refresh
        self.tuning = TuningKeeper(
            self.store,
            self.live,
            settings,
            is_catching_up=lambda: self.follower.is_catching_up,
            clock=clock,
        )
        self.forecasts = ForecastProcesses(
            awaited=ForecastProcess(settings.forecast_seconds),
            queues=ForecastProcess(LIVE_SECONDS),
        )
        self.queues = QueueKeeper(
            store=self.store,
            follower=self.follower,
            process=self.forecasts.queues,
            settings=settings,
            metrics=self.metrics,
            clock=clock,
        )
        self._child_processes: list[ChildProcess] = []
        self._owns_process = owns_process
        self._fingerprint: str | None = None
        self._history_length = 0
        self._held_clusters = 0
        self._failure: BaseException | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._counted: dict[Counter, int] = {}
        self._known_erasure = 0
        self._tokens_lock = asyncio.Lock()
        self._tokens_read_at = -inf

    async def start(self) -> None:
        """Start serving; the history is read meanwhile, until ``follower.started``.

        Raises:
            SchemaOutdatedError: the database must be upgraded first.
            StoreUnavailableError: the database cannot be reached.
        """
        loop = asyncio.get_running_loop()
        if self._owns_process:
            bound_threads(loop)
        self.recorder.start(loop)
        await asyncio.to_thread(self.store.check)
        self.guard.update(await asyncio.to_thread(self.store.tokens.read_all))
        self._fingerprint = await asyncio.to_thread(self.store.fingerprint)
        self._history_length = await asyncio.to_thread(self.store.past_runs.count)
        clusters = await asyncio.to_thread(self.store.past_runs.active_clusters)
        self.cluster_limit.expect(clusters[: self.settings.max_clusters])
        self.writer.start()
        self._tasks = [
            asyncio.create_task(self._fold_and_follow()),
            asyncio.create_task(self._keep_house()),
            asyncio.create_task(self._follow_changes()),
            asyncio.create_task(self.tuning.follow_parameters()),
            asyncio.create_task(self.tuning.run_rounds()),
            asyncio.create_task(self.queues.run()),
            asyncio.create_task(self.queues.follow()),
        ]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Write queued completions and predictions, then close all parts."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.forecasts.close()
        for process in self._child_processes:
            process.close()
        self.recorder.flush()
        self.metrics.flush()
        await asyncio.to_thread(self.writer.close)
        self.follower.close()
        await asyncio.to_thread(self.store.close)

    def health(self) -> HealthAnswer:
        """Return the status of the process, its lag, and the reason of a failure."""
        return HealthAnswer(
            status=self._status(),
            lag=self.follower.lag() if self.follower.started else self._history_length,
            stale_seconds=self.follower.stale_seconds(),
            detail=self._why(),
            history=self._fingerprint,
        )

    def _why(self) -> str | None:
        """Return the reason of a bad status, in words without details of the database."""
        if isinstance(self._failure, StoreDamagedError):
            return "The history store is damaged; the log says where."
        if self._failure:
            return "A background task has failed; the log says why."
        if self.follower.error:
            return "The history store cannot be read; the log says why."
        if self.is_read_only:
            return "The history store cannot be written to; the log says why."
        return None

    def _status(self) -> HealthStatus:
        if self._failure:
            return "failed"
        if not self.follower.started:
            return "starting"
        if self.follower.error:
            return "stale"
        return "read-only" if self.is_read_only else "ready"

    @property
    def is_read_only(self) -> bool:
        """Return whether the last write failed: the disk is full or the database locked."""
        return isinstance(self.writer.failure, StoreFullError | StoreUnavailableError)

    def plans_by_predictions(self, cluster: str) -> bool:
        """Return whether a scheduler plans or orders by predictions, as far as this process sees.

        Filters name their mode, not their cluster.
        """
        queue = self.queues.of(cluster)
        plans = queue is not None and queue.snapshot.rules.plans_by == "predictions"
        return plans or not PLANNING_MODES.isdisjoint(self.metrics.requests.filter_modes)

    def keep(self, process: ChildProcess) -> None:
        """Register a child process, which is ended with the worker."""
        self._child_processes.append(process)

    def set_gauges(self) -> None:
        """Set the gauges of this process."""
        self.recorder.flush()
        self.metrics.flush()
        self.metrics.ready.set(self.follower.started)
        self.metrics.lag.set(self.follower.lag())
        self.metrics.stale_seconds.set(self.follower.stale_seconds())
        self.metrics.read_only.set(self.is_read_only)
        self.metrics.queued.set(self.writer.queued)
        self.metrics.clusters.set(len(self.live.names()))
        self.metrics.unserved_clusters.set(max(0, self._held_clusters - len(self.live.names())))
        self.queues.set_gauges()
        for name in list(self.live.names()):
            self.metrics.queues.used(name, self.live.of(name).limit_core_hours())
        self._count(self.metrics.accepted, self.writer.stored.accepted)
        self._count(self.metrics.duplicates, self.writer.stored.duplicates)
        self._count(self.metrics.dropped, self.writer.dropped_predictions)
        self._count(self.metrics.commits, self.writer.commits)

    def _count(self, counter: Counter, total: int) -> None:
        """Bring a counter to a total that another part counts."""
        counter.inc(total - self._counted.get(counter, 0))
        self._counted[counter] = total

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()):
            self._failure = failure
            log.error("a background task failed", exc_info=failure)

    async def _fold_and_follow(self) -> None:
        """Fold the stored history into the live state, then apply new completions and starts."""
        started = time.perf_counter()
        learned, reader = await self._fold_with_retries()
        await asyncio.to_thread(catch_up, learned, reader)  # else two ready workers would differ
        self.recorder.note_erasure(self._known_erasure)
        self.live.adopt(learned)
        self.starts.restart()
        self.follower.start(reader)
        if self._owns_process:
            settle_process()
            self.forecasts.start()
        self.metrics.ready.set(1)
        seconds, clusters = time.perf_counter() - started, len(self.live.names())
        log.info(
            "ready",
            seconds=round(seconds, 3),
            history=self.store.name,
            runs=self._history_length,
            clusters=clusters,
        )
        await asyncio.gather(self.follower.run(), self.starts.run(self.live))

    async def _fold_with_retries(self) -> tuple[LiveState, LogReader]:
        while True:
            try:
                folded = await asyncio.to_thread(self._fold)
            except StoreDamagedError as error:
                self._failure = error
                log.error("the history cannot be folded", reason=str(error))  # noqa: TRY400 - the sentence says it all
                await asyncio.sleep(DAMAGED_SECONDS)
            except StoreError as error:
                log.warning("the history cannot be folded yet", reason=str(error))
                await asyncio.sleep(HOUSEKEEPING_SECONDS)
            else:
                if isinstance(self._failure, StoreDamagedError):  # it was restored
                    self._failure = None
                return folded

    def _fold(self) -> tuple[LiveState, LogReader]:
        """Return a new state from the history, and a reader of later runs; runs in a thread."""
        live = LiveState(self.settings, self.metrics)
        if not self.follower.started:
            live.warm_up_methods()
        self._known_erasure = self.store.erasures.last()
        served = self._served_clusters()
        reader, (recent, older) = self.store.past_runs.warm_start(
            live.memories, self.clock(), served
        )
        self.starts.learn(live, served)
        live.remember(recent, older, from_store(self.store, self.settings))
        live.rank_runs()
        return live, reader

    def _served_clusters(self) -> list[str]:
        """Return the clusters to serve: up to the limit, those with the latest runs first."""
        stored, most = self.store.past_runs.active_clusters(), self.settings.max_clusters
        self._held_clusters = len(stored)
        if surplus := surplus_sentence(len(stored), most):
            log.warning(surplus, held=len(stored), served=most, left_out=stored[most:][:LISTED])
        return stored[:most]

    async def _follow_changes(self) -> None:
        """Read the history anew whenever a part was deleted or runs came late, until cancelled."""
        late_from = 0.0
        while True:
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            if not self.follower.started:
                continue
            began = time.perf_counter()
            with suppress(StoreError):
                if await asyncio.to_thread(self.store.erasures.last) != self._known_erasure:
                    await self._learn_anew("a part of the history was erased")
                elif self.live.late and began >= late_from:
                    await self._learn_anew("runs came late")
                    late_from = began + LATE_SHARE * (time.perf_counter() - began)

    async def _learn_anew(self, reason: str) -> None:
        """Replace the state by a new one from the present history; answers come from the old one.

        Args:
            reason: for the log.
        """
        began, late, known = time.perf_counter(), self.live.late, self._known_erasure
        learned, reader = await self._fold_with_retries()
        await asyncio.to_thread(catch_up, learned, reader)
        self.recorder.note_erasure(self._known_erasure)
        self.live.adopt(learned)
        self.starts.restart()
        before = self.follower.restart(reader)
        if self._known_erasure != known:
            await self._forget()
        if before is not None:
            await asyncio.to_thread(before.close)
        seconds = round(time.perf_counter() - began, 3)
        log.info("learned anew", reason=reason, late=late, seconds=seconds)

    async def _forget(self) -> None:
        """Forget what was erased, outside of the state."""
        self.pseudonyms.forget()
        self.queues.estimates.forget()
        for process in self._child_processes:
            await process.forget()
        if self._owns_process:
            gc.freeze()

    async def _keep_house(self) -> None:
        """Read tokens and set gauges, until cancelled: changes of tokens count within seconds."""
        while True:
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            self.set_gauges()
            self.cluster_limit.release()
            await self.find_new_tokens()

    async def find_new_tokens(self) -> None:
        """Return after a read of the tokens that began after this call; a failed one counts.

        Callers that wait together share a read. Reads go one at a time, so that none replaces a
        later one, and begin at least TOKENS_ANEW_SECONDS apart, so that guesses cost no more.
        """
        called_at = time.monotonic()
        async with self._tokens_lock:
            if self._tokens_read_at >= called_at:
                return
            await asyncio.sleep(self._tokens_read_at + TOKENS_ANEW_SECONDS - time.monotonic())
            began = time.monotonic()
            with suppress(StoreError):
                self.guard.update(await asyncio.to_thread(self.store.tokens.read_all))
            self._tokens_read_at = began


def catch_up(live: LiveState, reader: LogReader) -> None:
    """Apply the completions that were stored since ``live`` was made."""
    reader.refresh()
    for _ in range(CATCHING_UP_ROUNDS):
        if not (completions := reader.read(CATCHING_UP_SLICE)):
            return
        live.apply(completions)


def warm_up(settings: Settings) -> None:
    """Compile the methods, with the code that runs beside them."""
    LiveState(settings, Metrics()).warm_up_methods()
