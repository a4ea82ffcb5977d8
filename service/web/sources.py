"""Sources of pages, in the process that makes them: the store and a cache of its answers."""

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from service.contract.answers import TuningAnswer
from service.operations.queue_showing import ShowingQueue
from service.operations.request_reports import ReportingRequests
from service.operations.tuning import answer_of
from service.pseudonyms import read_pseudonyms
from service.settings import Settings
from service.store import MethodScore, Side, Store
from service.worker.queue_keeper import StoredQueues

T = TypeVar("T")

MOST = 1000
"""Most answers in the cache; beyond that it is emptied."""


class AnswerCache:
    """A cache of answers for some seconds: ten open pages cost as much as one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._entries: dict[Hashable, tuple[float, Any]] = {}

    def get(self, key: Hashable, seconds: float, read: Callable[[], T]) -> T:
        """Return what ``read`` returned, not older than ``seconds``."""
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry[0] >= seconds:
            value = read()
            if len(self._entries) >= self._most:
                self._entries.clear()
            self._entries[key] = entry = (self._clock(), value)
        answer: T = entry[1]
        return answer


class PageSources:
    """Store and operations that the views of pages read.

    Args:
        store: of this process alone.

    Attributes:
        store: the history.
        cache: answers that were read lately.
        queues: shows live queues.
        reports: compares requests with runtimes.
    """

    def __init__(
        self, settings: Settings, store: Store, clock: Callable[[], float] = time.time
    ) -> None:
        pseudonyms = read_pseudonyms(settings.pseudonym_key_file)
        self.settings = settings
        self.store = store
        self.clock = clock
        self.cache = AnswerCache()
        self.queues = ShowingQueue(
            settings, find_queue=StoredQueues(store.queues).of, pseudonyms=pseudonyms, clock=clock
        )
        self.reports = ReportingRequests(store, pseudonyms=pseudonyms, clock=clock)

    def scores(self, cluster: str, side: Side, *, days: int, fresh: float) -> list[MethodScore]:
        """Return daily scores of a cluster, not older than ``fresh`` seconds."""
        return self.cache.get(
            ("scores", cluster, side, days),
            fresh,
            lambda: self.store.scores.daily(cluster, side, days=days),
        )

    def rounds(self, cluster: str) -> Sequence[TuningAnswer]:
        """Return the latest rounds of tuning of a cluster, newest first."""
        return [answer_of(each) for each in self.store.tunings.of_cluster(cluster)]
