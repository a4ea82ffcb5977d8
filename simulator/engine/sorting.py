"""Lists places of the queue in the order of a key; places with equal keys keep their order."""

from simulator.engine import events
from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import State


@inlined
def enter(state: State, count: int, key: int, place: int) -> None:
    """Enter ``place`` with its ``key`` into a list of ``count`` places that is to be sorted."""
    events.push(state.sorting, count, key, count, place)


@kernel
def list_sorted(state: State, count: int) -> None:
    """Write the places that were entered into ``places``, least key first."""
    for number in range(count):
        state.places[number] = events.pop(state.sorting, count - number)
