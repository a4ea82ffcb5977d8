"""The scheduling loop goes from event to event and asks the policy after each.

Each policy has a loop of its own, with its ``decide`` in it (``loop_of``): a change of one policy
compiles one loop.

By default the events of one second are a batch: first the jobs that end, then the estimates that
are outlived, then the submissions, then one scheduling pass. A second that has only an outlived
estimate or a planned start has a pass, too.

In sequence (the order of pyss), the outlived estimates come first. Then the processors of running
jobs that are expected to end now, and do, count as free. Then comes each submission, then each
end in the order in which the jobs were started, each followed by its own pass. Outlived estimates
alone have no pass, except under policies that keep a plan: these repair the plan in one pass
before the submissions.

An estimate is outlived when its end comes before the job's. A job that ends exactly at its
expected end does not outlive its estimate.
"""

from collections.abc import Callable
from typing import Any

from simulator.engine import events, machine, queue_orders
from simulator.engine.compiled import copied, inlined, kernel, with_parts
from simulator.engine.state import NEVER, UNKNOWN, State, whole_seconds

DONE, PAUSED, ESTIMATES_WANTED = range(3)

Decide = Callable[[State], None]
"""A policy: starts jobs of the queue, and changes nothing else but its own plans."""

Loop = Callable[[State], int]
"""Runs a simulation until it stops: DONE, PAUSED or ESTIMATES_WANTED."""

_whole_seconds = inlined(whole_seconds)


@inlined
def _next_time(state: State) -> int:
    """The time of the next event."""
    clock = state.clock[0]
    time: int = min(clock.next_planned, next_submission(state))
    if clock.ends > 0:
        time = min(time, state.ends[0].time)
    if clock.expiries > 0:
        time = min(time, state.expiries[0].time)
    return time


@inlined
def next_submission(state: Any) -> int:
    """Return when the next job is submitted; NEVER if none is left."""
    submitted = state.clock[0].submitted
    if submitted == len(state.jobs):
        return NEVER
    # A simulation may begin with jobs that were submitted before: they join at once.
    time: int = max(state.clock[0].now, state.jobs[submitted].submit)
    return time


def _batch(state: State) -> bool:
    """Process all events of this second, then one pass; false if estimates are wanted first."""
    clock = state.clock[0]
    while clock.ends > 0 and state.ends[0].time == clock.now:
        number = events.pop(state.ends, clock.ends)
        machine.finish(state, number)
        clock.ends -= 1
        _release(state, number)
    if not estimates_are_there(state):
        return False
    _prolong_outlived(state)
    while next_submission(state) == clock.now:
        if not state.jobs[clock.submitted].withheld:
            queue_orders.join(state, clock.submitted)
        clock.submitted += 1
    _pass(state)
    return True


@inlined
def _release(state: Any, ended: int) -> None:
    """Let the next task of a throttled array join the queue, in its place, when one has ended."""
    array = state.jobs[ended].array
    if array:
        first = state.jobs[array - 1]
        first.room += 1
        if first.room > 0 and first.turn:
            task = first.turn - 1
            first.turn = state.jobs[task].next_task
            first.room -= 1
            queue_orders.join(state, task)
            queue_orders.sort(state)


def _sequence(state: State) -> bool:
    """Process the events of this second one by one; false if estimates are wanted first."""
    clock = state.clock[0]
    if not estimates_are_there(state):
        return False
    _prolong_outlived(state)
    _release_expected(state)
    # A policy that keeps a plan repairs the plan, and starts the jobs that are due.
    is_due = clock.disturbed or clock.next_planned == clock.now
    if is_due and clock.next_planned < NEVER:
        _pass(state)
    while next_submission(state) == clock.now:
        if not state.jobs[clock.submitted].withheld:
            queue_orders.join(state, clock.submitted)
        clock.submitted += 1
        _pass(state)
    for place in range(clock.ending):
        machine.finish(state, state.ending[place].job)
        _release(state, state.ending[place].job)
        _pass(state)
    clock.ending = 0
    return True


@inlined
def estimates_are_there(state: Any) -> bool:
    """Return whether all jobs that are submitted this second have their estimates."""
    clock = state.clock[0]
    there = True
    clock.wanted = clock.submitted
    while clock.wanted < len(state.jobs) and state.jobs[clock.wanted].submit <= clock.now:
        job = state.jobs[clock.wanted]
        if job.estimate == UNKNOWN and job.predicted > 0:
            job.estimate = _whole_seconds(job.predicted)
        there &= job.estimate != UNKNOWN
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
    """List the jobs that end now, and free the processors of those that are expected to."""
    clock = state.clock[0]
    while clock.ends > 0 and state.ends[0].time == clock.now:
        job = events.pop(state.ends, clock.ends)
        clock.ends -= 1
        state.ending[clock.ending].job = job
        clock.ending += 1
        if state.jobs[job].expected_end == clock.now:
            machine.release(state, job)


def _pass(state: State) -> None:
    """One scheduling pass: order the queue, let the policy decide, close the gaps."""
    queue_orders.arrange(state)
    _decide(state)
    _close_gaps(state)
    state.clock[0].ended = 0


@inlined
def _close_gaps(state: State) -> None:
    """Take started jobs out of the queue and mark those behind a waiting job as backfilled."""
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


def _decide(state: State) -> None:
    """Stand for the policy in the parts of the loop."""
    raise NotImplementedError


def _play(state: State) -> int:
    """Run until all jobs have ended, until the pause, or until a submission has no estimate.

    Before such a submission the loop stops when the clock shows its second. Then ``finished``
    holds all jobs that had ended by that second (in sequence: before that second), and the jobs
    from ``submitted`` on and before ``wanted`` need estimates.
    """
    clock = state.clock[0]
    while True:
        time = _next_time(state)
        if time == NEVER:
            return DONE
        if next_submission(state) == time and clock.submitted >= clock.pause_at:
            return PAUSED
        clock.now = time
        if not (_sequence(state) if state.rules[0].sequential else _batch(state)):
            return ESTIMATES_WANTED


def loop_of(decide: Decide) -> Loop:
    """Return the scheduling loop under a policy."""
    owner = decide.__module__.rpartition(".")[2]
    one_pass = copied(with_parts(_pass, owner, _decide=decide))
    batch = copied(with_parts(_batch, owner, _pass=one_pass))
    sequence = copied(with_parts(_sequence, owner, _pass=one_pass))
    return kernel(with_parts(_play, owner, _batch=batch, _sequence=sequence))
