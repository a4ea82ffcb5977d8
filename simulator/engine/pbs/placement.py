"""The choice of nodes: in the order of the list, beside the planned runs of top jobs.

Whole nodes are those of ``bucket_match``: first nodes that a top job takes later, if the job ends
before, then nodes that nobody takes. CPUs of shared nodes are those of ``eval_complex_selspec``.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.pbs.pbs_state import END, START_OF_PLAN, PbsState
from simulator.engine.slurm.cpu_choice import AVAILABLE, TAKEN
from simulator.engine.slurm.node_sets import (
    BITS,
    add,
    clear,
    copy,
    count,
    keep_common,
    remove,
)
from simulator.engine.slurm.slurm_state import CANDIDATES, PLAN, USABLE


@kernel
def choose(state: PbsState, number: int, row: int, time: int, position: int) -> bool:
    """Choose nodes for a job that would start at a time; false if there are too few.

    Args:
        state: the chosen nodes are the set ``PLAN``, and a row of ``plan_cpus``.
        row: what is free then: ``NOW`` or ``FUTURE``.
        position: the first event of the calendar that is still to come then.
    """
    cluster = state.cluster
    end = time + length_of(state, number)
    copy(cluster.sets, USABLE, cluster.partition_sets, cluster.jobs[number].partition)
    if cluster.rules[0].by_node:
        return _choose_cpus(state, number, row, position, end)
    keep_common(cluster.sets, USABLE, cluster.sets, row)
    clear(cluster.sets, CANDIDATES)
    for plan in range(state.scheduler[0].plans):
        each = state.plans[plan]
        if each.begun:
            continue
        if each.start < end:
            remove(cluster.sets, USABLE, state.plan_sets, plan)
        add(cluster.sets, CANDIDATES, state.plan_sets, plan)
    wanted = cluster.jobs[number].nodes
    if count(cluster.sets, USABLE) < wanted:
        return False
    keep_common(cluster.sets, CANDIDATES, cluster.sets, USABLE)
    remove(cluster.sets, USABLE, cluster.sets, CANDIDATES)
    clear(cluster.sets, PLAN)
    _take_first(state, USABLE, _take_first(state, CANDIDATES, wanted))
    return True


@inlined
def length_of(state: PbsState, number: int) -> int:
    """Return how long a job is planned to run (``set_job_times``)."""
    job = state.cluster.jobs[number]
    length: int = job.time_min or job.request
    return length


@kernel
def _take_first(state: PbsState, row: int, wanted: int) -> int:
    """Add the first nodes of a set to the plan; return the number that is still wanted."""
    sets = state.cluster.sets
    for word in range(sets.shape[1]):
        bits = sets[row, word]
        while bits and wanted:
            lowest = bits & -bits
            sets[PLAN, word] |= lowest
            bits ^= lowest
            wanted -= 1
        if wanted == 0:
            break
    return wanted


@kernel
def _choose_cpus(state: PbsState, number: int, row: int, position: int, end: int) -> bool:
    """Choose CPUs: on one node if one of the queue could hold the job, else on several."""
    cluster = state.cluster
    _find_available(state, number, row, position, end)
    job = cluster.jobs[number]
    wanted = job.processors
    exclusive = cluster.partitions[job.partition].exclusive
    is_single = wanted <= state.queues[job.partition].largest_node
    clear(cluster.sets, PLAN)
    for node in range(cluster.rules[0].nodes):
        cpus = cluster.plan_cpus[AVAILABLE, node]
        cluster.plan_cpus[TAKEN, node] = 0
        if wanted <= 0 or cpus == 0 or (is_single and cpus < wanted):
            continue
        cluster.plan_cpus[TAKEN, node] = cpus if exclusive else min(cpus, wanted)
        cluster.sets[PLAN, node // BITS] |= 1 << (node % BITS)
        wanted -= cpus
    return bool(wanted <= 0)


@kernel
def _find_available(state: PbsState, number: int, row: int, position: int, end: int) -> None:
    """Find the CPUs of each node that are free until the end (``check_resources_for_node``)."""
    cluster = state.cluster
    exclusive = cluster.partitions[cluster.jobs[number].partition].exclusive
    for node in range(cluster.rules[0].nodes):
        cpus = 0
        if cluster.sets[USABLE, node // BITS] >> (node % BITS) & 1:
            cpus = cluster.free_cpus[row, node]
            if exclusive and cpus < cluster.node_cpus[node]:
                cpus = 0
        cluster.plan_cpus[AVAILABLE, node] = cpus
        state.later_cpus[node] = cluster.free_cpus[row, node]
    if not _has_start_before(state, position, end):
        return
    while position < state.scheduler[0].events and state.calendar[position].time < end:
        event = state.calendar[position]
        if event.kind == END:
            _release(state, event.subject)
        else:
            _change(state, event.subject, event.kind, exclusive)
        position += 1


@inlined
def _has_start_before(state: PbsState, position: int, end: int) -> bool:
    for place in range(position, state.scheduler[0].events):
        if state.calendar[place].time >= end:
            return False
        if state.calendar[place].kind == START_OF_PLAN:
            return True
    return False


@inlined
def _release(state: PbsState, place: int) -> None:
    """Let a running job end."""
    cluster = state.cluster
    hold = cluster.first_hold[place]
    while hold >= 0:
        state.later_cpus[cluster.holds[hold].node] += cluster.holds[hold].cpus
        hold = cluster.holds[hold].next


@inlined
def _change(state: PbsState, plan: int, kind: int, exclusive: int) -> None:
    """Let a top job start or end, and note what is left beside it."""
    available = state.cluster.plan_cpus
    for node in range(state.cluster.rules[0].nodes):
        cpus = state.plan_cpus[plan, node]
        if cpus == 0:
            continue
        if kind != START_OF_PLAN:
            state.later_cpus[node] += cpus
            continue
        state.later_cpus[node] -= cpus
        left = 0 if exclusive else max(0, state.later_cpus[node])
        available[AVAILABLE, node] = min(available[AVAILABLE, node], left)
