"""The profile of free processors in blocks of steps, for policies that plan every waiting job.

It describes the same function as ``profile``. Its steps are stored in blocks, in the order of
time, and each block knows its least and its greatest number of free processors. So a search skips
the blocks in which a job fits nowhere or everywhere, a reservation changes whole blocks at once,
and a new step moves the steps of one block only.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import BLOCK, State

FILLED = BLOCK // 2
"""Steps in each block of a new profile, and in each half of a block that was full."""


@kernel
def profile_running(state: State) -> None:
    """Make the profile of the running jobs alone."""
    clock = state.clock[0]
    clock.blocks = 0
    _append(state, clock.now, clock.free)
    free = clock.free
    last = clock.now
    for place in range(clock.running):
        ends = state.running[place]
        free += ends.processors
        if ends.end > last:
            last = ends.end
            _append(state, last, free)
        else:
            block = state.blocks[clock.blocks - 1]
            state.profile[block.place + block.steps - 1].free = free
    for number in range(clock.blocks):
        _bound(state, number)


@inlined
def _append(state: State, time: int, free: int) -> None:
    """Add a step behind the last; the bounds of its block are not kept."""
    clock = state.clock[0]
    if clock.blocks == 0 or state.blocks[clock.blocks - 1].steps == FILLED:
        state.blocks[clock.blocks].steps = 0
        state.blocks[clock.blocks].added = 0
        state.blocks[clock.blocks].time = time
        clock.blocks += 1
    block = state.blocks[clock.blocks - 1]
    step = state.profile[block.place + block.steps]
    step.time = time
    step.free = free
    block.steps += 1


@inlined
def _bound(state: State, number: int) -> None:
    """Compute the least and the greatest number of free processors of a block."""
    block = state.blocks[number]
    least = state.profile[block.place].free
    greatest = least
    for place in range(block.place + 1, block.place + block.steps):
        free = state.profile[place].free
        least = min(least, free)
        greatest = max(greatest, free)
    block.least = least + block.added
    block.greatest = greatest + block.added


@kernel
def forget_past(state: State) -> None:
    """Let the profile begin now."""
    clock = state.clock[0]
    for _ in range(_block_at(state, clock.now)):
        _drop_first(state)
    first = state.blocks[0]
    gone = _step_in(state, 0, clock.now) - first.place
    if gone > 0:
        first.steps -= gone
        for place in range(first.place, first.place + first.steps):
            state.profile[place] = state.profile[place + gone]
        _bound(state, 0)
    first.time = clock.now
    state.profile[first.place].time = clock.now


@inlined
def _drop_first(state: State) -> None:
    """Remove the first block; the block that is added next gets its place in the profile."""
    clock = state.clock[0]
    place = state.blocks[0].place
    clock.blocks -= 1
    for number in range(clock.blocks):
        state.blocks[number] = state.blocks[number + 1]
    state.blocks[clock.blocks].place = place


@kernel
def earliest(state: State, processors: int, duration: int) -> int:
    """Return the earliest time at which ``processors`` stay free for ``duration`` seconds."""
    blocks = state.clock[0].blocks
    number = 0
    step = state.blocks[0].place
    while True:
        number, step = _first_with(state, number, step, processors)
        start: int = state.profile[step].time
        end = start + duration
        number, step = _first_without(state, number, step, processors, end)
        if number == blocks or state.profile[step].time >= end:
            return start


@inlined
def _first_with(state: State, number: int, step: int, processors: int) -> tuple[int, int]:
    """Return the block and the step, from ``step`` on, at which ``processors`` are free."""
    while True:
        block = state.blocks[number]
        if block.greatest >= processors:
            behind = block.place + block.steps
            wanted = processors - block.added
            while step < behind and state.profile[step].free < wanted:
                step += 1
            if step < behind:
                return number, step
        number += 1
        step = state.blocks[number].place


@inlined
def _first_without(
    state: State, number: int, step: int, processors: int, end: int
) -> tuple[int, int]:
    """Return the first step from ``step`` on with less free, or at ``end`` or later."""
    blocks = state.clock[0].blocks
    while number < blocks:
        block = state.blocks[number]
        behind = block.place + block.steps
        is_whole = number + 1 < blocks and state.blocks[number + 1].time < end
        if block.least < processors or not is_whole:
            wanted = processors - block.added
            while (
                step < behind
                and state.profile[step].time < end
                and state.profile[step].free >= wanted
            ):
                step += 1
            if step < behind:
                return number, step
        number += 1
        step = state.blocks[number].place
    return number, step


@inlined
def take(state: State, start: int, duration: int, processors: int) -> None:
    """Take ``processors`` from ``start`` on for ``duration``; a negative number frees them."""
    _begin_step(state, start)
    _begin_step(state, start + duration)
    first, last = _block_at(state, start), _block_at(state, start + duration)
    begin, end = _step_in(state, first, start), _step_in(state, last, start + duration)
    if first == last:
        _take_steps(state, first, begin, end, processors)
        return
    head = state.blocks[first]
    _take_steps(state, first, begin, head.place + head.steps, processors)
    for number in range(first + 1, last):
        block = state.blocks[number]
        block.added -= processors
        block.least -= processors
        block.greatest -= processors
    _take_steps(state, last, state.blocks[last].place, end, processors)


@kernel
def _take_steps(state: State, number: int, begin: int, end: int, processors: int) -> None:
    """Take processors from some steps of one block."""
    for step in range(begin, end):
        state.profile[step].free -= processors
    if end > begin:
        _bound(state, number)


@inlined
def _block_at(state: State, time: int) -> int:
    """Return the last block that begins at ``time`` or before."""
    low = 0
    high = state.clock[0].blocks
    while high - low > 1:
        middle = (low + high) >> 1
        if state.blocks[middle].time <= time:
            low = middle
        else:
            high = middle
    return low


@inlined
def _step_in(state: State, number: int, time: int) -> int:
    """Return the last step of a block that begins at ``time`` or before."""
    low: int = state.blocks[number].place
    high = low + state.blocks[number].steps
    while high - low > 1:
        middle = (low + high) >> 1
        if state.profile[middle].time <= time:
            low = middle
        else:
            high = middle
    return low


@kernel
def _begin_step(state: State, time: int) -> None:
    """Let a step begin at ``time``."""
    number = _block_at(state, time)
    step = _step_in(state, number, time)
    if state.profile[step].time == time:
        return
    if state.blocks[number].steps == BLOCK:
        _split(state, number)
        number = _block_at(state, time)
        step = _step_in(state, number, time)
    block = state.blocks[number]
    for place in range(block.place + block.steps, step + 1, -1):
        state.profile[place] = state.profile[place - 1]
    block.steps += 1
    state.profile[step + 1].time = time
    state.profile[step + 1].free = state.profile[step].free


@kernel
def _split(state: State, number: int) -> None:
    """Move the second half of a full block into a block of its own."""
    clock = state.clock[0]
    place = state.blocks[clock.blocks].place
    for later in range(clock.blocks, number + 1, -1):
        state.blocks[later] = state.blocks[later - 1]
    clock.blocks += 1
    full, half = state.blocks[number], state.blocks[number + 1]
    half.place = place
    half.added = full.added
    full.steps = FILLED
    half.steps = BLOCK - FILLED
    for step in range(half.steps):
        state.profile[place + step] = state.profile[full.place + FILLED + step]
    half.time = state.profile[place].time
    _bound(state, number)
    _bound(state, number + 1)
