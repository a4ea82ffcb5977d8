"""Limits the number of clusters of a history."""

import time
from collections.abc import Callable, Collection, Iterable

from service.errors import TooManyClustersError

PATIENCE_SECONDS = 600.0
"""Seconds for which a place is reserved for a cluster without stored completions."""


class ClusterLimit:
    """Admits completions of clusters with history, and of new clusters up to a limit.

    A place is reserved for an admitted cluster until it has a history, so that a batch that names
    thousands of clusters is refused before any of it is stored. If nothing could be stored, the
    place is free again after ``PATIENCE_SECONDS``.

    Args:
        served: returns the clusters with history that predictions are made for.
        most: largest number of clusters.
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
        served, latest = self._served(), self._clock() - PATIENCE_SECONDS
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
