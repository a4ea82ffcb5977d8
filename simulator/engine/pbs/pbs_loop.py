"""The loop goes from event to event and begins cycles (``main_sched_loop``) as pbs_server does.

A cycle begins when a job was submitted or has ended, and when there was none for the time of
scheduler_iteration. Events of one second: jobs end, jobs are submitted, a cycle begins.
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
from simulator.engine.pbs import calendar, formula, limits
from simulator.engine.pbs.pbs_state import UNLIMITED, PbsState
from simulator.engine.slurm import allocation
from simulator.engine.slurm.slurm_loop import next_end
from simulator.engine.slurm.slurm_state import NOW
from simulator.engine.state import NEVER


@kernel
def cycle(state: PbsState) -> None:
    """Start the waiting jobs that fit, in the order of the queue.

    With strict ordering a job that does not fit becomes a top job, which has a planned start, if
    there are not enough of them; the jobs behind it start only where they do not delay it.
    """
    _begin(state)
    cluster, scheduler = state.cluster, state.scheduler[0]
    place = 0
    while place < cluster.clock[0].waiting:
        number = cluster.queue[place]
        if state.queues[cluster.jobs[number].partition].blocked:
            place += 1
            continue
        scheduler.tested += 1
        if _start(state, place):
            continue
        if state.rules[0].strict_ordering and not _keep_order(state, number):
            return
        place += 1


@inlined
def _begin(state: PbsState) -> None:
    scheduler = state.scheduler[0]
    scheduler.tested = 0
    scheduler.planned = 0
    scheduler.plans = 0
    scheduler.events = 0
    scheduler.has_calendar = 0
    for number in range(len(state.queues)):
        state.queues[number].planned = 0
        state.queues[number].blocked = 0
    if state.rules[0].waits:
        formula.arrange(state)


@kernel
def _start(state: PbsState, place: int) -> bool:
    """Start the job at a place of the queue, if it may and can start."""
    cluster = state.cluster
    number = cluster.queue[place]
    if not calendar.fits(state, number, NOW, cluster.clock[0].now, 0):
        return False
    allocation.start(cluster, place)
    limits.count_running(state, number, 1)
    if state.scheduler[0].has_calendar:
        calendar.enter_end(state, cluster.jobs[number].place)
    return True


@inlined
def _keep_order(state: PbsState, number: int) -> bool:
    """Make a job that cannot start a top job, if one is wanted; false if the cycle ends with it."""
    scheduler, rules = state.scheduler[0], state.rules[0]
    queue = state.queues[state.cluster.jobs[number].partition]
    if not rules.backfill:
        return False
    if queue.depth == 0:
        queue.blocked = 1
    elif queue.depth == UNLIMITED:
        if scheduler.planned < rules.backfill_depth and calendar.plan(state, number):
            scheduler.planned += 1
    elif queue.planned < queue.depth and calendar.plan(state, number):
        queue.planned += 1
    return True


@kernel
def play(state: PbsState) -> int:
    """Run until all jobs have ended, until the pause, or until a submission has no estimate."""
    cluster, scheduler = state.cluster, state.scheduler[0]
    clock = cluster.clock[0]
    while True:
        submission = next_submission(cluster)
        time = min(submission, next_end(cluster))
        if clock.waiting == 0 and time == NEVER:
            return DONE
        if time == NEVER and clock.running == 0 and _is_stuck(state):
            raise ImpossibleError("a job waits that can never start")
        if clock.waiting:
            time = min(time, max(clock.now, scheduler.due))
        if submission == time and clock.submitted >= clock.pause_at:
            return PAUSED
        clock.now = max(clock.now, time)
        if not estimates_are_there(cluster):
            return ESTIMATES_WANTED
        _end_jobs(state)
        _submit(state)
        _run_cycle(state)


@inlined
def _is_stuck(state: PbsState) -> bool:
    """Return whether the last cycle left all nodes idle, and nothing is to come."""
    scheduler = state.scheduler[0]
    return bool(scheduler.due > scheduler.busy_until)


@inlined
def _end_jobs(state: PbsState) -> None:
    cluster = state.cluster
    clock = cluster.clock[0]
    while clock.ends and cluster.ends[0].time <= clock.now:
        number = events.pop(cluster.ends, clock.ends)
        allocation.finish(cluster, number)
        clock.ends -= 1
        limits.count_running(state, number, -1)
        _want_cycle(state)


@inlined
def _want_cycle(state: PbsState) -> None:
    """Let a cycle begin as soon as the scheduler is not in one."""
    scheduler = state.scheduler[0]
    scheduler.due = min(scheduler.due, max(state.cluster.clock[0].now, scheduler.busy_until))


@inlined
def _submit(state: PbsState) -> None:
    cluster, rules = state.cluster, state.rules[0]
    clock = cluster.clock[0]
    while clock.submitted < len(cluster.jobs):
        job = cluster.jobs[clock.submitted]
        if job.submit > clock.now:
            return
        soft = max(job.estimate, rules.soft_floor)
        if cluster.rules[0].time_min and soft < job.request:
            job.time_min = soft
        formula.join(state, clock.submitted)
        clock.submitted += 1
        _want_cycle(state)


@inlined
def _run_cycle(state: PbsState) -> None:
    """Let the scheduler begin a cycle, if one is due."""
    scheduler, rules = state.scheduler[0], state.rules[0]
    now = state.cluster.clock[0].now
    if scheduler.due > now:
        return
    cycle(state)
    busy = (1000 * rules.cycle_time + scheduler.tested * rules.test_time) // 1_000_000
    scheduler.busy_until = now + busy
    scheduler.due = now + max(1, rules.scheduler_iteration)


@of_same_types
@compiled
def run(state: PbsState) -> int:
    """Run a simulation of PBS's scheduler until it stops."""
    return play(state)
