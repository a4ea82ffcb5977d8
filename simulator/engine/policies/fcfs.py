"""No backfilling: no job passes the head of the queue."""

from predictors.compiled import compiled, of_same_types
from simulator.engine import machine
from simulator.engine.compiled import kernel
from simulator.engine.loop import loop_of
from simulator.engine.state import State


@kernel
def decide(state: State) -> None:
    """Start jobs from the head of the queue as long as the head fits."""
    clock = state.clock[0]
    for place in range(clock.head, clock.tail):
        if state.queue[place].processors > clock.free:
            return
        machine.start(state, place)


_play = loop_of(decide)


@of_same_types
@compiled
def run(state: State) -> int:
    """Run a simulation under this policy until it stops."""
    return _play(state)
