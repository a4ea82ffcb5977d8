"""The choice of nodes where nodes differ or jobs share them (``_eval_nodes_consec``).

A job wants CPUs, on any number of nodes. In partitions with ``OverSubscribe=EXCLUSIVE`` it takes
whole nodes that are idle, else CPUs that are free. A job with GPUs has a fixed number of nodes, and
on each of them equal numbers of GPUs and, as far as they divide, of CPUs.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm.node_sets import BITS, clear
from simulator.engine.slurm.slurm_state import NOW, OF_NODES, PLAN, USABLE, SlurmState

BEGIN, END, CPUS, WEIGHT, NODES = range(5)
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
    job = state.jobs[number]
    wanted = job.processors
    nodes = job.nodes if job.gpus else 0
    clear(state.sets, PLAN)
    if _find_available(state, number, row) < wanted:
        return False
    stretches = _find_stretches(state, row)
    if nodes > _nodes_of(state, stretches):
        return False
    while wanted > 0 or nodes > 0:
        best = _best_stretch(state, stretches, wanted, nodes)
        wanted, nodes = _take(state, number, best, wanted, nodes)
        state.stretches[CPUS, best] = 0
    return True


@inlined
def _nodes_of(state: SlurmState, stretches: int) -> int:
    nodes = 0
    for stretch in range(stretches):
        nodes += state.stretches[NODES, stretch]
    return nodes


@kernel
def _find_available(state: SlurmState, number: int, row: int) -> int:
    """Find the CPUs of each node that a job could take; return their sum."""
    job = state.jobs[number]
    exclusive = state.partitions[job.partition].exclusive
    least = _least_cpus(state, number)
    total = 0
    for node in range(state.rules[0].nodes):
        cpus = 0
        if state.sets[USABLE, node // BITS] >> (node % BITS) & 1:
            cpus = state.free_cpus[row, node]
            if exclusive and cpus < state.node_cpus[node]:
                cpus = 0
            if cpus < least or state.free_gpus[row, node] < job.gpus:
                cpus = 0
        state.plan_cpus[TAKEN, node] = 0
        state.plan_cpus[AVAILABLE, node] = cpus
        total += cpus
    return total


@kernel
def are_idle(state: SlurmState) -> bool:
    """Return whether no job runs on the nodes of ``USABLE``."""
    for node in range(state.rules[0].nodes):
        is_usable = state.sets[USABLE, node // BITS] >> (node % BITS) & 1
        if is_usable and state.free_cpus[NOW, node] < state.node_cpus[node]:
            return False
    return True


@kernel
def fits_idle(state: SlurmState, number: int) -> bool:
    """Return whether the nodes of ``USABLE`` would be enough for a job if no job ran on them."""
    job = state.jobs[number]
    least = _least_cpus(state, number)
    cpus, nodes = 0, 0
    for node in range(state.rules[0].nodes):
        is_usable = state.sets[USABLE, node // BITS] >> (node % BITS) & 1
        has_enough = state.node_cpus[node] >= least and state.free_gpus[OF_NODES, node] >= job.gpus
        if is_usable and has_enough:
            cpus += state.node_cpus[node]
            nodes += 1
    return bool(cpus >= job.processors and (job.gpus == 0 or nodes >= job.nodes))


@inlined
def _least_cpus(state: SlurmState, number: int) -> int:
    """Return the CPUs that a job needs on each of its nodes; 0 for a job without GPUs."""
    job = state.jobs[number]
    least: int = -(-job.processors // job.nodes) if job.gpus else 0
    return least


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
            stretches[CPUS, found] = stretches[NODES, found] = 0
            is_open = True
        stretches[CPUS, found] += cpus
        stretches[NODES, found] += 1
    if is_open:
        stretches[END, found] = state.rules[0].nodes
        found += 1
    return found


@kernel
def _best_stretch(state: SlurmState, stretches: int, wanted: int, nodes: int) -> int:
    best, best_cpus, best_weight, is_enough = -1, 0, 0, False
    for stretch in range(stretches):
        cpus, weight = state.stretches[CPUS, stretch], state.stretches[WEIGHT, stretch]
        if cpus == 0:
            continue
        enough = cpus >= wanted and state.stretches[NODES, stretch] >= nodes
        fits_better = (
            (enough and not is_enough)
            or (enough and cpus < best_cpus)
            or (not enough and cpus > best_cpus)
        )
        if best < 0 or weight < best_weight or (weight == best_weight and fits_better):
            best, best_cpus, best_weight, is_enough = stretch, cpus, weight, enough
    return best


@kernel
def _take(state: SlurmState, number: int, stretch: int, wanted: int, nodes: int) -> tuple[int, int]:
    """Take nodes of a stretch; return the numbers of CPUs and nodes that are still wanted.

    Args:
        nodes: nodes with GPUs that are wanted; 0 for a job without.
    """
    begin, end = state.stretches[BEGIN, stretch], state.stretches[END, stretch]
    single = _fitting_node(state, begin, end, wanted) if nodes <= 1 else -1
    if single >= 0:
        begin, end = single, single + 1
    exclusive = state.partitions[state.jobs[number].partition].exclusive
    for node in range(begin, end):
        if wanted <= 0 and nodes <= 0:
            break
        cpus = state.plan_cpus[AVAILABLE, node]
        if not exclusive:
            cpus = min(cpus, -(-wanted // nodes) if nodes else wanted)
        state.plan_cpus[TAKEN, node] = cpus
        state.sets[PLAN, node // BITS] |= 1 << (node % BITS)
        wanted -= cpus
        nodes -= nodes > 0
    return max(0, wanted), nodes


@inlined
def _fitting_node(state: SlurmState, begin: int, end: int, wanted: int) -> int:
    """Return the node with the fewest CPUs that are enough; -1 if there is none."""
    best, best_cpus = -1, 0
    for node in range(begin, end):
        cpus = state.plan_cpus[AVAILABLE, node]
        if cpus >= wanted and (best < 0 or cpus < best_cpus):
            best, best_cpus = node, cpus
    return best
