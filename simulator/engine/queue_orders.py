"""The orders in which the queue is served: every order is a key, and the least key is the head.

Ties are decided by submission, then by job number, which is the order of the jobs' places.
"""

from collections.abc import Mapping
from typing import Any

from predictors.accuracy_groups import STEP_SECONDS, aged
from predictors.aged_length import LENGTH_FACTOR, MOST_PRECEDENCE
from predictors.aged_length import accuracy_factor as factor_of_priority
from predictors.aged_length import aged_length as key_of_length
from predictors.aged_length import site_factor as factor_of_length
from predictors.response_ratio import (
    FEWEST_SECONDS,
    QUARTER,
)
from predictors.response_ratio import response_ratio as ratio_of_wait
from simulator.engine.compiled import inlined, kernel
from simulator.engine.state import NEVER, UNKNOWN, State

FCFS, SJF, WFP, PSP, PSP_AGING, SJF_AGING, RESPONSE_RATIO = range(7)

ORDERS: Mapping[str, int] = {
    "fcfs": FCFS,
    "sjf": SJF,
    "wfp": WFP,
    "psp": PSP,
    "psp-aging": PSP_AGING,
    "sjf-aging": SJF_AGING,
    "response-ratio": RESPONSE_RATIO,
}

MEANINGS: Mapping[str, str] = {
    "fcfs": "submission",
    "sjf": "shortest estimate first",
    "wfp": "largest (wait / estimate)^3 * processors first (Tang Eq 5), at each pass",
    "psp": "highest priority of the user's accuracy group at submission first (Rocchetti)",
    "psp-aging": "highest priority first, aged every 150 s of waiting (Rocchetti Eq 1)",
    "sjf-aging": f"least submission + min({LENGTH_FACTOR} x estimate, "
    f"{MOST_PRECEDENCE // 3600} h) first: no job stands behind one submitted later than that",
}
"""The orders in words, but for ``response-ratio``, whose words depend on its rules."""

NEEDS_PRIORITY = frozenset({"psp", "psp-aging"})

OVERDUE = 1e12
"""Key of a job that goes first, less its wait."""

DAY = 86400

aged_length = inlined(key_of_length)
response_ratio = inlined(ratio_of_wait)
site_factor = inlined(factor_of_length)
accuracy_factor = inlined(factor_of_priority)

TICK = int(STEP_SECONDS)

_SLACK = 1024
"""The queue moves up when this many more places before its head are unused than it has jobs."""


@inlined
def join(state: State, number: int) -> None:
    """Put a job that was just submitted at the end of the queue."""
    clock = state.clock[0]
    if clock.head > clock.tail - clock.head + _SLACK:
        _move_up(state)
    rules = state.rules[0]
    job = state.jobs[number]
    waiting = state.queue[clock.tail]
    waiting.job = number
    waiting.processors = job.processors
    waiting.estimate = job.estimate if rules.estimated_backfilling else job.request
    waiting.tick = UNKNOWN
    waiting.planned = UNKNOWN
    waiting.pinned = UNKNOWN
    waiting.started = 0
    waiting.key = 0.0
    if rules.order == SJF:
        waiting.key = job.estimate if rules.estimated_order else job.request
    elif rules.order in (SJF_AGING, RESPONSE_RATIO):
        waiting.length = length_of(job) if rules.estimated_order else job.request
        waiting.key = aged_length(job.submit, waiting.length)
    elif rules.order == PSP:
        waiting.key = -job.priority
    clock.tail += 1


@inlined
def length_of(job: Any) -> int:
    """Return the length by which an order goes: what was given for it, else the estimate."""
    length: int = job.length or job.estimate
    return length


@inlined
def ratio_key(state: Any, job: Any, length: int) -> float:
    """Return the present key of a job under the order response-ratio; the greatest is first."""
    clock, rules = state.clock[0], state.rules[0]
    wait = clock.now - job.submit
    key = OVERDUE + wait
    if wait <= clock.overdue_after:
        key = response_ratio(
            wait, length, rules.offset, rules.shortest_length, rules.longest_length
        )
    return float(key)


@kernel
def renew_overdue(state: Any) -> None:
    """Compute once a day from which wait on a job goes first."""
    clock, rules = state.clock[0], state.rules[0]
    if not rules.overdue_permille or clock.now < clock.overdue_due:
        return
    clock.overdue_due = clock.now + DAY
    begin = state.jobs[0].submit
    longest = rules.longest_wait if clock.now < begin + QUARTER else 0
    if longest == 0 and clock.now < begin + FEWEST_SECONDS:
        return
    for number in range(clock.submitted):
        job = state.jobs[number]
        if job.start != UNKNOWN and job.start >= clock.now - QUARTER:
            longest = max(longest, job.start - job.submit)
    clock.overdue_after = longest * rules.overdue_permille // 1000 if longest else NEVER


@kernel
def _move_up(state: State) -> None:
    """Move the queue to the front of its array, so that it never reaches the array's end."""
    clock = state.clock[0]
    for place in range(clock.head, clock.tail):
        state.queue[place - clock.head] = state.queue[place]
    clock.tail -= clock.head
    clock.head = 0


@inlined
def arrange(state: State) -> None:
    """Sort the queue by insertion, as little has changed since the last time."""
    order = state.rules[0].order
    if order == FCFS:
        return
    if order == RESPONSE_RATIO:
        renew_overdue(state)
    if order in (WFP, PSP_AGING, RESPONSE_RATIO):
        for place in range(state.clock[0].head, state.clock[0].tail):
            _renew(state, place)
    sort(state)


@inlined
def _renew(state: State, place: int) -> None:
    """Compute the present key of a waiting job."""
    waiting = state.queue[place]
    job = state.jobs[waiting.job]
    rules = state.rules[0]
    wait = state.clock[0].now - job.submit
    if rules.order == WFP:
        estimate = job.estimate if rules.estimated_order else job.request
        waiting.key = -((wait / estimate) ** 3) * job.processors
        return
    if rules.order == RESPONSE_RATIO:
        waiting.key = -ratio_key(state, job, waiting.length)
        return
    tick = wait // TICK
    if tick != waiting.tick:
        waiting.tick = tick
        waiting.key = -aged_at(job, tick)


@inlined
def aged_at(job: Any, tick: int) -> float:
    """Return the aged priority of a waiting job after that many steps of its wait."""
    return aged(job.priority, max(tick, 1) - 1, STEP_SECONDS / job.request)


@kernel
def sort(state: State) -> None:
    """Put the queue in the order of keys, then of jobs."""
    clock = state.clock[0]
    queue = state.queue
    moving = state.scratch
    for place in range(clock.head + 1, clock.tail):
        if not _is_before(queue[place], queue[place - 1]):
            continue
        moving[0] = queue[place]
        hole = place
        while hole > clock.head and _is_before(moving[0], queue[hole - 1]):
            queue[hole] = queue[hole - 1]
            hole -= 1
        queue[hole] = moving[0]


@inlined
def _is_before(one: Any, other: Any) -> bool:
    """Whether a waiting job is served before another."""
    before: bool = one.key < other.key or (one.key == other.key and one.job < other.job)
    return before
