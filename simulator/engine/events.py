"""Heaps of future events, in the order of (time, serial number)."""

from typing import Any

from simulator.engine.compiled import kernel


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
