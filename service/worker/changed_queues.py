"""Queues with starts or ends that were reported since they were forecast, and when they are due."""

import asyncio
import time
from collections.abc import Callable, Container

from service.live_queue.reported_changes import ReportedChanges, Run, with_changes
from service.live_queue.snapshot import QueueSnapshot
from service.store import Queues

CLOCKS_APART = 60.0
"""Most seconds by which the clocks of two machines differ."""

CHANGES_SECONDS = 1.0
"""Seconds in which changes gather before a forecast."""

CHANGES_REST = 4.0
"""Least time between a forecast and one for later changes, in times of what the former took."""


class ChangedQueues:
    """The clusters whose queues have changed; each rests for a multiple of its forecast's time.

    Args:
        wake: called on the event loop when a queue may be due.
        known: collections of clusters with a queue; changes of other clusters are not noted.
    """

    def __init__(self, wake: Callable[[], None], *known: Container[str]) -> None:
        self._known = known
        self._wake = wake
        self._changed: set[str] = set()
        self._rests_until: dict[str, float] = {}

    def note(self, clusters: set[str]) -> None:
        """Note that starts or ends of jobs were stored; changes that come together are one."""
        known = {cluster for cluster in clusters if any(cluster in each for each in self._known)}
        new = known - self._changed
        if new:
            self._changed |= new
            self._wake_in(CHANGES_SECONDS)

    def due(self) -> set[str]:
        """Return the clusters to forecast now."""
        now = time.monotonic()
        pauses = {each: self._rests_until.get(each, now) - now for each in self._changed}
        for pause in pauses.values():
            if pause > 0:
                self._wake_in(pause)
        return {cluster for cluster, pause in pauses.items() if pause <= 0}

    def begin(self, cluster: str) -> None:
        """Note that the changes of a cluster are about to be read."""
        self._changed.discard(cluster)

    def end(self, cluster: str, began: float) -> None:
        """Let a queue rest after its forecast, which began at a time of the monotonic clock."""
        now = time.monotonic()
        self._rests_until[cluster] = now + CHANGES_REST * (now - began)

    def _wake_in(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._wake)


def as_reported(
    snapshot: QueueSnapshot, queues: Queues, *, now: float, max_age: float
) -> QueueSnapshot:
    """Return the queue with the starts and ends that were stored since; reads the store.

    Args:
        max_age: seconds after which a queue is old: earlier changes are not looked for.
    """
    after = max(snapshot.taken_at, now - max_age) - CLOCKS_APART
    until = now + CLOCKS_APART
    runs = queues.runs_ended(snapshot.cluster, after, until)
    reported = ReportedChanges(
        starts=queues.starts_since(snapshot.cluster, after, until),
        runs={job_id: Run(*times) for job_id, times in runs.items()},
    )
    return with_changes(snapshot, reported, now)
