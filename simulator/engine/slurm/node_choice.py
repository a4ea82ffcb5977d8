"""The choice of nodes (``_eval_nodes_consec``): best fit among stretches of consecutive nodes."""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm.cpu_choice import choose_by_node
from simulator.engine.slurm.node_sets import (
    ALL,
    BITS,
    clear,
    copy,
    count,
    keep_common,
    meets,
    remove,
)
from simulator.engine.slurm.slurm_state import CANDIDATES, NOW, PLAN, USABLE, SlurmState


@kernel
def choose(state: SlurmState, number: int, row: int) -> bool:
    """Choose nodes for a job among those of ``USABLE`` that are in the row; false if too few.

    The chosen nodes are the set ``PLAN``. Of the nodes that are free now, those whose epilog still
    runs are taken last (``_set_sched_weight``).
    """
    if state.rules[0].by_node:
        return choose_by_node(state, number, row)
    wanted = state.jobs[number].nodes
    sets, completing = state.sets, state.completing
    copy(sets, CANDIDATES, sets, USABLE)
    keep_common(sets, CANDIDATES, sets, row)
    if count(sets, CANDIDATES) < wanted:
        return False
    clear(sets, PLAN)
    if row == NOW and meets(sets, CANDIDATES, completing, 0):
        remove(sets, CANDIDATES, completing, 0)
        ready = min(wanted, count(sets, CANDIDATES))
        _fit(state, ready)
        wanted -= ready
        copy(sets, CANDIDATES, sets, USABLE)
        keep_common(sets, CANDIDATES, sets, row)
        keep_common(sets, CANDIDATES, completing, 0)
    _fit(state, wanted)
    return True


@kernel
def _fit(state: SlurmState, wanted: int) -> None:
    """Add as many of the candidates to the plan.

    A stretch that holds all is preferred, of several the smallest, of equals the first; if none
    does, the largest is taken whole, and the rest is placed by the same rule.
    """
    stretches = _find_stretches(state)
    while wanted > 0:
        best = _best_stretch(state, stretches, wanted)
        taken = min(wanted, state.stretches[1, best])
        _take(state, state.stretches[0, best], taken)
        state.stretches[1, best] = 0
        wanted -= taken


@kernel
def _find_stretches(state: SlurmState) -> int:
    """List the begins and lengths of stretches of consecutive candidates; their number."""
    stretches = state.stretches
    found, length = 0, 0
    for word in range(state.sets.shape[1]):
        bits = state.sets[CANDIDATES, word]
        if bits == ALL:
            if length == 0:
                stretches[0, found] = BITS * word
            length += BITS
            continue
        node = BITS * word
        while bits or length:
            if bits & 1:
                if length == 0:
                    stretches[0, found] = node
                length += 1
            elif length:
                stretches[1, found] = length
                found += 1
                length = 0
            node += 1
            bits >>= 1
            if node == BITS * word + BITS:
                break
    if length:
        stretches[1, found] = length
        found += 1
    return found


@inlined
def _best_stretch(state: SlurmState, stretches: int, wanted: int) -> int:
    best, best_length, is_enough = -1, 0, False
    for stretch in range(stretches):
        length = state.stretches[1, stretch]
        if length == 0:
            continue
        enough = length >= wanted
        if (
            best < 0
            or (enough and not is_enough)
            or (enough and length < best_length)
            or (not enough and length > best_length)
        ):
            best, best_length, is_enough = stretch, length, enough
    return best


@inlined
def _take(state: SlurmState, first: int, length: int) -> None:
    for node in range(first, first + length):
        state.sets[PLAN, node // BITS] |= 1 << (node % BITS)
