"""The machine starts and ends jobs, prolongs their estimates, and refuses impossible starts."""

from collections.abc import Mapping

from predictors.correction import TSAFRIR_STEPS
from simulator.engine import events
from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import State

DOUBLE, REQUEST, TSAFRIR = range(3)

CORRECTION_NUMBERS: Mapping[str, int] = {"double": DOUBLE, "request": REQUEST, "tsafrir": TSAFRIR}

_STEPS = tuple(int(step) for step in TSAFRIR_STEPS)


@kernel
def corrected(correction: int, first: int, request: int, elapsed: int) -> int:
    """Return the estimate of a job that has run for ``elapsed`` seconds, from its first estimate.

    The request is the limit of every correction. A job outlives its request only where overruns
    are kept. Then the estimate is doubled until it exceeds ``elapsed``.
    """
    estimate = first
    if correction == TSAFRIR:
        for step in _STEPS:
            if estimate > elapsed:
                break
            estimate = first + step
    if correction != DOUBLE and estimate <= elapsed:
        estimate = request
    while estimate <= elapsed:
        estimate *= 2
    if elapsed < request:
        return min(estimate, request)
    doubled = request
    while doubled <= elapsed:
        doubled *= 2
    return doubled


class ImpossibleError(RuntimeError):
    """A policy asked for something impossible: the policy is wrong, the simulation is void."""


@kernel
def start(state: State, place: int) -> None:
    """Start the job at a place of the queue now."""
    clock = state.clock[0]
    waiting = state.queue[place]
    job = state.jobs[waiting.job]
    if waiting.started:
        raise ImpossibleError("a job can start only once")
    if job.processors > clock.free:
        raise ImpossibleError("a job needs more processors than are free")
    waiting.started = 1
    clock.rearmost = max(clock.rearmost, place)
    clock.free -= job.processors
    job.start = clock.now
    job.serial = clock.started
    clock.started += 1
    end = clock.now + job.runtime
    events.push(state.ends, clock.ends, end, job.serial, waiting.job)
    clock.ends += 1
    running_estimate = job.estimate if state.rules[0].estimated_running else job.request
    _expect(state, waiting.job, clock.now + running_estimate)


@inlined
def release(state: State, number: int) -> None:
    """Count the processors of a job as free when it ends this second, as expected."""
    job = state.jobs[number]
    _leave(state, number)
    job.released = 1
    state.clock[0].free += job.processors


@inlined
def finish(state: State, number: int) -> None:
    """End a job now."""
    clock = state.clock[0]
    job = state.jobs[number]
    if not job.released:
        _leave(state, number)
        clock.free += job.processors
    if job.expected_end > clock.now:
        clock.disturbed = 1
        job.expected_end = clock.now
    clock.ended = 1
    state.finished[clock.finished] = number
    clock.finished += 1


@kernel
def prolong(state: State, number: int) -> None:
    """Give a running job that outlived its estimate the next one."""
    job = state.jobs[number]
    rules = state.rules[0]
    first = job.estimate if rules.estimated_running else job.request
    elapsed = state.clock[0].now - job.start
    _leave(state, number)
    job.corrections += 1
    _expect(state, number, job.start + corrected(rules.correction, first, job.request, elapsed))
    state.clock[0].disturbed = 1


@inlined
def _expect(state: State, number: int, end: int) -> None:
    """Enter a job into the list of running jobs, and note when the job will outlive ``end``."""
    clock = state.clock[0]
    job = state.jobs[number]
    job.expected_end = end
    place = clock.running
    while place > 0 and state.running[place - 1].end > end:
        state.running[place] = state.running[place - 1]
        place -= 1
    state.running[place].end = end
    state.running[place].processors = job.processors
    state.running[place].job = number
    clock.running += 1
    if end < job.start + job.runtime:
        events.push(state.expiries, clock.expiries, end, job.serial, number)
        clock.expiries += 1


@inlined
def _leave(state: State, number: int) -> None:
    """Take a job out of the list of running jobs."""
    clock = state.clock[0]
    end = state.jobs[number].expected_end
    low = 0
    high = clock.running
    while low < high:
        middle = (low + high) >> 1
        if state.running[middle].end < end:
            low = middle + 1
        else:
            high = middle
    while state.running[low].job != number:
        low += 1
    clock.running -= 1
    for place in range(low, clock.running):
        state.running[place] = state.running[place + 1]
