"""The main scheduler (``_schedule``), which knows nothing of the backfill scheduler's plan."""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm import allocation, reservations
from simulator.engine.slurm.cpu_choice import are_idle, fits_idle
from simulator.engine.slurm.node_choice import choose
from simulator.engine.slurm.node_sets import copy, count, lies_in, meets, remove
from simulator.engine.slurm.slurm_state import NOW, USABLE, SlurmState

STARTED, FAILED, RESERVED = range(3)


@kernel
def look(state: SlurmState, whole_queue: int) -> None:
    """Start jobs in the order of the queue until the first that cannot start.

    Behind it no job of its partition is started, nor any job on the nodes of its partition. A job
    is passed over that reservations keep from starting, while nobody runs on the other nodes.
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
        else:
            outcome = _try(state, place)
            if outcome == STARTED:
                clock.main_open = 0
                continue
            partition.failed = outcome == FAILED
            place += 1


@inlined
def _try(state: SlurmState, place: int) -> int:
    """Start a job if its partition has nodes for it that no failed partition blocks."""
    number, now = state.queue[place], state.clock[0].now
    limit = state.jobs[number].limit
    has_reservations, is_affected = state.rules[0].reservations > 0, False
    if has_reservations and reservations.unreserved_start(state, number, now, limit) > now:
        return RESERVED
    copy(state.sets, USABLE, state.partition_sets, state.jobs[number].partition)
    if has_reservations:
        is_affected = reservations.leave_out_reserved(state, number, now, limit) > 0
    for other in range(len(state.partitions)):
        if state.partitions[other].failed:
            remove(state.sets, USABLE, state.partition_sets, other)
    if is_affected and _is_kept_by_reservations(state, number):
        return RESERVED
    remove(state.sets, USABLE, state.completing, 0)
    if choose(state, number, NOW):
        allocation.start(state, place)
        return STARTED
    return FAILED


@kernel
def _is_kept_by_reservations(state: SlurmState, number: int) -> bool:
    """Whether the usable nodes are too few for a job, though no job runs on them.

    It then waits for no node that a job would free (``_pick_best_nodes``). Jobs that share nodes
    may run on them.
    """
    if meets(state.sets, USABLE, state.completing, 0):
        return False
    if not state.rules[0].by_node:
        is_idle: bool = lies_in(state.sets, USABLE, state.sets, NOW)
        return is_idle and count(state.sets, USABLE) < state.jobs[number].nodes
    is_shared = state.partitions[state.jobs[number].partition].exclusive == 0
    return (is_shared or are_idle(state)) and not fits_idle(state, number)
