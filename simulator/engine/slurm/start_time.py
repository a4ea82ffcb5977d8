"""Finds when and where a job could start (``_will_run_test``, ``_future_run_test``).

Running jobs are taken away in the order of their expected ends, in batches of a time window that
doubles whenever the job does not fit yet. So with hours between two ends the window jumps over
many jobs at once, and the nodes are chosen from all that were taken away so far.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm.allocation import free_later, give_back
from simulator.engine.slurm.node_choice import choose
from simulator.engine.slurm.node_sets import meets
from simulator.engine.slurm.slurm_state import (
    BOUNDED_PLANS,
    FUTURE,
    NOW,
    PLAN,
    RELEVANT_ENDS,
    USABLE,
    SlurmState,
)

FIRST_WINDOW = 30
"""Seconds."""

WIDEST_WINDOW = 365 * 86400
"""Seconds; the window is not widened beyond."""


@inlined
def until(state: SlurmState, time: int) -> None:
    """Note that a cycle may find something else from a time on."""
    clock = state.clock[0]
    clock.horizon = min(clock.horizon, time)


@inlined
def expected_end(state: SlurmState, place: int, now: int) -> int:
    """Return when a running job is expected to end (``_soft_job_end``).

    A job past its soft end is taken to use half of the time left until its limit.
    """
    run = state.runs[place]
    end: int = run.soft_end
    if end < run.limit_end and end < now:
        # C divides towards zero, and a job past its limit has a negative rest.
        left = run.limit_end - now
        end = now + (left // 2 if left >= 0 else -(-left // 2))
        until(state, now)
    else:
        until(state, max(now, end))
    return end


@inlined
def _late_end(state: SlurmState, place: int, now: int) -> int:
    """Return when a job may end that is past its expected end (``_guess_job_end``)."""
    rules = state.rules[0]
    until(state, now)
    end: int = state.runs[place].limit_end + rules.kill_wait + rules.over_time_limit
    return max(now + 1, end)


@kernel
def find_start(state: SlurmState, number: int, begin: int, limit: int) -> bool:
    """Find the earliest start of a job on the nodes of ``USABLE``.

    The start is the clock's ``plan_start``, its nodes are the set ``PLAN``.

    Args:
        begin: earliest start that is asked for.
        limit: running jobs that end later are not waited for; 0 means no limit.

    Returns:
        Whether there is such a start.
    """
    clock = state.clock[0]
    clock.plan_start = clock.now
    is_bounded = state.rules[0].release >= BOUNDED_PLANS
    if (begin <= clock.now or not is_bounded) and choose(state, number, NOW):
        return True
    _end_by(state, begin if is_bounded else -1)
    if not is_bounded:
        return _take_away(state, number, 0)
    if choose(state, number, FUTURE):
        return True  # Slurm says now, and the caller takes the later of now and ``begin``
    return _take_away(state, number, limit)


@kernel
def _end_by(state: SlurmState, begin: int) -> None:
    """Free the nodes of jobs that end by a time, and list the others."""
    clock = state.clock[0]
    free_later(state)
    clock.left = 0
    for position in range(clock.running):
        place = state.by_end[position]
        if expected_end(state, place, clock.now) <= begin:
            give_back(state, place, FUTURE)
        else:
            state.remaining[clock.left] = place
            clock.left += 1


@kernel
def _take_away(state: SlurmState, number: int, limit: int) -> bool:
    """Take away the remaining jobs window by window until the job fits."""
    clock = state.clock[0]
    clock.position = clock.removed = clock.aligned = 0
    window = FIRST_WINDOW
    goes_on = True
    while goes_on:
        before = clock.removed
        goes_on = _take_batch(state, window, limit)
        if clock.removed == before:
            return False
        if choose(state, number, FUTURE):
            clock.plan_start = _last_end(state)
            return True
        if goes_on:
            window = _widened(state, window)
    return False


@kernel
def _take_batch(state: SlurmState, window: int, limit: int) -> bool:
    """Take away the jobs that end within the window; return whether others follow."""
    clock, now = state.clock[0], state.clock[0].now
    while clock.position < clock.left:
        place = state.remaining[clock.position]
        clock.position += 1
        end = expected_end(state, place, now)
        if limit and end > limit:
            return False
        if not meets(state.sets, USABLE, state.run_sets, place):
            continue
        if clock.aligned == 0:
            clock.aligned = end + FIRST_WINDOW - end % FIRST_WINDOW
        give_back(state, place, FUTURE)
        state.removed[clock.removed] = place
        clock.removed += 1
        if clock.position < clock.left:
            following = state.remaining[clock.position]
            if expected_end(state, following, now) > clock.aligned + window:
                return True
    return False


@inlined
def _widened(state: SlurmState, window: int) -> int:
    """Return a window that reaches the end of the next job."""
    clock = state.clock[0]
    following_end = expected_end(state, state.remaining[clock.position], clock.now)
    window = _wider(state, window)
    while window <= WIDEST_WINDOW and following_end > clock.aligned + window:
        window = _wider(state, window)
    return window


@inlined
def _wider(state: SlurmState, window: int) -> int:
    linear: int = state.rules[0].bf_window_linear
    if window > WIDEST_WINDOW:
        return window
    return window + linear if linear else 2 * window


@inlined
def _last_end(state: SlurmState) -> int:
    """Return the end of the last job taken away that gives nodes to the plan.

    Before ``RELEVANT_ENDS`` it is that of the last job, with or without such nodes.
    """
    now = state.clock[0].now
    last = state.clock[0].removed - 1
    while state.rules[0].release >= RELEVANT_ENDS and not meets(
        state.sets, PLAN, state.run_sets, state.removed[last]
    ):
        last -= 1
    end: int = expected_end(state, state.removed[last], now)
    return end if end > now else _late_end(state, state.removed[last], now)
