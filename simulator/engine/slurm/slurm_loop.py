"""The loop goes from event to event and wakes the schedulers as slurmctld's threads do.

Events of one second: jobs end, epilogs end, priorities are computed, jobs are submitted, the main
scheduler looks at the queue, the backfill agent begins a cycle.
"""

from predictors.compiled import compiled, of_same_types
from simulator.engine import events
from simulator.engine.compiled import inlined, kernel
from simulator.engine.loop import (
    DONE,
    ESTIMATES_WANTED,
    PAUSED,
    estimates_are_there,
    next_submission,
)
from simulator.engine.machine import ImpossibleError
from simulator.engine.queue_orders import aged_length, length_of, site_factor
from simulator.engine.slurm import allocation, backfill, main_scheduler, priorities, reservations
from simulator.engine.slurm.slurm_state import SlurmState
from simulator.engine.state import NEVER

BY_ESTIMATE, BY_LIMIT = 1, 2
"""The lengths by which the queue is ordered; 0: by submission or priority."""

SECOND = 1000
"""Milliseconds."""

STUCK = 3
"""The answer beside those of ``simulator.engine.loop``: a job waits that can never start."""


@kernel
def play(state: SlurmState) -> int:
    """Run until all jobs have ended, a pause, a submission without estimate, or for ever."""
    clock = state.clock[0]
    while True:
        submission = next_submission(state)
        time = min(submission, next_end(state))
        if clock.waiting == 0 and time == NEVER:
            return DONE
        time = min(time, _next_look(state), _next_cycle(state) // SECOND)
        if state.rules[0].multifactor and clock.waiting:
            time = min(time, max(clock.now, clock.priority_due))
        if state.rules[0].reservations and clock.waiting:
            time = min(time, clock.reservation_due)
        if time >= NEVER // SECOND:
            raise ImpossibleError("a job waits that no node is ever free for")
        if submission == time and clock.submitted >= clock.pause_at:
            return PAUSED
        clock.now = max(clock.now, time)
        if not estimates_are_there(state):
            return ESTIMATES_WANTED
        if state.rules[0].reservations and clock.reservation_due <= clock.now:
            reservations.advance(state)
            if reservations.leaves_no_time(state):
                return STUCK
        _end_jobs(state)
        _compute_priorities(state)
        _submit(state)
        _look(state)
        _run_cycle(state)


@inlined
def next_end(state: SlurmState) -> int:
    """Return when the next job or epilog ends; NEVER if none runs."""
    clock = state.clock[0]
    time = NEVER
    if clock.ends:
        time = min(time, state.ends[0].time)
    if clock.epilogs:
        time = min(time, state.epilogs[0].time)
    return time


@inlined
def _next_look(state: SlurmState) -> int:
    """Return when the main scheduler is next woken by the clock, if there is anything to see."""
    clock, rules = state.clock[0], state.rules[0]
    if clock.waiting == 0:
        return NEVER
    due: int = clock.main_due
    if clock.main_open:
        due = min(due, -(-clock.now // rules.sched_interval) * rules.sched_interval)
    return due


@inlined
def _on_grid(time: int, earliest: int, step: int) -> int:
    """Return the first of ``time``, ``time + step``, … that is not before ``earliest``."""
    return time if time >= earliest else time + -(-(earliest - time) // step) * step


@inlined
def _next_cycle(state: SlurmState) -> int:
    """Return the millisecond in which the next cycle begins; NEVER if nothing calls for one.

    The agent sleeps for ``bf_interval`` after a cycle. If jobs waited, their planned nodes were
    marked, and the next cycle begins at once; else it looks once a second for a change.
    """
    clock, rules = state.clock[0], state.rules[0]
    if clock.logged_cycle < len(state.logged_cycles):
        logged: int = state.logged_cycles[clock.logged_cycle]
        return logged
    if clock.polling:
        if not clock.changed:
            return NEVER
        return _on_grid(clock.cycle_due, SECOND * clock.now, SECOND)
    earliest: int = clock.now
    if not rules.skips:
        due: int = clock.cycle_due
        return due
    if not clock.changed:
        earliest = max(earliest, clock.horizon)
    if earliest == NEVER:
        return NEVER
    period = SECOND * rules.bf_interval + clock.cycle_busy
    return _on_grid(clock.cycle_due, SECOND * earliest, period)


@inlined
def _end_jobs(state: SlurmState) -> None:
    clock = state.clock[0]
    ended = False
    while clock.ends and state.ends[0].time <= clock.now:
        number = events.pop(state.ends, clock.ends)
        allocation.finish(state, number)
        clock.ends -= 1
        ended |= state.jobs[number].first_epilog == 0
    while clock.epilogs and state.epilogs[0].time <= clock.now:
        allocation.end_epilog(state, events.pop(state.epilogs, clock.epilogs))
        clock.epilogs -= 1
        ended = True
    if ended and clock.waiting and not state.rules[0].defer:
        main_scheduler.look(state, 0)
    elif ended and clock.waiting:
        _queue_look(state)


@inlined
def _queue_look(state: SlurmState) -> None:
    """Let the main scheduler look at the queue soon (``queue_job_scheduler``)."""
    clock, rules = state.clock[0], state.rules[0]
    last = max(clock.main_last, clock.now // rules.sched_interval * rules.sched_interval)
    due = max(clock.now, last + rules.batch_sched_delay)
    clock.main_due = min(clock.main_due, due) if clock.main_due >= clock.now else due


@inlined
def _compute_priorities(state: SlurmState) -> None:
    """Compute the priorities of waiting jobs anew, if it is time."""
    clock = state.clock[0]
    if state.rules[0].multifactor and clock.waiting and clock.priority_due <= clock.now:
        priorities.compute(state)


@inlined
def _submit(state: SlurmState) -> None:
    clock = state.clock[0]
    while clock.submitted < len(state.jobs) and state.jobs[clock.submitted].submit <= clock.now:
        number = clock.submitted
        clock.submitted += 1
        _use_estimate(state, number)
        priorities.join(state, number)
        _queue_look(state)


@inlined
def _use_estimate(state: SlurmState, number: int) -> None:
    """Make a job's estimate its TimeMin and its place in the queue, as the rules say.

    TimeMin is whole minutes, and none where it would not be less than the limit. Where several
    factors make the priority, the length is one of them.
    """
    rules, job = state.rules[0], state.jobs[number]
    minutes = -(-job.estimate // 60)
    if rules.time_min and 60 * minutes < job.limit:
        job.time_min = 60 * minutes
    length = job.limit
    if rules.shortest_first == BY_ESTIMATE:
        length = 60 * -(-length_of(job) // 60)
    job.order_length = length
    factor, most = rules.length_factor, rules.most_precedence
    if rules.multifactor:
        if rules.shortest_first and not rules.offset:
            job.fixed_score += site_factor(length, rules.largest_site_factor, factor, most)
        priorities.set_score(state, number)
    elif rules.shortest_first:
        job.score = -aged_length(job.submit, length, factor, most) if factor else -length


@inlined
def _look(state: SlurmState) -> None:
    """Let the main scheduler look at the queue, if it is due (``_slurmctld_background``)."""
    clock = state.clock[0]
    whole_queue = clock.now % state.rules[0].sched_interval == 0
    if not whole_queue and clock.main_due > clock.now:
        return
    if clock.main_open and clock.waiting:
        main_scheduler.look(state, whole_queue)
    clock.main_last = clock.now
    clock.main_due = NEVER


@inlined
def _run_cycle(state: SlurmState) -> None:
    """Let the backfill agent begin a cycle, if one is due."""
    clock, rules = state.clock[0], state.rules[0]
    begin = _next_cycle(state)
    if begin >= SECOND * (clock.now + 1):
        return
    clock.changed = 0
    clock.cycle_busy = 0
    clock.logged_cycle += clock.logged_cycle < len(state.logged_cycles)
    if clock.waiting:
        backfill.cycle(state)
        clock.cycle_busy = rules.cycle_time + clock.tested * rules.test_time // SECOND
    clock.polling = clock.waiting == 0
    clock.cycle_due = begin + clock.cycle_busy + SECOND * rules.bf_interval


@of_same_types
@compiled
def run(state: SlurmState) -> int:
    """Run a simulation of Slurm's schedulers until it stops."""
    return play(state)
