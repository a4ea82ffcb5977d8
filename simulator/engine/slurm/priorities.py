"""The order of the queue, and priorities of priority/multifactor.

The queue is in the order of tier, priority, submission and job number (``sort_job_queue2``). Of the
factors of a priority, age, fair share and site factors by accuracy change while a job waits.

Usage is CPU seconds of users and accounts, decayed by a half-life. The fair-share factor is that
of Fair Tree: accounts are ranked by shares divided by usage among all accounts, and users likewise
within their account; the factor is the rank divided by the number of users. Equal ones have equal
ranks.
"""

from typing import Any

from predictors import response_ratio
from simulator.engine import queue_orders
from simulator.engine.compiled import inlined, kernel
from simulator.engine.queue_orders import TICK, accuracy_factor, aged_at
from simulator.engine.slurm.slurm_state import SlurmState

_steps_of_ratio = inlined(response_ratio.steps_of_ratio)
_steps_of_overdue = inlined(response_ratio.steps_of_overdue)
_factor_of_steps = inlined(response_ratio.factor_of_steps)

LN_2 = 0.693
"""Slurm's approximation."""

UNUSED = 1e300
"""Level of a user or account without any usage."""


@kernel
def compute(state: SlurmState) -> None:
    """Compute all priorities anew, and order the queue by them (``_decay_thread``)."""
    clock, rules = state.clock[0], state.rules[0]
    if rules.weight_fair_share:
        decay(state)
        _rank(state)
    queue_orders.renew_overdue(state)
    for place in range(clock.waiting):
        set_score(state, state.queue[place])
    _order(state)
    period = rules.priority_calc_period
    clock.priority_due = clock.now // period * period + period


@inlined
def set_score(state: SlurmState, number: int) -> None:
    """Compute the priority of a job now (``_get_priority_internal``)."""
    rules, job = state.rules[0], state.jobs[number]
    score = job.fixed_score
    if rules.weight_age:
        age = min(1.0, (state.clock[0].now - job.submit) / rules.priority_max_age)
        score += rules.weight_age * age
    if rules.weight_fair_share:
        rank = state.ranking[job.user] / len(state.users)
        score += rules.weight_fair_share * rank
    if rules.offset:
        score += _site_factor(state, number)
    if rules.by_accuracy:
        priority = aged_at(job, (state.clock[0].now - job.submit) // TICK)
        score += accuracy_factor(priority, rules.largest_site_factor)
    job.score = int(max(1.0, score))


@inlined
def _site_factor(state: SlurmState, number: int) -> int:
    """Return the SiteFactor that the updater gives a job now under the order response-ratio."""
    rules, job, clock = state.rules[0], state.jobs[number], state.clock[0]
    wait = clock.now - job.submit
    if wait > clock.overdue_after:
        steps = _steps_of_overdue(wait)
    else:
        ratio = queue_orders.ratio_key(state, job, job.order_length)
        steps = _steps_of_ratio(ratio, rules.offset / rules.longest_length)
    factor: int = _factor_of_steps(steps, rules.largest_site_factor)
    return factor


@kernel
def _order(state: SlurmState) -> None:
    """Sort the queue, which is almost in order."""
    clock = state.clock[0]
    for place in range(1, clock.waiting):
        number = state.queue[place]
        free = place
        while free > 0 and has_precedence(state, number, state.queue[free - 1]):
            state.queue[free] = state.queue[free - 1]
            free -= 1
        if free < place:
            state.queue[free] = number
            clock.replan = clock.changed = clock.main_open = 1


@kernel
def decay(state: SlurmState) -> None:
    """Decay the usage so far, and add that of running jobs since the last time."""
    clock, rules = state.clock[0], state.rules[0]
    factor = 1.0
    if rules.priority_decay_half_life:
        step = 1 - LN_2 / rules.priority_decay_half_life
        factor = step ** (clock.now - clock.decayed)
    for user in range(len(state.users)):
        state.users[user].usage *= factor
    for account in range(len(state.accounts)):
        state.accounts[account].usage *= factor
    for position in range(clock.running):
        job = state.jobs[state.runs[state.by_end[position]].job]
        used = job.processors * (clock.now - max(job.start, clock.decayed))
        state.users[job.user].usage += used
        state.accounts[job.account].usage += used
    clock.decayed = clock.now


@kernel
def _rank(state: SlurmState) -> None:
    """Rank the users, the one to be served first highest."""
    for account in range(len(state.accounts)):
        _set_level(state.accounts[account])
    for user in range(len(state.users)):
        _set_level(state.users[user])
    order, users = state.user_order, len(state.users)
    for place in range(1, users):  # they are almost in order
        user, free = order[place], place
        while free > 0 and _is_served_first(state, user, order[free - 1]):
            order[free] = order[free - 1]
            free -= 1
        order[free] = user
    rank = users
    for position in range(users):
        if position and _is_served_first(state, order[position - 1], order[position]):
            rank = users - position
        state.ranking[order[position]] = rank


@inlined
def _set_level(party: Any) -> None:
    """Set shares divided by usage; only siblings are compared, so that no sum is needed."""
    party.level = party.shares / party.usage if party.usage > 0 else UNUSED


@inlined
def _is_served_first(state: SlurmState, user: int, other: int) -> bool:
    """Whether a user has a higher level, or one in an account that has a higher level."""
    one, beside = state.users[user], state.users[other]
    account: float = state.accounts[one.account].level
    beside_account: float = state.accounts[beside.account].level
    level: float = one.level
    beside_level: float = beside.level
    return account > beside_account or (account == beside_account and level > beside_level)


@kernel
def join(state: SlurmState, number: int) -> int:
    """Put a job into the queue, and return its place."""
    clock = state.clock[0]
    place: int = clock.waiting
    while place > 0 and has_precedence(state, number, state.queue[place - 1]):
        state.queue[place] = state.queue[place - 1]
        place -= 1
    state.queue[place] = number
    clock.waiting += 1
    if place + 1 < clock.waiting:
        clock.replan = 1
    clock.changed = 1
    clock.main_open = 1
    return place


@inlined
def has_precedence(state: SlurmState, number: int, other: int) -> bool:
    """Whether a job stands before another."""
    job, beside = state.jobs[number], state.jobs[other]
    tier: int = state.partitions[job.partition].tier
    other_tier: int = state.partitions[beside.partition].tier
    score: int = job.score
    other_score: int = beside.score
    if tier != other_tier:
        return tier > other_tier
    return score > other_score if score != other_score else number < other
