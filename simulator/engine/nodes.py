"""Named nodes in the order in which their plans end, ties by number.

Nodes whose plans end at the same time are a group. A group is a chain from its first node, which
also stores the last node and the size. A job is planned on the first nodes of the order, which
then go back into the order as a new group. So the cost of a plan depends on the job's nodes and
not on the size of the machine.
"""

from simulator.engine import events
from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import State


@kernel
def order_nodes(state: State) -> None:
    """Order all nodes anew by the times at which they are ready."""
    state.clock[0].groups = 0
    for number in range(len(state.nodes)):
        node = state.nodes[number]
        node.last = number
        node.members = 1
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
    """The time at which the first nodes of the order are ready; times in the past become now."""
    ready: int = max(state.clock[0].now, state.groups[0].time)
    return ready


@inlined
def take(state: State, count: int) -> int:
    """Take a group of nodes that are ready together, at most ``count``, out of the order."""
    clock = state.clock[0]
    ready = next_ready(state)
    first = _take_group(state)
    while clock.groups > 0 and state.groups[0].time <= ready:
        first = chained(state, first, _take_group(state))
    if state.nodes[first].members > count:
        first = _sorted(state, first)
        put(state, _split(state, first, count), ready)
    return first


@inlined
def chained(state: State, first: int, second: int) -> int:
    """Join two groups, and return the first node of the new group."""
    group = state.nodes[first]
    other = state.nodes[second]
    group.ascending = group.ascending and other.ascending and group.last < second
    state.nodes[group.last].next = second
    group.last = other.last
    group.members += other.members
    return first


@inlined
def _take_group(state: State) -> int:
    clock = state.clock[0]
    first: int = events.pop(state.groups, clock.groups)
    clock.groups -= 1
    return first


@inlined
def _sorted(state: State, first: int) -> int:
    """Chain a group in the order of its nodes' numbers, and return its first node."""
    if state.nodes[first].ascending:
        return first
    size = state.nodes[first].members
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
    state.nodes[head].members = size
    state.nodes[head].ascending = 1
    return head


@inlined
def _split(state: State, first: int, count: int) -> int:
    """Leave ``count`` nodes in a group, and return the first node of the group of the others."""
    group = state.nodes[first]
    last = first
    for _ in range(count - 1):
        last = state.nodes[last].next
    others: int = state.nodes[last].next
    state.nodes[others].last = group.last
    state.nodes[others].members = group.members - count
    state.nodes[others].ascending = 1
    group.last = last
    group.members = count
    return others
