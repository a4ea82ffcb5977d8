"""Reads partitions: queues with processors of their own.

Queues that share a node share a machine, so that no node is counted twice: they become one
partition with the processors of all their nodes. Formats: ``sinfo --json``, ``scontrol show
nodes --json``, ``pbsnodes -F json``, or lines such as ``batch 4096``. Nodes that are down
are counted too, because they were up for most of the log. From a log alone, the size of a queue is
the most processors that its jobs held at once.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator.traces.trace import Trace
from terminal.exit_codes import ExitCode
from terminal.files import read_bytes

OTHER_QUEUES = "(other queues)"
"""Name of the partition of all queues without nodes of their own."""

FROM_LOG = "queues"
"""Option value in place of a file: the partitions are the queues of the log."""

MOST_HELD = "the most that jobs of the log held at once"
"""Size of a machine that the log does not name."""

BEYOND_MACHINE = 1.05
"""Queues share nodes if the sum of their sizes exceeds this multiple of the machine."""

LARGEST_FILE = 256 << 20
"""Bytes."""

LARGEST_RANGE = 1_000_000
"""Most nodes in one range of a list of nodes."""


class PartitionsError(ValueError):
    """The sizes of the queues cannot be read; the message names the reason."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class Partition:
    """Queues that share processors.

    Attributes:
        queues: names of the queues; ``OTHER_QUEUES`` stands for those of no other partition.
        processors: number of processors that the queues share.
    """

    queues: frozenset[str]
    processors: int

    @property
    def name(self) -> str:
        """Names of the queues, joined by " + "."""
        return " + ".join(sorted(self.queues))


class PartitionNode(NamedTuple):
    """A node and the queues whose jobs may run there."""

    name: str
    processors: int
    queues: frozenset[str]


def read_partitions(path: str | Path) -> list[Partition]:
    """Read the partitions of a file, the largest first.

    Raises:
        PartitionsError: the file has none, or is of no known form.
        OSError: the file cannot be read.
    """
    content = read_bytes(path)
    if len(content) > LARGEST_FILE:
        raise PartitionsError(f"{path} is larger than {LARGEST_FILE >> 20} MB.")
    text = content.decode("utf-8", "replace")
    json_part = re.search(r"^\s*\{.*", text, re.DOTALL | re.MULTILINE)  # behind any warnings
    try:
        found = _from_json(json_part[0]) if json_part else _from_lines(text)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise PartitionsError(
            f"{path} is not what sinfo --json or pbsnodes -F json prints."
        ) from error
    except ValueError as error:
        raise PartitionsError(f"{path}: {error}") from error
    found = [each for each in found if each.processors > 0]
    if not found:
        raise PartitionsError(f"{path} names no partition with processors.")
    return sorted(found, key=lambda each: (-each.processors, each.name))


def partitions_of_log(trace: Trace, names: Mapping[int, str]) -> list[Partition]:
    """Return the queues of a log, each with the most processors that its jobs held at once.

    Args:
        names: names of the queues by their numbers, where they are known.

    Raises:
        PartitionsError: the log has one queue, does not say when jobs started, or its queues
            share nodes.
    """
    started = (trace.wait >= 0) & (trace.run > 0) & (trace.processors > 0)
    peaks = {
        names.get(number, str(number)): most_held(trace.select(started & (trace.queue == number)))
        for number in np.unique(trace.queue).tolist()
    }
    if not trace.wait.any() or not any(peaks.values()):
        raise PartitionsError("The log does not say when jobs started, nor how much queues hold.")
    if len(peaks) == 1:
        raise PartitionsError("All jobs of the log are in one queue.")
    size = trace.max_processors
    if size is not None and sum(peaks.values()) > BEYOND_MACHINE * size:
        raise PartitionsError(
            f"The queues of the log held up to {sum(peaks.values()):,} processors in all, and the "
            f"machine has {size:,}: queues share nodes. Name a file that says which."
        )
    found = [Partition(frozenset({name}), most) for name, most in peaks.items() if most]
    return sorted(found, key=lambda each: (-each.processors, each.name))


