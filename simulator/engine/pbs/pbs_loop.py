"""The loop goes from event to event and begins a cycle as pbs_server has it begun.

A cycle begins when a job was submitted or has ended, and when there was none for the time of
scheduler_iteration. Events of one second: jobs end, jobs are submitted, a cycle begins.
"""

from predictors.compiled import compiled, of_same_types
from simulator.engine import events
from simulator.engine.compiled import inlined, kernel
from simulator.engine.loop import DONE, ESTIMATES_WANTED, PAUSED
from simulator.engine.machine import ImpossibleError
from simulator.engine.pbs import formula, limits
from simulator.engine.pbs.cycle import cycle
from simulator.engine.pbs.pbs_state import PbsState
from simulator.engine.slurm import allocation
from simulator.engine.slurm.slurm_loop import estimates_are_there, next_end, next_submission
from simulator.engine.state import NEVER


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
