"""Hands the queue and the machine, as squeue and sinfo show them, over to the service."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import quote

from msgspec import Struct

from service.slurm_updater.slurm import ControllerSettings, Slurm, SlurmError
from service.slurm_updater.squeue import UnreadableQueueError, read_live_queue
from terminal.client import Client, RemoteError

NOT_ALLOWED = (
    "the queue is not handed over: the token needs the scopes predict and ingest "
    "(walltimed token issue updater --scope predict --scope ingest)"
)


class HandOver:
    """Sends the queue and the machine to the service, in the place of what was sent before.

    Args:
        slurm: the commands.
        cluster: name of the queue; None is Slurm's ClusterName.
    """

    def __init__(
        self, slurm: Slurm, client: Client, cluster: str | None, *, clock: Callable[[], float]
    ) -> None:
        self._slurm = slurm
        self._client = client
        self._cluster = cluster
        self._clock = clock

    def send(self, site: ControllerSettings, shown: IO[bytes]) -> str | None:
        """Send what squeue has just shown, and what sinfo shows.

        Returns:
            A sentence about the obstacle, if there is one.

        Raises:
            OSError: the service cannot be reached.
        """
        name = self._cluster or site.cluster
        taken_at = self._clock()
        try:
            nodes = read_nodes(self._slurm.shown_nodes())
            pools = pools_of(nodes)
            if not pools:
                return "the queue is not handed over: sinfo shows no processors that run jobs"
            jobs = read_live_queue(shown, name, down_partitions(nodes))
        except (SlurmError, UnreadableQueueError) as error:
            return f"the queue is not handed over: {error}"
        body = {"taken_at": taken_at, "pools": pools, **site.rules, **jobs}
        try:
            self._client.call("PUT", f"/v1/clusters/{quote(name, safe='')}/snapshot", body)
        except RemoteError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                return NOT_ALLOWED
            return f"the queue is not handed over: {error}"
        return None


class NodeProcessors(Struct, frozen=True, kw_only=True):
    """A node and the partitions that it is in.

    Attributes:
        usable: processors that run jobs or could; not those that are down or drained.
    """

    usable: int
    partitions: frozenset[str]


def read_nodes(printed: str) -> dict[str, NodeProcessors]:
    """Return the nodes by name; unreadable lines are left out."""
    nodes: dict[str, NodeProcessors] = {}
    for line in printed.splitlines():
        name, _, rest = line.strip().partition("|")
        partition, _, counts = rest.partition("|")
        numbers = counts.split("/")
        if not name or len(numbers) != 4 or not all(part.isdecimal() for part in numbers):
            continue
        node = nodes.get(name)
        nodes[name] = NodeProcessors(
            usable=int(numbers[0]) + int(numbers[1]),  # allocated and idle
            partitions=(node.partitions if node else frozenset()) | {partition},
        )
    return nodes


def pools_of(nodes: Mapping[str, NodeProcessors]) -> list[dict[str, Any]]:
    """Return the pools of a snapshot: partitions that share nodes are one pool.

    The largest pool comes first: the service puts jobs of unknown partitions there.
    """
    groups = joined(node.partitions for node in nodes.values())
    pools: list[dict[str, Any]] = [
        {
            "processors": sum(n.usable for n in nodes.values() if n.partitions <= group),
            "queues": sorted(group),
        }
        for group in groups
    ]
    usable = [pool for pool in pools if pool["processors"] > 0]
    return sorted(usable, key=lambda pool: (-pool["processors"], pool["queues"]))


def joined(sets: Iterable[frozenset[str]]) -> Sequence[frozenset[str]]:
    """Return the sets, with all sets that share an element merged."""
    groups: list[frozenset[str]] = []
    for each in sets:
        touching = [group for group in groups if group & each]
        groups = [group for group in groups if not group & each]
        groups.append(frozenset().union(each, *touching))
    return groups


def down_partitions(nodes: Mapping[str, NodeProcessors]) -> frozenset[str]:
    """Return the partitions without a processor that can run a job."""
    every = frozenset[str]().union(*(node.partitions for node in nodes.values()))
    return every.difference(*(node.partitions for node in nodes.values() if node.usable))
