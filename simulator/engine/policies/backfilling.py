"""EASY backfilling and its relatives: the first blocked jobs have reservations, others may pass.

Every pass begins anew from the expected ends of the running jobs. The queue is served from its
head, and a job that fits starts. Of the jobs that do not fit, the first ``depth`` (1 is EASY)
reserve the earliest slot. The jobs behind the last reservation are candidates. A candidate starts
if it fits beside the reservations from now until its estimated end. With one reservation this is
the usual rule: p <= free and (t + q <= shadow time or p <= extra). The shadow time is the start
that the head of the queue has reserved; extra are the processors that the head leaves free then.

Candidates are tried in the order of the queue or of their estimates (SJBF), ties by the queue.

References: D. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Tsafrir, Etsion and
Feitelson 2007 for the shortest first.
"""

from predictors.compiled import compiled, of_same_types
from simulator.engine import machine
from simulator.engine.compiled import inlined, kernel
from simulator.engine.events import enter, list_sorted
from simulator.engine.loop import loop_of
from simulator.engine.profile import earliest, free_until, note_lows, profile_running, take
from simulator.engine.state import State


@kernel
def decide(state: State) -> None:
    """Start the jobs that fit, from the head on; then reserve, then backfill."""
    clock = state.clock[0]
    queue = state.queue
    place = clock.head
    while place < clock.tail and queue[place].processors <= clock.free:
        machine.start(state, place)
        place += 1
    if place == clock.tail:
        return
    if not _anyone_fits(state, place + 1):
        return  # a reservation that is forgotten with the pass would change nothing
    profile_running(state)
    candidates = _gather(state, _reserve(state, place))
    for number in range(candidates):
        place = state.places[number]
        if clock.free == 0:
            return
        if queue[place].processors <= free_until(state, clock.now + queue[place].estimate):
            _start(state, place)


@inlined
def _anyone_fits(state: State, first: int) -> bool:
    """Whether any job from place ``first`` of the queue on fits into the free processors."""
    clock = state.clock[0]
    if clock.free > 0:
        for place in range(first, clock.tail):
            if state.queue[place].processors <= clock.free:
                return True
    return False


@kernel
def _reserve(state: State, place: int) -> int:
    """Reserve for the first blocked jobs, start jobs between, return the place after the last."""
    clock = state.clock[0]
    reserved = 0
    while place < clock.tail and reserved < state.rules[0].depth:
        waiting = state.queue[place]
        begin = earliest(state, waiting.processors, waiting.estimate)
        if begin == clock.now:
            machine.start(state, place)
        else:
            reserved += 1
        take(state, begin, waiting.estimate, waiting.processors)
        place += 1
    note_lows(state)
    return place


@kernel
def _gather(state: State, first: int) -> int:
    """List the places of candidates that fit now, in the order they are tried; their number."""
    clock = state.clock[0]
    shortest_first = state.rules[0].shortest_first
    count = 0
    for place in range(first, clock.tail):
        waiting = state.queue[place]
        if waiting.processors <= clock.free:
            enter(state, count, waiting.estimate if shortest_first else 0, place)
            count += 1
    list_sorted(state, count)
    return count


@inlined
def _start(state: State, place: int) -> None:
    waiting = state.queue[place]
    machine.start(state, place)
    take(state, state.clock[0].now, waiting.estimate, waiting.processors)
    note_lows(state)


_play = loop_of(decide)


@of_same_types
@compiled
def run(state: State) -> int:
    """Run a simulation under this policy until it stops."""
    return _play(state)
