"""Conservative backfilling: every job has a planned start that no later job may delay.

A job is planned at its submission, at the earliest slot beside all running and planned jobs, and
starts at its planned start. Jobs due at the same time start in the order in which these starts
were planned. When running jobs have ended early or outlived their estimates, the plan is
compressed before new jobs are planned, in one of three ways:

- ``start-order``: all plans are dropped and made again in the order of their planned starts,
  ties by the queue (Klusáček & Soysal 2020, section 3.1). No start is planned later than before,
  unless an estimate was prolonged.
- ``keep``: each job in the order of the queue is lifted out and put back at its earliest slot
  while the others stay. This happens once in every pass in which a job has ended, early or not
  (Feitelson & Weil 1998; pyss). No start is planned later than before, unless an estimate was
  prolonged.
- ``replan``: all plans are dropped and made again in the order of the queue.
"""

from collections.abc import Mapping

from predictors.compiled import compiled, of_same_types
from simulator.engine import machine
from simulator.engine.compiled import inlined, kernel
from simulator.engine.events import enter, list_sorted
from simulator.engine.loop import loop_of
from simulator.engine.profile import earliest, forget_past, profile_running, take
from simulator.engine.state import NEVER, UNKNOWN, State

START_ORDER, KEEP, REPLAN = range(3)

COMPRESSIONS: Mapping[str, int] = {"start-order": START_ORDER, "keep": KEEP, "replan": REPLAN}

MEANINGS: Mapping[str, str] = {
    "start-order": "jobs are planned anew in the order of their planned starts",
    "keep": "each job in the order of the queue is lifted out and put back while others stay",
    "replan": "jobs are planned anew in the order of the queue",
}


@kernel
def decide(state: State) -> None:
    """Compress the plan if it has room, plan the new jobs, and start the jobs that are due."""
    clock = state.clock[0]
    compression = state.rules[0].compression
    if compression == KEEP and (clock.ended or clock.disturbed):
        _put_back(state)
    elif compression != KEEP and clock.disturbed:
        _plan_again(state, compression)
    else:
        forget_past(state)
    clock.disturbed = 0
    for place in range(clock.head, clock.tail):
        if state.queue[place].planned == UNKNOWN:
            _plan(state, place)
    _start_due(state)


@inlined
def _plan(state: State, place: int) -> None:
    """Plan a job at the earliest slot."""
    waiting = state.queue[place]
    begin = earliest(state, waiting.processors, waiting.estimate)
    take(state, begin, waiting.estimate, waiting.processors)
    if begin == waiting.planned:
        return
    job = state.jobs[waiting.job]
    if job.promise == UNKNOWN:
        job.promise = begin
        job.in_gap = _is_before_a_plan(state, begin)
    waiting.planned = begin
    waiting.plan_serial = state.clock[0].plans
    state.clock[0].plans += 1


@kernel
def _is_before_a_plan(state: State, begin: int) -> bool:
    """Whether a job of the queue has a planned start later than ``begin``."""
    for place in range(state.clock[0].head, state.clock[0].tail):
        if state.queue[place].planned > begin:
            return True
    return False


@kernel
def _plan_again(state: State, compression: int) -> None:
    """Drop all plans and make them again, by previous start or in the order of the queue."""
    profile_running(state)
    count = 0
    for place in range(state.clock[0].head, state.clock[0].tail):
        planned = state.queue[place].planned
        if planned != UNKNOWN:
            enter(state, count, planned if compression == START_ORDER else 0, place)
            count += 1
    list_sorted(state, count)
    for number in range(count):
        _plan(state, state.places[number])


@kernel
def _put_back(state: State) -> None:
    """Lift out each job in the order of the queue and put it back at its earliest slot."""
    clock = state.clock[0]
    profile_running(state)
    for place in range(clock.head, clock.tail):
        waiting = state.queue[place]
        if waiting.planned != UNKNOWN:
            take(state, waiting.planned, waiting.estimate, waiting.processors)
    for place in range(clock.head, clock.tail):
        waiting = state.queue[place]
        if waiting.planned != UNKNOWN:
            take(state, waiting.planned, waiting.estimate, -waiting.processors)
            _plan(state, place)


@kernel
def _start_due(state: State) -> None:
    """Start the jobs whose planned start has come, and note the next planned start."""
    clock = state.clock[0]
    clock.next_planned = NEVER
    due = 0
    for place in range(clock.head, clock.tail):
        waiting = state.queue[place]
        if waiting.planned > clock.now:
            clock.next_planned = min(clock.next_planned, waiting.planned)
        else:
            enter(state, due, waiting.plan_serial, place)
            due += 1
    list_sorted(state, due)
    for number in range(due):
        waiting = state.queue[state.places[number]]
        machine.start(state, state.places[number])
        if state.jobs[waiting.job].expected_end != clock.now + waiting.estimate:
            clock.disturbed = 1  # planned by one estimate, but it runs by another


_play = loop_of(decide)


@of_same_types
@compiled
def run(state: State) -> int:
    """Run a simulation under this policy until it stops."""
    return _play(state)
