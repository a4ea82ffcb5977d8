"""The live queues as the store has them, for a process that only shows them."""

from service.queues.outlook import LiveQueue
from service.store import Queues
from service.worker.queues.merging import unpacked


class StoredQueues:
    """Knows the queues that it was asked about, and reads those again that have changed since.

    Args:
        queues: of the store.
    """

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._known: dict[str, tuple[int, LiveQueue]] = {}

    def of(self, cluster: str) -> LiveQueue | None:
        """The queue of a cluster, with its forecast; None if none has been stored.

        Raises:
            StoreUnavailableError: it cannot be read now.
        """
        version = self._queues.versions().get(cluster)
        known = self._known.get(cluster)
        if known is not None and known[0] == version:
            return known[1]
        found = None if version is None else self._queues.read(cluster)
        if found is None:
            self._known.pop(cluster, None)
            return None
        self._known[cluster] = (found[0], unpacked(found[1], cluster))
        return self._known[cluster][1]
