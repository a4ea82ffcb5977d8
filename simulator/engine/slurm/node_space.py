"""The plan of a backfill cycle (``node_space``): which nodes no waiting job holds, and when.

The plan is a chain of slots from now to the end of the window, each with the set of nodes that no
reservation holds. Running jobs are not in it, except those that the cycle itself has started.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm.node_sets import copy, lies_in, remove
from simulator.engine.slurm.slurm_state import SlurmState


@kernel
def clear_plan(state: SlurmState) -> None:
    """Begin a plan in which no job holds a node."""
    clock, rules = state.clock[0], state.rules[0]
    first = state.slots[0]
    first.begin = clock.now // rules.bf_resolution * rules.bf_resolution
    first.end = end_of_window(state)
    first.next = 0
    for word in range(state.slot_sets.shape[1]):
        state.slot_sets[0, word] = state.sets[0, word] | ~state.sets[0, word]
    clock.slots = 1
    clock.stop = first.end


@inlined
def end_of_window(state: SlurmState) -> int:
    """Return the end of a plan that begins now."""
    rules = state.rules[0]
    end: int = (state.clock[0].now + rules.bf_window) // rules.bf_resolution * rules.bf_resolution
    return end


@kernel
def move_window(state: SlurmState) -> None:
    """Let the plan of the last cycle end where one would end that is begun now."""
    clock = state.clock[0]
    last = 0
    while state.slots[last].next:
        last = state.slots[last].next
    clock.stop = end_of_window(state)
    state.slots[last].end = clock.stop


@kernel
def is_taken(state: SlurmState, row: int, begin: int, end: int) -> bool:
    """Return whether a plan holds any of the nodes then (``_test_resv_overlap``)."""
    slot = 0
    while True:
        each = state.slots[slot]
        is_then = each.end > begin and each.begin < end
        if is_then and not lies_in(state.sets, row, state.slot_sets, slot):
            return True
        slot = each.next
        if slot == 0:
            return False


@kernel
def reserve(state: SlurmState, row: int, begin: int, end: int) -> None:
    """Take nodes out of the slots from ``begin`` to ``end`` (``_add_reservation``)."""
    begin = max(begin, state.slots[0].begin)
    end = max(end, begin + state.rules[0].bf_resolution)
    slot, before, placed = 0, 0, False
    while True:
        each = state.slots[slot]
        if each.end > begin:
            _split(state, slot, begin)
            placed = True
            break
        if each.end == begin:
            placed = True
            break
        before = slot
        slot = each.next
        if slot == 0:
            break
    behind = -1
    while placed and state.slots[slot].next:
        slot = state.slots[slot].next
        if end < state.slots[slot].end:
            _split(state, slot, end)
        remove(state.slot_sets, slot, state.sets, row)
        if end == state.slots[slot].end:
            if state.slots[slot].next:
                behind = state.slots[slot].next
            break
    _join_equal(state, before, behind)


@inlined
def _split(state: SlurmState, slot: int, time: int) -> None:
    """Let a slot end at a time, and a new one with the same nodes go on from there."""
    clock = state.clock[0]
    new, each = state.slots[clock.slots], state.slots[slot]
    new.begin = time
    new.end = each.end
    new.next = each.next
    copy(state.slot_sets, clock.slots, state.slot_sets, slot)
    each.end = time
    each.next = clock.slots
    clock.slots += 1


@inlined
def _join_equal(state: SlurmState, first: int, behind: int) -> None:
    """Join the first two neighbours that have the same nodes, as Slurm does: no more than two."""
    slot = first
    while slot != behind:
        following = state.slots[slot].next
        if following == 0:
            return
        if _is_same(state, slot, following):
            state.slots[slot].end = state.slots[following].end
            state.slots[slot].next = state.slots[following].next
            return
        slot = following


@inlined
def _is_same(state: SlurmState, slot: int, other: int) -> bool:
    for word in range(state.slot_sets.shape[1]):
        if state.slot_sets[slot, word] != state.slot_sets[other, word]:
            return False
    return True
