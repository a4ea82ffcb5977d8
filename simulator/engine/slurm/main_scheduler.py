"""The main scheduler (``_schedule``), which knows nothing of the backfill scheduler's plan."""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm import allocation
from simulator.engine.slurm.node_choice import choose
from simulator.engine.slurm.node_sets import copy, remove
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
        elif _try(state, place):
            clock.main_open = 0
        else:
            partition.failed = 1
            place += 1


@inlined
def _try(state: SlurmState, place: int) -> bool:
    """Start a job if its partition has nodes for it that no failed partition blocks."""
    number = state.queue[place]
    copy(state.sets, USABLE, state.partition_sets, state.jobs[number].partition)
    remove(state.sets, USABLE, state.completing, 0)
    for other in range(len(state.partitions)):
        if state.partitions[other].failed:
            remove(state.sets, USABLE, state.partition_sets, other)
    if not choose(state, number, NOW):
        return False
    allocation.start(state, place)
    return True
