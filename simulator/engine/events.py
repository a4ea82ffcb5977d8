"""Heaps of events in the order of (time, serial number), and sorting by such a heap."""

from typing import Any

from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import State


@kernel
def push(heap: Any, size: int, time: int, serial: int, job: int) -> None:
    """Add an event to a heap of ``size`` events."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if _is_before(heap[parent].time, heap[parent].serial, time, serial):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place].time = time
    heap[place].serial = serial
    heap[place].job = job


@kernel
def pop(heap: Any, size: int) -> int:
    """Take the first event out of a heap of ``size`` events and return its job."""
    first: int = heap[0].job
    last = size - 1
    time, serial, job = heap[last].time, heap[last].serial, heap[last].job
    place = 0
    while 2 * place + 1 < last:
        child = 2 * place + 1
        if child + 1 < last and _is_before(
            heap[child + 1].time, heap[child + 1].serial, heap[child].time, heap[child].serial
        ):
            child += 1
        if _is_before(time, serial, heap[child].time, heap[child].serial):
            break
        heap[place] = heap[child]
        place = child
    heap[place].time = time
    heap[place].serial = serial
    heap[place].job = job
    return first


@kernel
def _is_before(time: int, serial: int, other_time: int, other_serial: int) -> bool:
    return time < other_time or (time == other_time and serial < other_serial)


@inlined
def enter(state: State, count: int, key: int, place: int) -> None:
    """Enter ``place`` with its ``key`` into a list of ``count`` places that is to be sorted.

    Places with equal keys keep their order.
    """
    push(state.sorting, count, key, count, place)


@kernel
def list_sorted(state: State, count: int) -> None:
    """Write the places that were entered into ``places``, least key first."""
    for number in range(count):
        state.places[number] = pop(state.sorting, count - number)
