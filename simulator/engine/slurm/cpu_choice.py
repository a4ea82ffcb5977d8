"""The choice of nodes where nodes differ or jobs share them (``_eval_nodes_consec``).

A job wants CPUs, on any number of nodes. In partitions with ``OverSubscribe=EXCLUSIVE`` it takes
whole nodes that are idle, else CPUs that are free.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm.node_sets import BITS, clear
from simulator.engine.slurm.slurm_state import NOW, PLAN, USABLE, SlurmState

BEGIN, END, CPUS, WEIGHT = range(4)
"""Rows of ``stretches``."""

TAKEN, AVAILABLE = range(2)
"""Rows of ``plan_cpus``."""


@kernel
def choose_by_node(state: SlurmState, number: int, row: int) -> bool:
    """Choose CPUs for a job on the nodes of ``USABLE``; false if there are too few.

    A stretch ends where a node has nothing for the job, and where the weight changes. Stretches of
    lower weight are preferred; then one that holds the whole job, of several that with the fewest
    CPUs, of equals the first; if none does, that with the most. If one node of the stretch holds
    the whole rest of the job, the one with the fewest CPUs is taken, else nodes in their order.
    """
    wanted = state.jobs[number].processors
    clear(state.sets, PLAN)
    if _find_available(state, number, row) < wanted:
        return False
    stretches = _find_stretches(state, row)
    while wanted > 0:
        best = _best_stretch(state, stretches, wanted)
        wanted = _take(state, number, best, wanted)
        state.stretches[CPUS, best] = 0
    return True


@kernel
def _find_available(state: SlurmState, number: int, row: int) -> int:
    """Find the CPUs of each node that a job could take; return their sum."""
    exclusive = state.partitions[state.jobs[number].partition].exclusive
    total = 0
    for node in range(state.rules[0].nodes):
        cpus = 0
        if state.sets[USABLE, node // BITS] >> (node % BITS) & 1:
            cpus = state.free_cpus[row, node]
            if exclusive and cpus < state.node_cpus[node]:
                cpus = 0
        state.plan_cpus[TAKEN, node] = 0
        state.plan_cpus[AVAILABLE, node] = cpus
        total += cpus
    return total


@inlined
def _weight(state: SlurmState, node: int, row: int) -> int:
    """Return a node's weight; nodes whose epilog runs come after those of the same weight."""
    weight: int = 2 * state.node_weights[node]
    if row == NOW:
        weight += state.completing[0, node // BITS] >> (node % BITS) & 1
    return weight


@kernel
def _find_stretches(state: SlurmState, row: int) -> int:
    stretches = state.stretches
    found, is_open, weight = 0, False, 0
    for node in range(state.rules[0].nodes):
        cpus = state.plan_cpus[AVAILABLE, node]
        if is_open and (cpus == 0 or _weight(state, node, row) != weight):
            stretches[END, found] = node
            found += 1
            is_open = False
        if cpus == 0:
            continue
        if not is_open:
            weight = _weight(state, node, row)
            stretches[BEGIN, found], stretches[WEIGHT, found] = node, weight
            stretches[CPUS, found] = 0
            is_open = True
        stretches[CPUS, found] += cpus
    if is_open:
        stretches[END, found] = state.rules[0].nodes
        found += 1
    return found


@kernel
def _best_stretch(state: SlurmState, stretches: int, wanted: int) -> int:
    best, best_cpus, best_weight, is_enough = -1, 0, 0, False
    for stretch in range(stretches):
        cpus, weight = state.stretches[CPUS, stretch], state.stretches[WEIGHT, stretch]
        if cpus == 0:
            continue
        enough = cpus >= wanted
        fits_better = (
            (enough and not is_enough)
            or (enough and cpus < best_cpus)
            or (not enough and cpus > best_cpus)
        )
        if best < 0 or weight < best_weight or (weight == best_weight and fits_better):
            best, best_cpus, best_weight, is_enough = stretch, cpus, weight, enough
    return best


@kernel
def _take(state: SlurmState, number: int, stretch: int, wanted: int) -> int:
    """Take nodes of a stretch; return the number of CPUs that are still wanted."""
    begin, end = state.stretches[BEGIN, stretch], state.stretches[END, stretch]
    single = _fitting_node(state, begin, end, wanted)
    if single >= 0:
        begin, end = single, single + 1
    exclusive = state.partitions[state.jobs[number].partition].exclusive
    for node in range(begin, end):
        if wanted <= 0:
            break
        cpus = state.plan_cpus[AVAILABLE, node]
        state.plan_cpus[TAKEN, node] = cpus if exclusive else min(cpus, wanted)
        state.sets[PLAN, node // BITS] |= 1 << (node % BITS)
        wanted -= cpus
    return max(0, wanted)


@inlined
def _fitting_node(state: SlurmState, begin: int, end: int, wanted: int) -> int:
    """Return the node with the fewest CPUs that are enough; -1 if there is none."""
    best, best_cpus = -1, 0
    for node in range(begin, end):
        cpus = state.plan_cpus[AVAILABLE, node]
        if cpus >= wanted and (best < 0 or cpus < best_cpus):
            best, best_cpus = node, cpus
    return best
