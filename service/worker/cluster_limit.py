"""Bounds the number of clusters that a history may have."""

import time
from collections.abc import Callable, Collection, Iterable

from service.errors import TooManyClustersError

PATIENCE_SECONDS = 600.0
"""How long a place is kept for a cluster of which nothing has been stored yet."""


class ClusterLimit:
    """Lets completions in of the clusters that are known, and of new ones while there is room.

    A cluster that was let in keeps its place until it is known, so that a batch that names
    thousands of clusters is refused before any of it has been stored; if it could not be stored,
    the place is free again after ``PATIENCE_SECONDS``.

    Args:
        known: the clusters with history that predictions are made for.
        most: clusters that there may be.
        clock: seconds, from anywhere on.
    """

    def __init__(
        self,
        known: Callable[[], Collection[str]],
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._known = known
        self._clock = clock
        self._begun: dict[str, float] = {}

    def admit(self, cluster: str, field: str = "cluster") -> None:
        """Let a completion of ``cluster`` in, which it names in ``field``.

        Raises:
            TooManyClustersError: the cluster is new, and there is no room for another one.
        """
        if cluster in self._begun:
            return
        known = self._known()
        if cluster in known:
            return
        if len(known) + sum(each not in known for each in self._begun) >= self._most:
            raise TooManyClustersError(cluster, self._most, field)
        self._begun[cluster] = self._clock()

    def expect(self, clusters: Iterable[str]) -> None:
        """Keep places for clusters that are about to be known."""
        self._begun.update(dict.fromkeys(clusters, self._clock()))

    def release(self) -> None:
        """Take back the places of those that are known by now, or were not to be stored."""
        known, latest = self._known(), self._clock() - PATIENCE_SECONDS
        self._begun = {
            name: since
            for name, since in self._begun.items()
            if name not in known and since > latest
        }


def surplus_sentence(held: int, most: int) -> str | None:
    """What to do about a history of more clusters than are served; None if it is not."""
    if held <= most:
        return None
    return (
        f"The history holds {held} clusters and predictions are made for {most} of them, those "
        f"whose runs ended last: raise the setting max_clusters to {held}, or delete those that "
        "nobody needs by `walltimed forget --cluster NAME`."
    )