def most_held(jobs: Trace) -> int:
    """Return the most processors held at once; a job that ends frees its processors first."""
    start = jobs.submit + jobs.wait
    times = np.concatenate([start + jobs.run, start])
    changes = np.concatenate([-jobs.processors, jobs.processors])
    return int(np.cumsum(changes[np.lexsort((changes, times))]).max(initial=0))


def _from_lines(text: str) -> list[Partition]:
    """Parse lines of a queue's name and its number of processors."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not words[1].isdecimal():
            raise ValueError(f"line {number} is not a queue and its processors, as in batch 4096.")
        found.append(Partition(frozenset({words[0]}), int(words[1])))
    return found


def _from_json(text: str) -> list[Partition]:
    document = json.loads(text)
    if "sinfo" in document:
        return shared_machines(_sinfo_nodes(document["sinfo"]))
    nodes = document.get("nodes")
    if isinstance(nodes, list):
        return shared_machines(map(_slurm_node, nodes))
    if isinstance(nodes, dict):
        return shared_machines(_pbs_node(name, node) for name, node in nodes.items())
    raise ValueError("neither sinfo nor nodes is in it.")


def _sinfo_nodes(rows: Iterable[Mapping[str, Any]]) -> Iterator[PartitionNode]:
    """Yield the nodes of sinfo's rows; a row has some nodes of one partition."""
    for row in rows:
        names = [name for text in row["nodes"]["nodes"] for name in host_names(text)]
        partition = row["partition"]
        queue = partition if isinstance(partition, str) else partition["name"]
        for name, processors in zip(
            names, _processors_of_row(row["cpus"], len(names)), strict=True
        ):
            yield PartitionNode(name, processors, frozenset({queue}))


def _processors_of_row(cpus: Mapping[str, Any], nodes: int) -> Sequence[int]:
    """Return the processors of each node; where nodes differ, a row has only their sum."""
    total = int(cpus.get("total") or nodes * int(cpus["maximum"]))
    return [total * (place + 1) // nodes - total * place // nodes for place in range(nodes)]


def _slurm_node(node: Mapping[str, Any]) -> PartitionNode:
    return PartitionNode(node["name"], int(node["cpus"]), frozenset(node["partitions"]))


def _pbs_node(name: str, node: Mapping[str, Any]) -> PartitionNode:
    available = node.get("resources_available", {})
    queues = {node["queue"]} if "queue" in node else set()
    queues |= set(filter(None, str(available.get("Qlist", "")).split(",")))
    return PartitionNode(name, int(available.get("ncpus", 0)), frozenset(queues or {OTHER_QUEUES}))


def shared_machines(nodes: Iterable[PartitionNode]) -> list[Partition]:
    """Group queues into partitions that share no node."""
    processors: dict[str, int] = {}
    queues_of: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        processors[node.name] = max(node.processors, processors.get(node.name, 0))
        queues_of[node.name] |= node.queues
    machines: list[tuple[set[str], set[str]]] = []
    for name, queues in queues_of.items():
        joined = [each for each in machines if not each[0].isdisjoint(queues)]
        machines = [each for each in machines if each[0].isdisjoint(queues)]
        machines.append(
            (
                queues.union(*(each[0] for each in joined)),
                {name}.union(*(each[1] for each in joined)),
            )
        )
    return [
        Partition(frozenset(queues), sum(processors[name] for name in names))
        for queues, names in machines
    ]


def host_names(text: str) -> Iterator[str]:
    """Expand a list of nodes as Slurm writes it: ``n[01-02,7],login`` is n01, n02, n7, login."""
    for item in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", text):
        yield from _expanded(item)


def _expanded(item: str) -> Iterator[str]:
    head, bracket, rest = item.partition("[")
    if not bracket:
        yield item
        return
    ranges, _, tail = rest.partition("]")
    for part in ranges.split(","):
        for number in _numbers(part):
            yield from (f"{head}{number}{end}" for end in _expanded(tail))


def _numbers(part: str) -> Iterator[str]:
    first, dash, last = part.partition("-")
    if not dash:
        yield first
        return
    if int(last) - int(first) > LARGEST_RANGE:
        raise ValueError(f"the range {part[:40]} is too long.")
    yield from (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
