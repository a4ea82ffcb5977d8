"""The number of free processors over time, if every job ends when it is expected to.

A profile is a list of steps in the order of time. The first step is now, and nothing changes
after the last.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import State


@kernel
def profile_running(state: State) -> None:
    """Make the profile of the running jobs alone."""
    clock = state.clock[0]
    profile = state.profile
    last = 0
    free = clock.free
    profile[0].time = clock.now
    profile[0].free = free
    for place in range(clock.running):
        ends = state.running[place]
        free += ends.processors
        if ends.end > profile[last].time:
            last += 1
            profile[last].time = ends.end
        profile[last].free = free
    clock.steps = last + 1


@inlined
def forget_past(state: State) -> None:
    """Let the profile begin now."""
    clock = state.clock[0]
    first = _step_at(state, clock.now)
    if first > 0:
        clock.steps -= first
        for step in range(clock.steps):
            state.profile[step] = state.profile[first + step]
    state.profile[0].time = clock.now


@inlined
def earliest(state: State, processors: int, duration: int) -> int:
    """The earliest time at which ``processors`` stay free for ``duration`` seconds."""
    profile = state.profile
    steps = state.clock[0].steps
    step = 0
    while True:
        while profile[step].free < processors:
            step += 1
        start: int = profile[step].time
        end = start + duration
        step += 1
        while step < steps and profile[step].time < end and profile[step].free >= processors:
            step += 1
        if step >= steps or profile[step].time >= end:
            return start


@inlined
def take(state: State, start: int, duration: int, processors: int) -> None:
    """Take ``processors`` from ``start`` on for ``duration``; a negative number frees them."""
    first = _step_from(state, start)
    after = _step_from(state, start + duration)
    for step in range(first, after):
        state.profile[step].free -= processors


@inlined
def note_lows(state: State) -> None:
    """Note at each step the least number of processors that are free from now to that step."""
    low = state.profile[0].free
    for step in range(state.clock[0].steps):
        low = min(low, state.profile[step].free)
        state.profile[step].min_free_so_far = low


@inlined
def free_until(state: State, time: int) -> int:
    """The number of processors that stay free from now until ``time``, by the noted lows."""
    low: int = state.profile[_step_at(state, time - 1)].min_free_so_far
    return low


@inlined
def _step_at(state: State, time: int) -> int:
    """The last step that begins at ``time`` or before."""
    low = 0
    high = state.clock[0].steps
    while high - low > 1:
        middle = (low + high) >> 1
        if state.profile[middle].time <= time:
            low = middle
        else:
            high = middle
    return low


@inlined
def _step_from(state: State, time: int) -> int:
    """The step that begins at ``time``; a new one if there is none."""
    step = _step_at(state, time)
    if state.profile[step].time == time:
        return step
    clock = state.clock[0]
    for place in range(clock.steps, step + 1, -1):
        state.profile[place] = state.profile[place - 1]
    clock.steps += 1
    state.profile[step + 1].time = time
    state.profile[step + 1].free = state.profile[step].free
    return step + 1
