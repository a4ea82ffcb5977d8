"""The main scheduler (``_schedule``) and the attempt at submission (``_select_nodes_parts``).

Both know nothing of the backfill scheduler's plan.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm import allocation
from simulator.engine.slurm.node_choice import choose
from simulator.engine.slurm.node_sets import copy, meets, remove
from simulator.engine.slurm.slurm_state import NOW, USABLE, SlurmState


@kernel
def look(state: SlurmState, whole_queue: int) -> None:
    """Start jobs in the order of the queue until the first that cannot start.

    Behind it no job of its partition is started, nor any job on the nodes of its partition.
    """
    clock = state.clock[0]
    clock.main_open = 0
    for number in range(len(state.partitions)):
        state.partitions[number].failed = 0
    place, seen = 0, 0
    while place < clock.waiting:
        number = state.queue[place]
        if not whole_queue and seen > state.rules[0].default_queue_depth:
            clock.main_open = 1  # what is behind is looked at with the whole queue
            return
        seen += 1
        partition = state.partitions[state.jobs[number].partition]
        if partition.failed or not allocation.is_within_limits(state, number):
            place += 1
        elif _try(state, place, 1):
            clock.main_open = 0
        else:
            partition.failed = 1
            place += 1


@kernel
def try_at_submission(state: SlurmState, place: int) -> None:
    """Start a job that was just submitted if no waiting job has precedence over it."""
    number = state.queue[place]
    if state.rules[0].defer or not allocation.is_within_limits(state, number):
        return
    partition = state.jobs[number].partition
    for ahead in range(place):
        if _may_want_nodes_of(state, state.queue[ahead], partition):
            return
    _try(state, place, 0)


@inlined
def _may_want_nodes_of(state: SlurmState, number: int, partition: int) -> bool:
    """Whether a waiting job could start, as far as limits go, on nodes of a partition."""
    other = state.jobs[number].partition
    overlap = meets(state.partition_sets, partition, state.partition_sets, other)
    return overlap and allocation.is_within_limits(state, number)


@inlined
def _try(state: SlurmState, place: int, blocked: int) -> bool:
    """Start a job if its partition has nodes for it that no failed partition blocks."""
    number = state.queue[place]
    copy(state.sets, USABLE, state.partition_sets, state.jobs[number].partition)
    remove(state.sets, USABLE, state.completing, 0)
    if blocked:
        for other in range(len(state.partitions)):
            if state.partitions[other].failed:
                remove(state.sets, USABLE, state.partition_sets, other)
    if not choose(state, number, NOW):
        return False
    allocation.start(state, place)
    return True
