"""Starts and ends jobs on their nodes, and refuses impossible starts."""

from simulator.engine import events
from simulator.engine.compiled import inlined, kernel
from simulator.engine.machine import ImpossibleError
from simulator.engine.slurm.node_sets import add, copy, lies_in, meets, remove
from simulator.engine.slurm.slurm_state import NOW, PLAN, SlurmState


@kernel
def start(state: SlurmState, place: int) -> None:
    """Start the job at a place of the queue now, on the nodes of ``PLAN``."""
    clock = state.clock[0]
    number = state.queue[place]
    job = state.jobs[number]
    if job.start >= 0:
        raise ImpossibleError("a job can start only once")
    if not lies_in(state.sets, PLAN, state.sets, NOW) or meets(
        state.sets, PLAN, state.completing, 0
    ):
        raise ImpossibleError("a job needs a node that is not free")
    remove(state.sets, NOW, state.sets, PLAN)
    job.start = clock.now
    job.backfilled = place > 0
    _leave_queue(state, place)
    _run(state, number)
    events.push(state.ends, clock.ends, clock.now + job.runtime, clock.started, number)
    clock.ends += 1
    clock.started += 1
    note_change(state)


@inlined
def note_change(state: SlurmState) -> None:
    """Note that both schedulers have to look again."""
    clock = state.clock[0]
    clock.changed = 1
    clock.replan = 1
    clock.main_open = 1


@inlined
def _leave_queue(state: SlurmState, place: int) -> None:
    clock = state.clock[0]
    for later in range(place, clock.waiting - 1):
        state.queue[later] = state.queue[later + 1]
    clock.waiting -= 1


@kernel
def _run(state: SlurmState, number: int) -> None:
    """Enter a job into the running ones, which are in the order of their expected ends."""
    clock = state.clock[0]
    job = state.jobs[number]
    place = clock.places
    if clock.spare:
        clock.spare -= 1
        place = state.spare[clock.spare]
    else:
        clock.places += 1
    run = state.runs[place]
    run.job = number
    run.limit_end = job.start + job.limit
    run.soft_end = run.limit_end
    if state.rules[0].soft and job.time_min:
        run.soft_end = job.start + job.time_min
    job.place = place
    copy(state.run_sets, place, state.sets, PLAN)
    position = clock.running
    while position > 0 and _is_before(state, place, state.by_end[position - 1]):
        state.by_end[position] = state.by_end[position - 1]
        position -= 1
    state.by_end[position] = place
    clock.running += 1


@inlined
def _is_before(state: SlurmState, place: int, other: int) -> bool:
    """Whether a job stands before another in the list by ends (``_cr_job_list_sort``)."""
    run, beside = state.runs[place], state.runs[other]
    before: bool = run.soft_end < beside.soft_end or (
        run.soft_end == beside.soft_end and run.job < beside.job
    )
    return before


@kernel
def finish(state: SlurmState, number: int) -> None:
    """End a job now; no job starts on its nodes before their epilogs are over."""
    clock = state.clock[0]
    job = state.jobs[number]
    position = 0
    while state.by_end[position] != job.place:
        position += 1
    for later in range(position, clock.running - 1):
        state.by_end[later] = state.by_end[later + 1]
    clock.running -= 1
    run = state.runs[job.place]
    if run.soft_end < run.limit_end and clock.now > run.soft_end:
        job.corrections = 1
    state.finished[clock.finished] = number
    clock.finished += 1
    note_change(state)
    add(state.sets, NOW, state.run_sets, job.place)
    if state.rules[0].epilog:
        add(state.completing, 0, state.run_sets, job.place)
        serial = clock.finished
        events.push(state.epilogs, clock.epilogs, clock.now + state.rules[0].epilog, serial, number)
        clock.epilogs += 1
    else:
        end_epilog(state, number)


@kernel
def end_epilog(state: SlurmState, number: int) -> None:
    """Let other jobs start on the nodes of a job that has ended."""
    clock = state.clock[0]
    place = state.jobs[number].place
    remove(state.completing, 0, state.run_sets, place)
    state.spare[clock.spare] = place
    clock.spare += 1
    note_change(state)
