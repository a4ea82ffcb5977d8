"""Limits on what users, groups, queues and the server run at once (``check_limits``)."""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.pbs.pbs_state import END, START_OF_PLAN, UNLIMITED, PbsState


@inlined
def count_running(state: PbsState, number: int, sign: int) -> None:
    """Count a job that starts now (1) or has ended (-1)."""
    cpus = state.cluster.jobs[number].processors
    for kind in range(state.counters_of_job.shape[0]):
        counter = state.counters[state.counters_of_job[kind, number]]
        counter.jobs += sign
        counter.cpus += sign * cpus


@inlined
def count_later(state: PbsState, number: int, sign: int) -> None:
    """Count a job that starts or ends in the future that is looked at."""
    cpus = state.cluster.jobs[number].processors
    for kind in range(state.counters_of_job.shape[0]):
        counter = state.counters[state.counters_of_job[kind, number]]
        counter.later_jobs += sign
        counter.later_cpus += sign * cpus


@kernel
def begin_future(state: PbsState) -> None:
    """Begin a future in which those jobs run that run now."""
    if state.counters_of_job.shape[0] == 0:
        return
    for number in range(len(state.counters)):
        counter = state.counters[number]
        counter.later_jobs = counter.jobs
        counter.later_cpus = counter.cpus


@inlined
def job_of_event(state: PbsState, position: int) -> int:
    """Return the job that starts or ends at an event of the calendar."""
    event = state.calendar[position]
    if event.kind == END:
        running: int = state.cluster.runs[event.subject].job
        return running
    planned: int = state.plans[event.subject].job
    return planned


@kernel
def is_within_limits(state: PbsState, number: int, position: int, end: int) -> bool:
    """Return whether the limits let a job run until an end.

    Args:
        state: the counters have the jobs that run when it would start.
        position: the first event of the calendar that is still to come then; 0: it starts now.
    """
    for kind in range(state.counters_of_job.shape[0]):
        if not _leaves_room(state, kind, number, position, end):
            return False
    return True


@kernel
def _leaves_room(state: PbsState, kind: int, number: int, position: int, end: int) -> bool:
    which = state.counters_of_job[kind, number]
    counter = state.counters[which]
    if counter.most_jobs == UNLIMITED and counter.most_cpus == UNLIMITED:
        return True
    jobs, cpus = counter.jobs, counter.cpus
    if position:
        jobs, cpus = counter.later_jobs, counter.later_cpus
    most_jobs, most_cpus = jobs, cpus
    while position < state.scheduler[0].events and state.calendar[position].time < end:
        other = job_of_event(state, position)
        if state.counters_of_job[kind, other] == which:
            sign = 1 if state.calendar[position].kind == START_OF_PLAN else -1
            jobs += sign
            cpus += sign * state.cluster.jobs[other].processors
            most_jobs, most_cpus = max(most_jobs, jobs), max(most_cpus, cpus)
        position += 1
    wanted = state.cluster.jobs[number].processors
    within: bool = (counter.most_jobs == UNLIMITED or most_jobs < counter.most_jobs) and (
        counter.most_cpus == UNLIMITED or most_cpus + wanted <= counter.most_cpus
    )
    return within
