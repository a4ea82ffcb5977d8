"""The nodes that sinfo shows: pools of partitions, and what a job of each partition takes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from service.adapters.slurm_fields import gpus_in_gres
from service.live_queue.taken_processors import QueueNodes
from terminal.words import clock

WHOLE_NODES = "EXCLUSIVE"
"""OverSubscribe of partitions whose jobs take whole nodes."""


class NodeProcessors(Struct, frozen=True, kw_only=True):
    """A node and the partitions that it is in.

    Attributes:
        usable: processors that run jobs or could; not those that are down or drained.
        processors: all of them.
        sockets, cores, gpus: numbers of them, as configured; 0 where sinfo does not show them.
        partitions: names of all, and of those whose jobs take whole nodes.
    """

    usable: int
    processors: int = 0
    sockets: int = 0
    cores: int = 0
    gpus: int = 0
    partitions: frozenset[str]
    whole: frozenset[str] = frozenset()


class Machine(Struct, frozen=True, kw_only=True):
    """The nodes of a cluster.

    Attributes:
        longest: largest limits of partitions (MaxTime), in seconds, where there are any.
        takes: what a job takes at least: ``cpu``, ``core``, ``socket`` or ``node``.
        trouble: reason why the nodes are not known.
    """

    nodes: dict[str, NodeProcessors] = field(default_factory=dict)
    longest: Mapping[str, float] = field(default_factory=dict)
    takes: str = "cpu"
    trouble: str | None = None

    def queue_nodes(self) -> list[QueueNodes]:
        """Return what a job of each partition takes, by the most frequent kind of its nodes."""
        every = frozenset[str]().union(*(node.partitions for node in self.nodes.values()))
        return [self._queue_nodes(name) for name in sorted(every)]

    def _queue_nodes(self, partition: str) -> QueueNodes:
        nodes = [node for node in self.nodes.values() if partition in node.partitions]
        ((kind, _),) = Counter(
            (node.processors, part_of(node, self.takes)) for node in nodes
        ).most_common(1)
        per_gpu = Counter(node.processors // node.gpus for node in nodes if node.gpus)
        whole = self.takes == "node" or any(partition in node.whole for node in nodes)
        return QueueNodes(
            queue=partition,
            processors=kind[0],
            unit=kind[1],
            whole=whole,
            longest=self.longest.get(partition),
            per_gpu=per_gpu.most_common(1)[0][0] if per_gpu else 0,
        )


def part_of(node: NodeProcessors, takes: str) -> int:
    """Return the processors of the smallest part of a node that is given to a job.

    Cores of two threads count as one processor each where the node is configured so.
    """
    parts = {"core": node.sockets * node.cores, "socket": node.sockets}.get(takes, 0)
    return max(1, node.processors // parts) if parts else 1


def takes_of(select_type: str, parameters: str) -> str:
    """Return what a job takes at least, by SelectType and SelectTypeParameters."""
    if "linear" in select_type.lower():
        return "node"
    words = parameters.upper()
    found = (part for part in ("socket", "core") if f"CR_{part.upper()}" in words)
    return next(found, "cpu")


def read_nodes(printed: str) -> dict[str, NodeProcessors]:
    """Return the nodes by name; unreadable lines are left out."""
    nodes: dict[str, NodeProcessors] = {}
    for line in printed.splitlines():
        name, partition, counts, shared, shape, _, gres = _words(line)[:7]
        numbers = counts.split("/")
        if not name or len(numbers) != 4 or not all(part.isdecimal() for part in numbers):
            continue
        sockets, cores, _ = sizes if len(sizes := _whole(shape.split(":"))) == 3 else (0, 0, 0)
        node = nodes.get(name)
        whole = frozenset({partition} if shared == WHOLE_NODES else ())
        nodes[name] = NodeProcessors(
            usable=int(numbers[0]) + int(numbers[1]),  # allocated and idle
            processors=int(numbers[3]),
            sockets=sockets,
            cores=cores,
            gpus=gpus_in_gres(gres),
            partitions=(node.partitions if node else frozenset()) | {partition},
            whole=(node.whole if node else frozenset()) | whole,
        )
    return nodes


def read_longest(printed: str) -> dict[str, float]:
    """Return the largest limits of partitions in seconds; those without one are left out."""
    lines = map(_words, printed.splitlines())
    written = {line[1]: clock(line[5]) for line in lines if line[5]}
    return {name: seconds for name, seconds in written.items() if seconds}


def _words(line: str) -> list[str]:
    """Return what sinfo shows of a node; empty words for what it does not show."""
    return [*line.strip().split("|"), *[""] * 7]


def _whole(words: Iterable[str]) -> list[int]:
    return [int(word) for word in words if word.isdecimal()]


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
