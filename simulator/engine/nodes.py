"""Named nodes in the order in which their plans end, ties by number.

Nodes whose plans end at the same time are a group, chained from the first node, which also says
which is the last and how many there are. A job is planned on the first nodes of the order, which
then go back into it as a group of their own: a plan costs what its own nodes cost, however large
the machine is.
"""

from simulator.engine import events
from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import State


@kernel
def order_nodes(state: State) -> None:
    """Put all nodes in order anew, by when they are ready."""
    state.clock[0].groups = 0
    for number in range(len(state.nodes)):
        node = state.nodes[number]
        node.last = number
        node.size = 1
        node.ascending = 1
        put(state, number, node.ready)


@inlined
def put(state: State, first: int, ready: int) -> None:
    """Put a group into the order."""
    clock = state.clock[0]
    events.push(state.groups, clock.groups, ready, first, first)
    clock.groups += 1


@inlined
def next_ready(state: State) -> int:
    """When the nodes that are first in order are ready; all that were before are now."""
    ready: int = max(state.clock[0].now, state.groups[0].time)
    return ready


@inlined
def take(state: State, count: int) -> int:
    """Take a group out of the order: nodes that are ready together, ``count`` at the most."""
    clock = state.clock[0]
    ready = next_ready(state)
    first = _take_group(state)
    while clock.groups > 0 and state.groups[0].time <= ready:
        first = chained(state, first, _take_group(state))
    if state.nodes[first].size > count:
        first = _sorted(state, first)
        put(state, _split(state, first, count), ready)
    return first


@inlined
def chained(state: State, first: int, second: int) -> int:
    """Two groups as one; its first node."""
    group = state.nodes[first]
    other = state.nodes[second]
    group.ascending = group.ascending and other.ascending and group.last < second
    state.nodes[group.last].next = second
    group.last = other.last
    group.size += other.size
    return first


@inlined
def _take_group(state: State) -> int:
    clock = state.clock[0]
    first: int = events.pop(state.groups, clock.groups)
    clock.groups -= 1
    return first


@inlined
def _sorted(state: State, first: int) -> int:
    """A group chained in the order of its nodes' numbers; its first node."""
    if state.nodes[first].ascending:
        return first
    size = state.nodes[first].size
    node = first
    for entry in range(size):
        events.push(state.sorting, entry, node, 0, node)
        node = state.nodes[node].next
    head = events.pop(state.sorting, size)
    last = head
    for left in range(size - 1, 0, -1):
        node = events.pop(state.sorting, left)
        state.nodes[last].next = node
        last = node
    state.nodes[head].last = last
    state.nodes[head].size = size
    state.nodes[head].ascending = 1
    return head


@inlined
def _split(state: State, first: int, count: int) -> int:
    """Leave so many nodes in a group; the first node of the group of the others."""
    group = state.nodes[first]
    last = first
    for _ in range(count - 1):
        last = state.nodes[last].next
    others: int = state.nodes[last].next
    state.nodes[others].last = group.last
    state.nodes[others].size = group.size - count
    state.nodes[others].ascending = 1
    group.last = last
    group.size = count
    return others
