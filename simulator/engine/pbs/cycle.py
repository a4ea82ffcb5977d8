"""The scheduling cycle (``main_sched_loop``)."""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.pbs import calendar, formula, limits
from simulator.engine.pbs.pbs_state import UNLIMITED, PbsState
from simulator.engine.slurm import allocation
from simulator.engine.slurm.slurm_state import NOW


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
