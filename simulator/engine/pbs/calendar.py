"""The calendar of a cycle: the expected ends of running jobs, and the planned runs of top jobs."""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.pbs.limits import begin_future, count_later, is_within_limits, job_of_event
from simulator.engine.pbs.pbs_state import END, END_OF_PLAN, START_OF_PLAN, PbsState
from simulator.engine.pbs.placement import choose, length_of
from simulator.engine.slurm.allocation import free_later, give_back
from simulator.engine.slurm.cpu_choice import TAKEN
from simulator.engine.slurm.node_sets import add, copy, remove
from simulator.engine.slurm.slurm_state import FUTURE, PLAN

EXITING_TIME = 1
"""Seconds after which a job that is past its walltime, or exiting, is expected to end."""


@inlined
def expected_end(state: PbsState, place: int) -> int:
    """Return when a running job is expected to end (``set_job_times``).

    A job past its soft walltime gets this walltime once more, and again, until its walltime.
    """
    cluster = state.cluster
    now, run = cluster.clock[0].now, cluster.runs[place]
    job = cluster.jobs[run.job]
    end: int = run.soft_end
    if now >= job.start + job.runtime:
        end = now + EXITING_TIME
    elif end < now and end < run.limit_end:
        soft = end - job.start
        times = (now - job.start) // soft
        end = max(now, min(end + times * soft, run.limit_end))
    elif end < now:
        end = now + EXITING_TIME
    return end


@kernel
def begin_calendar(state: PbsState) -> None:
    """List the expected ends of the running jobs, if this cycle has not done so."""
    scheduler = state.scheduler[0]
    if scheduler.has_calendar:
        return
    scheduler.has_calendar = 1
    scheduler.events = 0
    for position in range(state.cluster.clock[0].running):
        enter_end(state, state.cluster.by_end[position])


@kernel
def enter_end(state: PbsState, place: int) -> None:
    """Enter the expected end of a running job."""
    _enter(state, expected_end(state, place), END, place)


@kernel
def _enter(state: PbsState, time: int, kind: int, subject: int) -> None:
    """Enter an event; of one second, ends come before starts (``add_timed_event``)."""
    scheduler, calendar = state.scheduler[0], state.calendar
    place = scheduler.events
    is_start = kind == START_OF_PLAN
    while place > 0:
        before = calendar[place - 1]
        is_later = before.time > time or (
            before.time == time and not is_start and before.kind == START_OF_PLAN
        )
        if not is_later:
            break
        calendar[place] = calendar[place - 1]
        place -= 1
    calendar[place].time = time
    calendar[place].kind = kind
    calendar[place].subject = subject
    scheduler.events += 1


@kernel
def plan(state: PbsState, number: int) -> bool:
    """Plan the run of a top job (``add_job_to_calendar``); false if it could never start."""
    cluster = state.cluster
    if state.scheduler[0].plans == len(state.plans):
        return False
    begin_calendar(state)
    start = _start_of(state, number)
    for other in range(state.scheduler[0].plans):
        state.plans[other].begun = 0
    if start < 0:
        return False
    new = state.scheduler[0].plans
    each = state.plans[new]
    each.job = number
    each.start = start
    each.end = start + length_of(state, number)
    each.begun = 0
    copy(state.plan_sets, new, cluster.sets, PLAN)
    if cluster.rules[0].by_node:
        for node in range(cluster.rules[0].nodes):
            state.plan_cpus[new, node] = cluster.plan_cpus[TAKEN, node]
    state.scheduler[0].plans += 1
    _enter(state, each.start, START_OF_PLAN, new)
    _enter(state, each.end, END_OF_PLAN, new)
    return True


@kernel
def _start_of(state: PbsState, number: int) -> int:
    """Return the first time at which a job fits, -1 if there is none (``calc_run_time``).

    It is looked at after the ends of each step of opt_backfill_fuzzy seconds.
    """
    free_later(state.cluster)
    begin_future(state)
    now = state.cluster.clock[0].now
    position: int = 0
    time: int = now
    while position < state.scheduler[0].events:
        step = _end_of_step(state, state.calendar[position].time)
        has_end = False
        while position < state.scheduler[0].events and state.calendar[position].time <= step:
            time = max(now, state.calendar[position].time)
            has_end |= state.calendar[position].kind != START_OF_PLAN
            _perform(state, position)
            position += 1
        if has_end and fits(state, number, FUTURE, time, position):
            return time
    return -1


@inlined
def _end_of_step(state: PbsState, time: int) -> int:
    """Return the end of the step of a time (``simulate_events``)."""
    step, origin = state.rules[0].fuzzy, state.rules[0].origin
    end: int = (time + origin + step) // step * step - origin
    return end


@inlined
def fits(state: PbsState, number: int, row: int, time: int, position: int) -> bool:
    """Return whether a job may and can start at a time (``is_ok_to_run``); choose its nodes."""
    end = time + length_of(state, number)
    return is_within_limits(state, number, position, end) and choose(
        state, number, row, time, position
    )


@inlined
def _perform(state: PbsState, position: int) -> None:
    """Let an event of the calendar happen in the future that is looked at."""
    event = state.calendar[position]
    sign = 1 if event.kind == START_OF_PLAN else -1
    count_later(state, job_of_event(state, position), sign)
    if event.kind == END:
        give_back(state.cluster, event.subject, FUTURE)
        return
    if event.kind == START_OF_PLAN:
        state.plans[event.subject].begun = 1
        remove(state.cluster.sets, FUTURE, state.plan_sets, event.subject)
    else:
        add(state.cluster.sets, FUTURE, state.plan_sets, event.subject)
    if state.cluster.rules[0].by_node:
        for node in range(state.cluster.rules[0].nodes):
            cpus = state.plan_cpus[event.subject, node]
            state.cluster.free_cpus[FUTURE, node] -= sign * cpus
