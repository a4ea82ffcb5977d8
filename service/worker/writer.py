"""The writer thread: completions that gather during a commit share the next one.

Clusters are admitted up to a limit before their completions are queued.
"""

import asyncio
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from math import inf

import structlog
from msgspec import Struct

from service.errors import TooManyClustersError
from service.store import (
    Ingested,
    RecordedPrediction,
    RefusedRecordError,
    ReportedCompletion,
    Store,
    StoreError,
    StoreUnavailableError,
)

PLACE_SECONDS = 600.0
"""Seconds for which a place is reserved for a cluster without stored completions."""


class ClusterLimit:
    """Admits completions of clusters with history, and of new clusters up to a limit.

    A place is reserved for an admitted cluster until it has a history, so that a batch that names
    thousands of clusters is refused before any of it is stored. If nothing could be stored, the
    place is free again after ``PLACE_SECONDS``.

    Args:
        served: returns the clusters with history that predictions are made for.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        served: Callable[[], Collection[str]],
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._served = served
        self._clock = clock
        self._reserved: dict[str, float] = {}

    def admit(self, cluster: str, field: str = "cluster") -> None:
        """Admit a completion of ``cluster``, which its ``field`` names.

        Raises:
            TooManyClustersError: the cluster is new, and the limit is reached.
        """
        if cluster in self._reserved:
            return
        served = self._served()
        if cluster in served:
            return
        if len(served) + sum(each not in served for each in self._reserved) >= self._most:
            raise TooManyClustersError(cluster, self._most, field)
        self._reserved[cluster] = self._clock()

    def expect(self, clusters: Iterable[str]) -> None:
        """Reserve places for clusters whose history is about to be read."""
        self._reserved.update(dict.fromkeys(clusters, self._clock()))

    def release(self) -> None:
        """Free the places of clusters that have a history by now, or stored nothing in time."""
        served, latest = self._served(), self._clock() - PLACE_SECONDS
        self._reserved = {
            name: since
            for name, since in self._reserved.items()
            if name not in served and since > latest
        }


def surplus_sentence(held: int, most: int) -> str | None:
    """Return a remedy for a history of more clusters than are served; None if it has fewer."""
    if held <= most:
        return None
    return (
        f"The history holds {held} clusters and predictions are made for {most} of them, those "
        f"whose runs ended last: raise the setting max_clusters to {held}, or delete those that "
        "nobody needs by `walltimed forget --cluster NAME`."
    )


log = structlog.get_logger()

COMPLETIONS_QUEUED = 50_000
"""Largest number of waiting completions; more are refused, as they could not be stored in time."""

PREDICTIONS_BUFFERED = 20_000
"""Largest number of waiting predictions; more are dropped and counted."""

PATIENCE_SECONDS = 0.25
"""Seconds for which a prediction waits to share a commit."""

_COMPLETIONS_AT_ONCE = 1000  # in a transaction, unless one group alone is larger
_HOUSEKEEPING_SECONDS = 3600.0

Acknowledgement = Ingested | Exception


class _Waiting(Struct, frozen=True):
    """Completions whose sender waits for the commit."""

    group: Sequence[ReportedCompletion]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Ingested]


class Writer:
    """Commits completions and predictions in groups.

    If a commit takes 4 ms, 64 simultaneous requests are acknowledged in 5 ms instead of 250 ms.

    A prediction is committed before every completion that was queued after it.

    Args:
        store: with an up-to-date schema.
        retention_seconds: age at which predictions whose job never ended are deleted.
        score_retention_seconds: age at which scores by day are deleted.

    Attributes:
        before_acknowledging: called in the writer's thread, between a commit with completions and
            its acknowledgement; a log reader's ``refresh`` belongs here.
        queued: completions waiting for their commit.
        stored: numbers of completions that are durable, also of senders that have given up.
        commits: transactions committed.
        dropped_predictions: predictions dropped for lack of room, or refused by the database.
        failure: error of the last transaction; None if it succeeded.
    """

    def __init__(
        self,
        store: Store,
        *,
        retention_seconds: float = 90 * 86400.0,
        score_retention_seconds: float = inf,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.before_acknowledging: Callable[[], None] = lambda: None
        self.queued = 0
        self.stored = Ingested(accepted=0, duplicates=0)
        self.commits = 0
        self.dropped_predictions = 0
        self.failure: Exception | None = None
        self._store = store
        self._retention_seconds = retention_seconds
        self._score_retention_seconds = score_retention_seconds
        self._clock = clock
        self._unacknowledged = 0
        self._completions: deque[_Waiting] = deque()
        self._predictions: deque[RecordedPrediction] = deque()
        self._changed = threading.Condition()
        self._closing = True
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; a writer that has not been started takes nothing."""
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    async def acknowledged(self, group: Sequence[ReportedCompletion]) -> Ingested:
        """Queue completions and wait until all of them are durable.

        Raises:
            StoreUnavailableError: too many completions wait, the database is away, or the writer is
                closed or not started. Nothing was acknowledged; the same call may succeed later.
            StoreFullError: the database has no room.
            RefusedRecordError: the database cannot hold a value, so nothing was stored.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(group, loop, loop.create_future())
        self._unacknowledged += len(group)
        try:
            self._queue(waiting)
            return await waiting.future
        finally:
            self._unacknowledged -= len(group)

    def has_to_store(self) -> bool:
        """Return whether the sender of a completion still waits."""
        return self._unacknowledged > 0

    def record(self, prediction: RecordedPrediction) -> None:
        """Queue a prediction and return at once; the next flush (at most 0.25 s away) takes it."""
        if len(self._predictions) >= PREDICTIONS_BUFFERED or self._closing:
            self.dropped_predictions += 1
        else:
            self._predictions.append(prediction)

    def close(self) -> None:
        """Commit queued completions and predictions, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _queue(self, waiting: _Waiting) -> None:
        with self._changed:
            if self._closing:
                raise StoreUnavailableError("The service is starting or stopping.")
            if self.queued and self.queued + len(waiting.group) > COMPLETIONS_QUEUED:
                raise StoreUnavailableError(f"{self.queued} completions wait for the database.")
            self.queued += len(waiting.group)
            self._completions.append(waiting)
            self._changed.notify()

    def _run(self) -> None:
        housekeeping_at = 0.0
        while not self._is_done():
            waiting = self._next_completions()
            self._flush(waiting, self._next_predictions())
            if time.monotonic() >= housekeeping_at:
                housekeeping_at = time.monotonic() + _HOUSEKEEPING_SECONDS
                self._drop_stale()

    def _is_done(self) -> bool:
        with self._changed:
            return self._closing and not self._completions and not self._predictions

    def _next_completions(self) -> list[_Waiting]:
        """Return the next groups to commit, oldest first; none if only predictions wait."""
        with self._changed:
            if not self._completions and not self._closing:
                self._changed.wait(PATIENCE_SECONDS)
            taken: list[_Waiting] = []
            size = 0
            while self._completions and (not taken or size < _COMPLETIONS_AT_ONCE):
                taken.append(self._completions.popleft())
                size += len(taken[-1].group)
            self.queued -= size
            return taken

    def _next_predictions(self) -> list[RecordedPrediction]:
        return [self._predictions.popleft() for _ in range(len(self._predictions))]

    def _flush(
        self, waiting: Sequence[_Waiting], predictions: Sequence[RecordedPrediction]
    ) -> None:
        """Commit the groups in one transaction, and answer the waiting senders."""
        # After a failure an empty transaction tells when the database is back. It needs no room, so
        # it cannot tell about a full disk.
        is_away = isinstance(self.failure, StoreUnavailableError)
        if not waiting and not predictions and not is_away:
            return
        try:
            counts = self._write(waiting, predictions)
        except RefusedRecordError as error:
            self._flush_apart(waiting, predictions, error)
        except StoreError as error:
            self._give_up(waiting, predictions, error)
        except Exception as error:
            log.exception("the writer failed")
            self.dropped_predictions += len(predictions)
            self._give_up(waiting, (), error)
        else:
            _answer(list(zip(waiting, counts, strict=True)))

    def _write(
        self, waiting: Sequence[_Waiting], predictions: Sequence[RecordedPrediction]
    ) -> list[Ingested]:
        counts = self._store.write([item.group for item in waiting], predictions)
        self.commits += 1
        self.failure = None
        if waiting:
            self.stored = sum(counts, start=self.stored)
            self.before_acknowledging()
        return counts

    def _flush_apart(
        self,
        waiting: Sequence[_Waiting],
        predictions: Sequence[RecordedPrediction],
        error: RefusedRecordError,
    ) -> None:
        """Halve a batch that the database refuses, so that a bad value affects only its sender."""
        if len(waiting) + len(predictions) == 1:
            self.dropped_predictions += len(predictions)
            _answer([(item, error) for item in waiting])
            return
        middle = len(predictions) // 2 if len(predictions) > 1 else len(predictions)
        half = len(waiting) // 2 if not predictions else 0
        self._flush(waiting[:half], predictions[:middle])
        self._flush(waiting[half:], predictions[middle:])

    def _give_up(
        self,
        waiting: Sequence[_Waiting],
        predictions: Sequence[RecordedPrediction],
        error: Exception,
    ) -> None:
        """Answer the senders with an error; keep the predictions for the next attempt."""
        self.failure = error
        _answer([(item, error) for item in waiting])
        if self._closing:
            self.dropped_predictions += len(predictions)
        else:
            self._predictions.extendleft(reversed(predictions))

    def _drop_stale(self) -> None:
        """Delete expired rows; errors are logged, so that the writer's thread survives."""
        try:
            self._store.drop_stale_predictions(self._clock() - self._retention_seconds)
            self._store.starts.drop_before(self._clock() - self._retention_seconds)
            self._store.scores.drop_daily(self._clock() - self._score_retention_seconds)
        except StoreError:
            pass  # the next housekeeping tries again
        except Exception:
            log.exception("expired rows could not be deleted")


def _answer(acknowledgements: Sequence[tuple[_Waiting, Acknowledgement]]) -> None:
    """Hand over the outcomes, waking each event loop once."""
    by_loop = defaultdict(list)
    for waiting, outcome in acknowledgements:
        by_loop[waiting.loop].append((waiting.future, outcome))
    for loop, settled in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed, with its waiting senders
            loop.call_soon_threadsafe(_settle, settled)


def _settle(settled: Sequence[tuple[asyncio.Future[Ingested], Acknowledgement]]) -> None:
    for future, outcome in settled:
        if future.done():  # the sender has gone
            continue
        if isinstance(outcome, Ingested):
            future.set_result(outcome)
        else:
            future.set_exception(_one_more(outcome))


def _one_more(error: Exception) -> Exception:
    """Return a copy of an error: a traceback grows in every task that raises it."""
    try:
        return type(error)(*error.args)
    except TypeError:  # its constructor takes other arguments
        return RuntimeError(f"{type(error).__name__}: {error}")
