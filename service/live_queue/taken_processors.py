"""Processors that a job will take: more than it asks for where nodes or cores go whole."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from predictors.jobs import MOST_PROCESSORS, Submission


class QueueNodes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The nodes of a queue (partition), as its jobs take them.

    Attributes:
        queue: name; None stands for every queue that is not named.
        processors: of one node; of the most frequent kind where they differ.
        unit: processors of the smallest part that is given to a job: of a core, say.
        whole: whether every job takes whole nodes.
        longest: largest limit of a job in seconds (MaxTime); None without one.
        per_gpu: processors of a node for each of its GPUs; 0 without GPUs.
    """

    queue: str | None = None
    processors: int
    unit: int = 1
    whole: bool = False
    longest: float | None = None
    per_gpu: int = 0


class ProcessorRequest(Struct, frozen=True, kw_only=True):
    """The processors that a job asks for.

    Attributes:
        processors: the least number of them.
        nodes: the least number of nodes.
        threads_per_core: processors of each core that the job uses; None is all of them.
        exclusive: whether the job shares its nodes with no other.
    """

    processors: int
    nodes: int = 1
    threads_per_core: int | None = None
    exclusive: bool = False


def taken_processors(request: ProcessorRequest, nodes: QueueNodes | None) -> int:
    """Return the processors that a job will take; its request where the nodes are not known.

    >>> cores = QueueNodes(processors=16, unit=2)
    >>> taken_processors(ProcessorRequest(processors=3), cores)
    4
    >>> taken_processors(ProcessorRequest(processors=4, threads_per_core=1), cores)
    8
    >>> taken_processors(ProcessorRequest(processors=20, exclusive=True), cores)
    32
    """
    if nodes is None:
        return request.processors
    used = min(request.threads_per_core or nodes.unit, nodes.unit)
    parts = max(-(-request.processors // used), request.nodes if nodes.unit > 1 else 1)
    taken = parts * nodes.unit
    if not (nodes.whole or request.exclusive):
        return taken
    return max(request.nodes, -(-taken // nodes.processors)) * nodes.processors


def with_taken(
    submission: Submission, request: ProcessorRequest, nodes: QueueNodes | None
) -> Submission:
    """Return the submission with the processors that the job will take, and its memory for each.

    Args:
        submission: with memory for each processor that the job asks for.
    """
    taken = taken_processors(request, nodes)
    if nodes is None or taken == submission.requested_processors:
        return submission
    memory, asked = submission.requested_memory, submission.requested_processors or 1
    return replace(
        submission,
        requested_processors=taken,
        requested_memory=None if memory is None else memory * asked / taken,
    )


def gpu_share(gpus: int | None, nodes: QueueNodes | None) -> int:
    """Return the processors that GPUs stand for; 0 where the GPUs of the nodes are not known."""
    return min(MOST_PROCESSORS, (gpus or 0) * (nodes.per_gpu if nodes else 0))


def nodes_by_queue(every: Sequence[QueueNodes]) -> Mapping[str | None, QueueNodes]:
    """Return the nodes by the name of the queue."""
    return {each.queue: each for each in every}


def nodes_of(every: Mapping[str | None, QueueNodes], queue: str | None) -> QueueNodes | None:
    """Return the nodes of a queue; None if they are not known."""
    return every.get(queue) or every.get(None)


def longest_of(every: Mapping[str | None, QueueNodes], queue: str | None) -> float | None:
    """Return the largest limit of a queue in seconds; None without one, or where not known."""
    nodes = nodes_of(every, queue)
    return None if nodes is None else nodes.longest
