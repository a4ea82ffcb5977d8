"""The queues that this process knows, and the task that keeps their forecasts current."""

from service.queues.outlook import LiveQueue
from service.queues.snapshot import QueueSnapshot


class QueueKeeper:
    """Holds the latest queue of each cluster."""

    def __init__(self) -> None:
        self._queues: dict[str, LiveQueue] = {}

    def take(self, snapshot: QueueSnapshot, now: float) -> None:
        """Put a queue in the place of the one before; what was forecast stays for the present."""
        before = self._queues.get(snapshot.cluster)
        if before is None:
            self._queues[snapshot.cluster] = LiveQueue(snapshot=snapshot, received_at=now)
            return
        before.snapshot, before.received_at = snapshot, now

    def of(self, cluster: str) -> LiveQueue | None:
        """The queue of a cluster, if one was handed over."""
        return self._queues.get(cluster)

    @property
    def all(self) -> list[LiveQueue]:
        """The queues by cluster."""
        return [self._queues[name] for name in sorted(self._queues)]
