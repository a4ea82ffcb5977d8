"""Names the clusters that are known, and the one that is meant where none is named."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress

from service.store import StoreError
from service.worker.worker import Worker


class KnownClusters:
    """Finds the names of clusters with runs, predictions or a queue.

    Args:
        worker: whose history and queues are meant.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @property
    def queued(self) -> list[str]:
        """Return the clusters that have a queue."""
        return [queue.snapshot.cluster for queue in self._worker.queues.all]

    async def names(self) -> list[str]:
        """Return all names, sorted; those of predictions without runs only if the store answers."""
        known = {*self._worker.live.names, *self.queued}
        with suppress(StoreError):
            known |= {*await asyncio.to_thread(self._stored)}
        return sorted(known)

    def _stored(self) -> list[str]:
        runs = self._worker.store.past_runs
        return [*runs.clusters(), *runs.predicted_clusters()]


def usual_cluster(names: Sequence[str], queued: Collection[str]) -> str | None:
    """Return the only cluster, else the only one with a queue; None without any or with several."""
    for found in (names, queued):
        if len(found) == 1:
            return next(iter(found))
    return None
