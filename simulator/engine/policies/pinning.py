"""FCFS on named nodes, where jobs that start soon are pinned to the nodes planned for them.

Every job is planned when it is submitted: on those of its many nodes whose plans end first
(ties: the lower number), at the end of these plans, never in a gap, and never before a job
ahead of it in the queue. When running jobs have ended early or outlived their estimates, the
plan is made again in the order of the queue. With pinning, a job whose planned start is then at
most ``pinning`` seconds away is pinned: it keeps its nodes. What else it keeps has two rules:

- ``nodes``: nothing. Its start is planned again: as soon as its own nodes are free, but not before
  the planned start of a pinned job ahead of it in the queue.
- ``start``: also its planned start, even if all of its nodes are free before.

If the nodes of a pinned job are late it starts as soon as they are free, and others may pass it
meanwhile; if they are expected to be late by more than ``pinning`` seconds from now, it is pinned
no longer and planned like the others, behind those that are. Without pinning jobs start exactly as
under FCFS.

Reference: Klusáček & Soysal 2020, section 4.2, where the scheduler may not change the nodes of a
pinned job; of its start the paper says nothing, nor what becomes of it when its nodes are late.
"""

from collections.abc import Mapping

from predictors.compiled import compiled, of_same_types
from simulator.engine import events, machine, nodes
from simulator.engine.compiled import inlined, kernel
from simulator.engine.loop import loop_of
from simulator.engine.state import NEVER, UNKNOWN, State

NODES, START = range(2)

PINNED: Mapping[str, int] = {"nodes": NODES, "start": START}

MEANINGS: Mapping[str, str] = {
    "nodes": "a pinned job keeps its nodes and starts as soon as they are free, in its turn",
    "start": "a pinned job keeps its nodes and its planned start",
}


@kernel
def decide(state: State) -> None:
    """Make the plan again if it was disturbed, plan the new jobs, start those that are due."""
    clock = state.clock[0]
    if clock.disturbed:
        _plan_again(state)
        clock.disturbed = 0
    for place in range(clock.head, clock.tail):
        if state.queue[place].planned == UNKNOWN:
            _plan(state, place)
    _start_due(state)


@kernel
def _plan_again(state: State) -> None:
    """Drop all plans but those of pinned jobs and make them again, in the order of the queue."""
    clock = state.clock[0]
    for number in range(len(state.nodes)):
        state.nodes[number].ready = _expected_free(state, number)
    clock.last_planned = clock.now
    for place in range(clock.head, clock.tail):
        if state.rules[0].pinning > 0 and state.queue[place].planned != UNKNOWN:
            _pin(state, place)
    nodes.order_nodes(state)
    for place in range(clock.head, clock.tail):
        waiting = state.queue[place]
        if waiting.planned != UNKNOWN and waiting.pinned == UNKNOWN:
            _plan(state, place)


@inlined
def _expected_free(state: State, number: int) -> int:
    """Return the expected end of the job on a node, at least now; now without a job."""
    job = state.nodes[number].job
    now: int = state.clock[0].now
    return now if job == UNKNOWN else max(now, state.jobs[job].expected_end)


@inlined
def _pin(state: State, place: int) -> None:
    """Let a job that is to start soon keep its nodes, unless they are late by too much."""
    clock = state.clock[0]
    waiting = state.queue[place]
    reach = clock.now + state.rules[0].pinning
    if waiting.pinned == UNKNOWN:
        if waiting.planned > reach:
            return
        waiting.pinned = waiting.planned
    begin = waiting.pinned
    if state.rules[0].pinned == NODES:
        begin = min(begin, clock.last_planned)
    first = state.jobs[waiting.job].first_node
    for entry in range(first, first + waiting.processors):
        begin = max(begin, state.nodes[state.node_lists[entry]].ready)
    if begin > reach:
        waiting.pinned = UNKNOWN
        return
    for entry in range(first, first + waiting.processors):
        state.nodes[state.node_lists[entry]].ready = begin + waiting.estimate
    waiting.planned = begin
    clock.last_planned = max(clock.last_planned, min(begin, waiting.pinned))


@inlined
def _plan(state: State, place: int) -> None:
    """Plan a job on the nodes that are first in order."""
    clock = state.clock[0]
    waiting = state.queue[place]
    begin = max(clock.now, clock.last_planned, nodes.next_ready(state))
    chain = nodes.take(state, waiting.processors)
    while state.nodes[chain].members < waiting.processors:
        begin = max(begin, nodes.next_ready(state))
        more = nodes.take(state, waiting.processors - state.nodes[chain].members)
        chain = nodes.chained(state, chain, more)
    _name(state, waiting.job, chain)
    nodes.put(state, chain, begin + waiting.estimate)
    if state.jobs[waiting.job].promise == UNKNOWN:
        state.jobs[waiting.job].promise = begin
    waiting.planned = begin
    clock.last_planned = max(clock.last_planned, begin)


@inlined
def _name(state: State, number: int, node: int) -> None:
    """Give a job the nodes of a chain, and note the time if these are others than before."""
    job = state.jobs[number]
    state.clock[0].plans += 1
    changed = state.node_lists[job.first_node] == UNKNOWN
    if not changed:
        for entry in range(job.first_node, job.first_node + job.processors):
            state.nodes[state.node_lists[entry]].mark = state.clock[0].plans
    for entry in range(job.first_node, job.first_node + job.processors):
        changed |= state.nodes[node].mark != state.clock[0].plans
        state.node_lists[entry] = node
        node = state.nodes[node].next
    if changed:
        job.nodes_since = state.clock[0].now


@kernel
def _start_due(state: State) -> None:
    """Start the jobs whose planned start has come, and note when the next one is due."""
    clock = state.clock[0]
    clock.next_planned = NEVER
    for place in range(clock.head, clock.tail):
        waiting = state.queue[place]
        if waiting.planned > clock.now:
            clock.next_planned = min(clock.next_planned, waiting.planned)
            continue
        machine.start(state, place)
        _occupy(state, waiting.job)
        if state.jobs[waiting.job].expected_end != clock.now + waiting.estimate:
            clock.disturbed = 1  # planned by one estimate, but it runs by another


@kernel
def _occupy(state: State, number: int) -> None:
    """Let a job run on its nodes, which must be free; from now on they are listed by number."""
    job = state.jobs[number]
    for entry in range(job.processors):
        node = state.node_lists[job.first_node + entry]
        if _expected_free(state, node) > state.clock[0].now:
            raise machine.ImpossibleError("a job needs a node that another one runs on")
        state.nodes[node].job = number
        events.push(state.sorting, entry, node, 0, node)
    for left in range(job.processors, 0, -1):
        place = job.first_node + job.processors - left
        state.node_lists[place] = events.pop(state.sorting, left)


_play = loop_of(decide)


@of_same_types
@compiled
def run(state: State) -> int:
    """Run a simulation under this policy until it stops."""
    return _play(state)
