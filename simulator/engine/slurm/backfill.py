"""The backfill scheduler's cycle (``_attempt_backfill``).

The waiting jobs are planned one after another in the order of the queue. A job that can start now
without taking nodes from the plan of a job before it is started.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm import allocation, reservations
from simulator.engine.slurm.node_sets import copy, count, keep_common, meets
from simulator.engine.slurm.node_space import clear_plan, is_taken, move_window, reserve
from simulator.engine.slurm.slurm_state import (
    BOUNDED_PLANS,
    CANDIDATES,
    NOW,
    PLAN,
    USABLE,
    SlurmState,
)
from simulator.engine.slurm.start_time import find_start, until
from simulator.engine.state import NEVER

MICROSECONDS = 1_000_000
"""In a second."""

YIELD_INTERVAL = 2
"""Seconds."""

NEXT_JOB, STARTED, END_CYCLE, TRY_LATER, PUT_OFF = range(5)


@kernel
def cycle(state: SlurmState) -> None:
    """Plan the waiting jobs, and start those whose plan begins now.

    Where nothing has changed since the last cycle but that jobs joined the end of the queue, its
    plan is kept, and only those jobs are planned. Jobs behind the last one that could start now are
    left for a later cycle, as no start depends on their plans.
    """
    clock = state.clock[0]
    clock.cycle_starts = 0
    if clock.replan or not state.rules[0].skips or clock.now >= clock.horizon:
        _begin(state)
    else:
        move_window(state)
    place = clock.planned
    last = clock.waiting
    while not clock.stopped:
        last = _last_to_plan(state, place, last)
        if place >= last:
            break
        if clock.tested >= state.rules[0].bf_max_job_test or _has_to_stop(state):
            clock.stopped = 1
            break
        outcome = _plan(state, place)
        if outcome == STARTED:
            last -= 1
        else:
            place += 1
        if outcome == END_CYCLE:
            clock.stopped = 1
    clock.planned = place
    clock.unable = clock.waiting


@inlined
def _begin(state: SlurmState) -> None:
    """Begin a cycle with an empty plan."""
    clock = state.clock[0]
    clear_plan(state)
    clock.horizon = NEVER
    clock.tested = 0
    clock.planned = 0
    clock.unable = 0
    clock.stopped = 0
    clock.replan = 0
    clock.cycles += 1
    for number in range(len(state.partitions)):
        state.partitions[number].tested = 0
    state.tested_of_user[:] = 0


@inlined
def _last_to_plan(state: SlurmState, place: int, last: int) -> int:
    """Return how much of the queue is to be planned: up to the last job that could start now.

    All of it where the duration of a cycle depends on the number of jobs, or where jobs share
    nodes. As plans grow, a job that cannot start now does not become able to.

    Args:
        place: the next place to plan.
        last: what this function returned last in this cycle, less the jobs started since.
    """
    rules, unable = state.rules[0], state.clock[0].unable
    if not rules.skips or rules.test_time or rules.by_node:
        return last
    while last > max(place, unable) and not _could_start(state, state.queue[last - 1]):
        last -= 1
    return last if last > unable else place


@kernel
def _could_start(state: SlurmState, number: int) -> bool:
    """Whether enough nodes are free now that no plan holds while a job would run."""
    job = state.jobs[number]
    if job.nodes > count(state.sets, NOW) or not allocation.is_within_limits(state, number):
        return False
    now, length = state.clock[0].now, _length(state, number)
    if _unreserved_start(state, number, now, length) > now:
        return False
    _free_during(state, number, now, length)
    keep_common(state.sets, USABLE, state.sets, NOW)
    is_enough: bool = count(state.sets, USABLE) >= job.nodes
    return is_enough


@inlined
def _has_to_stop(state: SlurmState) -> bool:
    """Whether the cycle has taken too long, or something has changed since its locks were given up.

    Locks are given up every two seconds (``_yield_locks``). A cycle that takes longer depends on
    what happens meanwhile: the next one cannot be known from it.
    """
    clock, rules = state.clock[0], state.rules[0]
    taken = clock.tested * rules.test_time // MICROSECONDS
    if taken < YIELD_INTERVAL:
        return False
    until(state, clock.now)
    if taken >= rules.bf_max_time:
        return True
    change = NEVER
    if clock.ends:
        change = state.ends[0].time
    if clock.submitted < len(state.jobs):
        change = min(change, state.jobs[clock.submitted].submit)
    return not rules.bf_continue and change <= clock.now + taken


@inlined
def _length(state: SlurmState, number: int) -> int:
    """Return how long a job is tried with (``_set_backfill_timelimits``)."""
    job = state.jobs[number]
    if state.rules[0].soft and 0 < job.time_min < job.limit:
        length: int = job.time_min
        return length
    limit: int = job.limit
    return limit


@kernel
def _plan(state: SlurmState, place: int) -> int:
    """Plan one job: start it, reserve nodes for it, or leave it out."""
    clock = state.clock[0]
    number = state.queue[place]
    if not allocation.is_within_limits(state, number) or _is_beyond_limits(state, number):
        return NEXT_JOB
    length = _length(state, number)
    clock.tested_before = clock.tested
    clock.later = clock.now
    outcome = TRY_LATER
    while outcome == TRY_LATER:
        outcome = _plan_from(state, place, clock.later, length)
    return outcome


@kernel
def _plan_from(state: SlurmState, place: int, begin: int, length: int) -> int:
    """Plan a job that starts at ``begin`` or soon after it.

    Where the plan of another job is in the way, the clock's ``later`` is the next begin to try.
    """
    clock = state.clock[0]
    number = state.queue[place]
    begin = _unreserved_start(state, number, begin, length)
    _watch_window(state, begin)
    if clock.stop < begin:
        return NEXT_JOB
    clock.later = _free_during(state, number, begin, length)
    if not _find_start(state, number, begin):
        return TRY_LATER if clock.later else NEXT_JOB
    start = max(clock.plan_start, begin)
    if start <= clock.now:
        outcome = _start(state, place, length)
        if outcome != PUT_OFF:
            return outcome
        start = clock.plan_start
    if _has_to_try_later(state, begin, start, length):
        return TRY_LATER
    return _reserve(state, start, length)


@inlined
def _has_to_try_later(state: SlurmState, begin: int, start: int, length: int) -> bool:
    """Whether a later begin is to be tried: a plan is in the way, or nodes are free earlier."""
    clock, rules = state.clock[0], state.rules[0]
    is_bounded = rules.release >= BOUNDED_PLANS
    if is_bounded and _meets_plan(state, begin, start, length):
        return True
    until(state, start)
    if clock.later and start > clock.later:
        return True
    in_window = clock.now < start <= clock.now + rules.bf_window
    return not is_bounded and in_window and _meets_plan(state, begin, start, length)


@inlined
def _meets_plan(state: SlurmState, begin: int, start: int, length: int) -> bool:
    """Whether a plan is in the way of a start; the clock's ``later`` is the next begin to try."""
    slot_begin, slot_end = _slot_of(state, start, length)
    if not is_taken(state, PLAN, slot_begin, slot_end):
        return False
    state.clock[0].later = start + state.rules[0].bf_resolution if begin == start else start
    return True


