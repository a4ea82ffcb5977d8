"""Starts and ends jobs on their nodes, and refuses impossible starts."""

from simulator.engine import events
from simulator.engine.compiled import inlined, kernel
from simulator.engine.machine import ImpossibleError
from simulator.engine.slurm.node_sets import add, copy, keep_first, lies_in, meets, remove
from simulator.engine.slurm.priorities import decay
from simulator.engine.slurm.slurm_state import FUTURE, NOW, PLAN, SlurmState


@kernel
def start(state: SlurmState, place: int) -> None:
    """Start the job at a place of the queue now, on the nodes of ``PLAN``."""
    clock = state.clock[0]
    number = state.queue[place]
    job = state.jobs[number]
    if job.start >= 0:
        raise ImpossibleError("a job can start only once")
    if not is_plan_free(state, number) or meets(state.sets, PLAN, state.completing, 0):
        raise ImpossibleError("a job needs a node that is not free")
    job.start = clock.now
    job.backfilled = place > 0
    _leave_queue(state, place)
    _run(state, number)
    _take_nodes(state, number)
    _count(state, number, 1)
    end = clock.now + job.runtime + state.rules[0].exit_time
    events.push(state.ends, clock.ends, end, clock.started, number)
    clock.ends += 1
    clock.started += 1
    note_change(state)


@kernel
def is_plan_free(state: SlurmState, number: int) -> bool:
    """Whether nobody holds what was chosen for a job."""
    if not state.rules[0].by_node:
        return lies_in(state.sets, PLAN, state.sets, NOW)
    gpus = state.jobs[number].gpus
    for node in range(state.rules[0].nodes):
        cpus = state.plan_cpus[0, node]
        if cpus > state.free_cpus[NOW, node] or (cpus and gpus > state.free_gpus[NOW, node]):
            return False
    return True


@kernel
def free_later(state: SlurmState) -> None:
    """Begin a future in which all is free that is free now."""
    copy(state.sets, FUTURE, state.sets, NOW)
    if state.rules[0].by_node:
        for node in range(state.rules[0].nodes):
            state.free_cpus[FUTURE, node] = state.free_cpus[NOW, node]
            state.free_gpus[FUTURE, node] = state.free_gpus[NOW, node]


@kernel
def give_back(state: SlurmState, place: int, row: int) -> None:
    """Free what a job holds, now or in the future that is looked at."""
    add(state.sets, row, state.run_sets, place)
    hold = state.first_hold[place]
    while hold >= 0:
        node = state.holds[hold].node
        state.free_cpus[row, node] += state.holds[hold].cpus
        state.free_gpus[row, node] += state.holds[hold].gpus
        hold = state.holds[hold].next


@kernel
def _take_nodes(state: SlurmState, number: int) -> None:
    """Let a job hold what was chosen for it."""
    if not state.rules[0].by_node:
        remove(state.sets, NOW, state.sets, PLAN)
        return
    clock, place, gpus = state.clock[0], state.jobs[number].place, state.jobs[number].gpus
    state.first_hold[place] = -1
    for node in range(state.rules[0].nodes):
        cpus = state.plan_cpus[0, node]
        if cpus == 0:
            continue
        state.free_cpus[NOW, node] -= cpus
        state.free_gpus[NOW, node] -= gpus
        hold = clock.spare_hold
        if hold >= 0:
            clock.spare_hold = state.holds[hold].next
        else:
            hold = clock.holds
            clock.holds += 1
        state.holds[hold].node = node
        state.holds[hold].cpus = cpus
        state.holds[hold].gpus = gpus
        state.holds[hold].next = state.first_hold[place]
        state.first_hold[place] = hold


@inlined
def _drop_holds(state: SlurmState, place: int) -> None:
    clock = state.clock[0]
    hold = state.first_hold[place]
    while hold >= 0:
        following = state.holds[hold].next
        state.holds[hold].next = clock.spare_hold
        clock.spare_hold = hold
        hold = following
    state.first_hold[place] = -1


@inlined
def _count(state: SlurmState, number: int, sign: int) -> None:
    """Count a job among the running ones of its user and account."""
    job = state.jobs[number]
    user, account = state.users[job.user], state.accounts[job.account]
    user.jobs += sign
    user.cpus += sign * job.processors
    account.jobs += sign
    account.cpus += sign * job.processors


@inlined
def is_within_limits(state: SlurmState, number: int) -> bool:
    """Whether the limits of its user and account let a job start (``acct_policy``)."""
    rules, job = state.rules[0], state.jobs[number]
    user, account = state.users[job.user], state.accounts[job.account]
    within: bool = (
        (rules.max_jobs_per_user == 0 or user.jobs < rules.max_jobs_per_user)
        and (rules.max_cpus_per_user == 0 or user.cpus + job.processors <= rules.max_cpus_per_user)
        and (rules.max_jobs_per_account == 0 or account.jobs < rules.max_jobs_per_account)
        and (
            rules.max_cpus_per_account == 0
            or account.cpus + job.processors <= rules.max_cpus_per_account
        )
    )
    return within


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
    if state.rules[0].weight_fair_share:
        decay(state)  # while the job still runs, so that its last seconds are counted
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
    _count(state, number, -1)
    give_back(state, job.place, NOW)
    _drop_holds(state, job.place)
    if job.first_epilog:
        add(state.completing, 0, state.run_sets, job.place)
        _enter_epilog(state, clock.now + job.first_epilog, number)
        if job.epilog < job.first_epilog:
            _enter_epilog(state, clock.now + job.epilog, ~number)
    else:
        end_epilog(state, number)


@inlined
def _enter_epilog(state: SlurmState, time: int, number: int) -> None:
    clock = state.clock[0]
    events.push(state.epilogs, clock.epilogs, time, clock.finished, number)
    clock.epilogs += 1


@kernel
def end_epilog(state: SlurmState, number: int) -> None:
    """Let other jobs start on the nodes of a job that has ended.

    Args:
        number: the job; ``~number`` where its first node is not free yet.
    """
    clock = state.clock[0]
    place = state.jobs[number if number >= 0 else ~number].place
    remove(state.completing, 0, state.run_sets, place)
    if number < 0:
        keep_first(state.run_sets, place)
        add(state.completing, 0, state.run_sets, place)
    else:
        state.spare[clock.spare] = place
        clock.spare += 1
    note_change(state)
