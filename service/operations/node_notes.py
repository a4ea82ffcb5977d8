"""Since when forecasts have said the same of a job's nodes."""

from collections import OrderedDict
from collections.abc import Mapping

MOST_QUEUES = 100
"""Queues that are remembered; the one that was longest not asked about is forgotten first."""

Nodes = tuple[str, ...]


class NodeNotes:
    """The last forecast nodes of every waiting job, by cluster and policy.

    T_node is the time between the last change of a job's forecast nodes and its start (Klusáček
    & Soysal 2020, section 4.2). Each process keeps its own notes: they begin with its first
    forecast.
    """

    def __init__(self) -> None:
        self._queues: OrderedDict[tuple[str, str], dict[str, tuple[Nodes, float]]] = OrderedDict()

    def since(
        self, queue: tuple[str, str], now: float, nodes: Mapping[str, Nodes]
    ) -> Mapping[str, float]:
        """When each job's nodes were last forecast anew, by job id; what waits no more is lost.

        Args:
            queue: cluster and policy.
            now: of the forecast.
            nodes: that were just forecast, by job id.
        """
        known = self._queues.pop(queue, {})
        notes = {}
        for job, places in nodes.items():
            before, since = known.get(job, (None, now))
            notes[job] = (places, since if before == places else now)
        self._queues[queue] = notes
        if len(self._queues) > MOST_QUEUES:
            self._queues.popitem(last=False)
        return {job: since for job, (_, since) in notes.items()}