@inlined
def _find_start(state: SlurmState, number: int, begin: int) -> bool:
    """Find a job's start on the usable nodes, if they are enough at all."""
    clock = state.clock[0]
    if count(state.sets, USABLE) < state.jobs[number].nodes:
        return False
    clock.tested += clock.tested == clock.tested_before
    return find_start(state, number, begin, clock.later)


@inlined
def _is_beyond_limits(state: SlurmState, number: int) -> bool:
    """Whether enough jobs of a partition or a user were planned (``bf_max_job_part, _user``)."""
    rules, job = state.rules[0], state.jobs[number]
    partition = state.partitions[job.partition]
    if rules.bf_max_job_part and partition.tested >= rules.bf_max_job_part:
        return True
    if rules.bf_max_job_user and state.tested_of_user[job.user] >= rules.bf_max_job_user:
        return True
    partition.tested += 1
    state.tested_of_user[job.user] += 1
    return False


@inlined
def _watch_window(state: SlurmState, begin: int) -> None:
    """Note when the end of the window will have moved past a start that is asked for."""
    clock, rules = state.clock[0], state.rules[0]
    if begin > clock.now:
        until(state, begin)
    if begin == clock.stop:
        until(state, begin + rules.bf_resolution - rules.bf_window)
    elif begin > clock.stop:
        until(state, -(-begin // rules.bf_resolution) * rules.bf_resolution - rules.bf_window)


@inlined
def _unreserved_start(state: SlurmState, number: int, begin: int, length: int) -> int:
    """Return a start, or the later one at which reservations let a job's partition be used."""
    if state.rules[0].reservations == 0:
        return begin
    return reservations.unreserved_start(state, number, begin, length)


@kernel
def _free_during(state: SlurmState, number: int, begin: int, length: int) -> int:
    """Find the nodes of a job's partition that nobody has while the job would run.

    They are the set ``USABLE``: neither planned for other jobs, nor reserved.

    Returns:
        The time from which more nodes could be usable, 0 if there is none.
    """
    copy(state.sets, USABLE, state.partition_sets, state.jobs[number].partition)
    unreserved = 0
    if state.rules[0].reservations:
        unreserved = reservations.leave_out_reserved(state, number, begin, length)
    copy(state.sets, CANDIDATES, state.sets, USABLE)
    later = _leave_out_planned(state, begin, length)
    if unreserved:
        step, window = state.rules[0].bf_resolution, state.rules[0].bf_window
        until(state, unreserved - 1 + step - window)
        if unreserved < state.clock[0].stop and (later == 0 or unreserved < later):
            return unreserved
    return later


@inlined
def _leave_out_planned(state: SlurmState, begin: int, length: int) -> int:
    """Take the nodes that plans hold while a job would run out of ``USABLE``.

    Returns:
        The end of the first of these plans after which more nodes are usable, 0 if there is none.
    """
    end = length + begin
    slot, later = 0, 0
    while True:
        each = state.slots[slot]
        if each.end > begin:
            if each.next and later == 0 and _adds_nodes(state, slot, each.next):
                later = each.end
            if begin == state.clock[0].now:
                until(state, each.end)
            if each.begin > end:
                if begin == state.clock[0].now:
                    until(state, each.begin - length)
                is_bounded = state.rules[0].release >= BOUNDED_PLANS
                if is_bounded and later == 0 and each.next and state.slots[each.next].next:
                    later = state.slots[each.next].end
                return later
            keep_common(state.sets, USABLE, state.slot_sets, slot)
        slot = each.next
        if slot == 0:
            return later


@inlined
def _adds_nodes(state: SlurmState, slot: int, following: int) -> bool:
    """Whether the next slot has nodes of the partition that are not usable up to this slot."""
    for word in range(state.sets.shape[1]):
        usable = state.sets[USABLE, word] & state.slot_sets[slot, word]
        if state.sets[CANDIDATES, word] & state.slot_sets[following, word] & ~usable:
            return True
    return False


@inlined
def _slot_of(state: SlurmState, start: int, length: int) -> tuple[int, int]:
    """Begin and end of a reservation: whole steps of ``bf_resolution`` (``_set_slot_time``)."""
    step, end = state.rules[0].bf_resolution, start + length
    if state.rules[0].release < BOUNDED_PLANS:
        return start // step * step, end // step * step
    return start // step * step, -(-end // step) * step


@inlined
def _start(state: SlurmState, place: int, length: int) -> int:
    """Start a job now, and enter it into the plan until its expected end if it has whole nodes.

    If it cannot start after all, its nodes are to be reserved from the clock's ``plan_start`` on:
    the next second where their epilogs still run.
    """
    clock, rules = state.clock[0], state.rules[0]
    until(state, clock.now)
    if meets(state.sets, PLAN, state.completing, 0):
        clock.plan_start, clock.later = clock.now + 1, 0
        return PUT_OFF
    if not allocation.is_plan_free(state, state.queue[place]):
        clock.plan_start, clock.later = clock.now, 0
        return PUT_OFF
    is_whole = state.partitions[state.jobs[state.queue[place]].partition].exclusive
    allocation.start(state, place)
    clock.cycle_starts += 1
    if rules.bf_max_job_start and clock.cycle_starts >= rules.bf_max_job_start:
        return END_CYCLE
    if is_whole and clock.slots < rules.bf_node_space_size:
        _, end = _slot_of(state, clock.now, length)
        reserve(state, PLAN, 0, end)
    return STARTED


@inlined
def _reserve(state: SlurmState, start: int, length: int) -> int:
    """Reserve the nodes of ``PLAN`` for a job that starts later, but within the window."""
    clock, rules = state.clock[0], state.rules[0]
    if start > clock.now + rules.bf_window:
        until(state, start - rules.bf_window)
        return NEXT_JOB
    if clock.slots >= rules.bf_node_space_size:
        return END_CYCLE
    begin, end = _slot_of(state, start, length)
    if end >= clock.stop:
        until(state, end + rules.bf_resolution - rules.bf_window)
    if begin >= clock.stop:
        until(state, begin + rules.bf_resolution - rules.bf_window)
    reserve(state, PLAN, begin, end)
    return NEXT_JOB
