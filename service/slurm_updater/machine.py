"""The processors that can run jobs, by partition, as ``sinfo`` counts them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

FORMAT = "%N|%R|%C"
"""One line for each node and partition: its name, the partition, and processors by use."""


class NodeProcessors(Struct, frozen=True, kw_only=True):
    """A node and the partitions that it is in.

    Attributes:
        usable: processors that run jobs or could; not those that are down or drained.
        partitions: names.
    """

    usable: int
    partitions: frozenset[str]


def read_nodes(printed: str) -> dict[str, NodeProcessors]:
    """The nodes by name; a line that cannot be read is left out."""
    nodes: dict[str, NodeProcessors] = {}
    for line in printed.splitlines():
        name, _, rest = line.strip().partition("|")
        partition, _, counts = rest.partition("|")
        numbers = counts.split("/")
        if not name or len(numbers) != 4 or not all(part.isdecimal() for part in numbers):
            continue
        known = nodes.get(name)
        nodes[name] = NodeProcessors(
            usable=int(numbers[0]) + int(numbers[1]),  # allocated and idle
            partitions=(known.partitions if known else frozenset()) | {partition},
        )
    return nodes


def pools_of(nodes: Mapping[str, NodeProcessors]) -> list[dict[str, Any]]:
    """The machine as the service takes it: partitions that share nodes are one pool.

    The largest pool comes first: it takes jobs whose partition nobody knows.
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
    """The sets, those that have anything in common made one."""
    groups: list[frozenset[str]] = []
    for each in sets:
        touching = [group for group in groups if group & each]
        groups = [group for group in groups if not group & each]
        groups.append(frozenset().union(each, *touching))
    return groups


def down_partitions(nodes: Mapping[str, NodeProcessors]) -> frozenset[str]:
    """The partitions of which no processor can run a job."""
    every = frozenset[str]().union(*(node.partitions for node in nodes.values()))
    return every.difference(*(node.partitions for node in nodes.values() if node.usable))
