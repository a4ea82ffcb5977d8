"""The scheduling loop: goes from event to event, and asks the policy after each.

Events of one second, by default in a batch: the jobs that end, then the estimates that are
outlived, then the submissions, then one scheduling pass; a second with only an outlived
estimate, or only a start that was planned for it, has its pass too.

In sequence (the order of pyss): the estimates that are outlived; then the processors of running
jobs whose expected end is now and true count as free; then each submission, then each end, by
the order in which the jobs were started, each followed by its own pass. There is no pass after
estimates alone, except for policies that keep a plan: these need it to repair the plan, once,
before the submissions.

An estimate is outlived when its end comes before the job's; a job that ends exactly when it is
expected to does not outlive anything.
"""

from predictors.compiled import compiled
from simulator.engine import events, machine, policies, queue_orders
from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import NEVER, UNKNOWN, State

DONE, PAUSED, ESTIMATES_WANTED = range(3)


@kernel
def _run(state: State) -> int:
    clock = state.clock[0]
    while True:
        time = _next_time(state)
        if time == NEVER:
            return DONE
        if _next_submission(state) == time and clock.submitted >= clock.pause_at:
            return PAUSED
        clock.now = time
        if not (_sequence(state) if state.rules[0].sequential else _batch(state)):
            return ESTIMATES_WANTED


@inlined
def _next_time(state: State) -> int:
    """When something happens next."""
    clock = state.clock[0]
    time: int = min(clock.next_planned, _next_submission(state))
    if clock.ends > 0:
        time = min(time, state.ends[0].time)
    if clock.expiries > 0:
        time = min(time, state.expiries[0].time)
    return time


@inlined
def _next_submission(state: State) -> int:
    submitted = state.clock[0].submitted
    if submitted == len(state.jobs):
        return NEVER
    # A simulation may begin with jobs that were submitted before: they join at once.
    time: int = max(state.clock[0].now, state.jobs[submitted].submit)
    return time


@kernel
def _batch(state: State) -> bool:
    """All events of this second, then one pass; false if estimates are wanted first."""
    clock = state.clock[0]
    while clock.ends > 0 and state.ends[0].time == clock.now:
        machine.finish(state, events.pop(state.ends, clock.ends))
        clock.ends -= 1
    if not _estimates_are_there(state):
        return False
    _prolong_outlived(state)
    while _next_submission(state) == clock.now:
        queue_orders.join(state, clock.submitted)
        clock.submitted += 1
    _pass(state)
    return True


@kernel
def _sequence(state: State) -> bool:
    """The events of this second one by one; false if estimates are wanted first."""
    clock = state.clock[0]
    if not _estimates_are_there(state):
        return False
    _prolong_outlived(state)
    _release_expected(state)
    if clock.disturbed or clock.next_planned == clock.now:
        _repair(state)
    while _next_submission(state) == clock.now:
        queue_orders.join(state, clock.submitted)
        clock.submitted += 1
        _pass(state)
    for place in range(clock.ending):
        machine.finish(state, state.ending[place].job)
        _pass(state)
    clock.ending = 0
    return True


@inlined
def _estimates_are_there(state: State) -> bool:
    """Whether all jobs that are submitted this second have their estimates."""
    clock = state.clock[0]
    there = True
    clock.wanted = clock.submitted
    while clock.wanted < len(state.jobs) and state.jobs[clock.wanted].submit <= clock.now:
        there &= state.jobs[clock.wanted].estimate != UNKNOWN
        clock.wanted += 1
    return there


@inlined
def _prolong_outlived(state: State) -> None:
    """Correct the estimates that are outlived now, in the order in which the jobs started."""
    clock = state.clock[0]
    while clock.expiries > 0 and state.expiries[0].time == clock.now:
        job = events.pop(state.expiries, clock.expiries)
        clock.expiries -= 1
        machine.prolong(state, job)


@kernel
def _release_expected(state: State) -> None:
    """List the jobs that end now, and free the processors of those expected to."""
    clock = state.clock[0]
    while clock.ends > 0 and state.ends[0].time == clock.now:
        job = events.pop(state.ends, clock.ends)
        clock.ends -= 1
        state.ending[clock.ending].job = job
        clock.ending += 1
        if state.jobs[job].expected_end == clock.now:
            machine.release(state, job)


@kernel
def _repair(state: State) -> None:
    """Let a policy that keeps a plan repair it, and start what is due."""
    if state.clock[0].next_planned < NEVER:
        _pass(state)


@kernel
def _pass(state: State) -> None:
    """One scheduling pass: order the queue, let the policy decide, close the gaps."""
    queue_orders.arrange(state)
    policies.decide(state)
    _close_gaps(state)
    state.clock[0].completions = 0


@inlined
def _close_gaps(state: State) -> None:
    """Take started jobs out of the queue, whose front moves up; who passed it was backfilled."""
    clock = state.clock[0]
    queue = state.queue
    front = clock.head
    while front <= clock.rearmost and queue[front].started:
        front += 1
    free = clock.rearmost
    for place in range(clock.rearmost, front - 1, -1):
        if queue[place].started:
            state.jobs[queue[place].job].backfilled = 1
        else:
            if free > place:
                queue[free] = queue[place]
            free -= 1
    if clock.rearmost >= clock.head:
        clock.head = free + 1
    clock.rearmost = UNKNOWN


@compiled
def run(state: State) -> int:
    """Go on until all is done, or the pause, or a submission without an estimate.

    The loop stops before such submissions when the clock shows their second and all that
    ended by then (in sequence: before then) is in ``finished``; it wants the estimates of
    the jobs from ``submitted`` on and before ``wanted``.
    """
    return _run(state)
