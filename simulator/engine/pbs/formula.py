"""The order of the queue: queue by queue, then by formula, then by submission (``cmp_sort``)."""

import math

from simulator.engine.compiled import inlined, kernel
from simulator.engine.pbs.pbs_state import PbsState
from simulator.engine.queue_orders import aged_length, length_of, ratio_key, renew_overdue

BY_ESTIMATE, BY_WALLTIME = 1, 2
"""The lengths by which the queue is ordered; 0: by submission or formula."""

(
    CONSTANT, COLUMN, SOFT_WALLTIME, LENGTH, WAIT, ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE,
    POWER, OR, LEAST, MOST, NEGATIVE, ABSOLUTE, ROOT, LOGARITHM, EXPONENTIAL,
) = range(19)  # fmt: skip
"""Operations of a formula; the first five push a number, the next nine take two."""


@kernel
def join(state: PbsState, number: int) -> None:
    """Put a job that was just submitted into the queue."""
    cluster = state.cluster
    cluster.queue[cluster.clock[0].waiting] = number
    cluster.clock[0].waiting += 1
    state.keys[number] = _key(state, number)
    _move_up(state, cluster.clock[0].waiting - 1)


@kernel
def arrange(state: PbsState) -> None:
    """Sort the queue anew, as a formula has it now; by insertion, as little has changed."""
    cluster = state.cluster
    renew_overdue(cluster)
    for place in range(cluster.clock[0].waiting):
        number = cluster.queue[place]
        state.keys[number] = _key(state, number)
    for place in range(1, cluster.clock[0].waiting):
        _move_up(state, place)


@inlined
def _move_up(state: PbsState, place: int) -> None:
    """Move the job at a place before those that it precedes."""
    queue = state.cluster.queue
    number = queue[place]
    while place > 0 and _has_precedence(state, number, queue[place - 1]):
        queue[place] = queue[place - 1]
        place -= 1
    queue[place] = number


@inlined
def _has_precedence(state: PbsState, number: int, other: int) -> bool:
    """Return whether a job stands before another."""
    jobs, partitions = state.cluster.jobs, state.cluster.partitions
    tier: int = partitions[jobs[number].partition].tier
    other_tier: int = partitions[jobs[other].partition].tier
    if state.rules[0].by_queue and tier != other_tier:
        return tier > other_tier
    key: float = state.keys[number]
    other_key: float = state.keys[other]
    return key > other_key if key != other_key else number < other


@inlined
def _key(state: PbsState, number: int) -> float:
    """Return the value by which a job is ordered; the greatest is first."""
    rules, job = state.rules[0], state.cluster.jobs[number]
    if rules.shortest_first:
        length = job.request
        if rules.shortest_first == BY_ESTIMATE:
            length = _predicted_length(state, number)
        if state.cluster.rules[0].offset:
            return float(ratio_key(state.cluster, job, length))
        if not rules.length_factor:
            return float(-length)
        return float(-aged_length(job.submit, length, rules.length_factor, rules.most_precedence))
    return _value(state, number) if rules.formula else 0.0


@inlined
def _predicted_length(state: PbsState, number: int) -> int:
    """Return the ``walltimed_length`` that the hook gives a job."""
    job = state.cluster.jobs[number]
    length: int = min(job.request, max(length_of(job), state.rules[0].soft_floor))
    return length


@kernel
def _value(state: PbsState, number: int) -> float:
    """Return the formula's value for a job; 0 where it has none (``formula_evaluate``)."""
    top = -1
    stack = state.stack
    job = state.cluster.jobs[number]
    for place in range(len(state.operations)):
        operation = state.operations[place]
        if operation <= WAIT:
            top += 1
            if operation == CONSTANT:
                stack[top] = state.operands[place]
            elif operation == COLUMN:
                stack[top] = state.columns[int(state.operands[place]), number]
            elif operation == SOFT_WALLTIME:
                stack[top] = job.time_min
            elif operation == LENGTH:
                stack[top] = _predicted_length(state, number)
            else:
                stack[top] = state.cluster.clock[0].now - job.submit
        elif operation <= MOST:
            top -= 1
            if not _is_defined(operation, stack[top], stack[top + 1]):
                return 0.0
            stack[top] = _combined(operation, stack[top], stack[top + 1])
        else:
            if operation in (ROOT, LOGARITHM) and stack[top] <= 0.0:
                return 0.0
            stack[top] = _changed(operation, stack[top])
    value: float = stack[0]
    return value if math.isfinite(value) else 0.0


@inlined
def _is_defined(operation: int, left: float, right: float) -> bool:
    """Return whether two numbers can be combined to a real one."""
    if operation in (DIVIDE, FLOOR_DIVIDE):
        return right != 0.0
    if operation == POWER and left <= 0.0:
        return (left == 0.0 and right >= 0.0) or (left < 0.0 and right == math.floor(right))
    return True


@inlined
def _combined(operation: int, left: float, right: float) -> float:
    result = max(left, right)
    if operation == ADD:
        result = left + right
    elif operation == SUBTRACT:
        result = left - right
    elif operation == MULTIPLY:
        result = left * right
    elif operation == DIVIDE:
        result = left / right
    elif operation == FLOOR_DIVIDE:
        result = math.floor(left / right)
    elif operation == POWER:
        result = left**right
    elif operation == OR:
        result = left if left != 0.0 else right
    elif operation == LEAST:
        result = min(left, right)
    return result


@inlined
def _changed(operation: int, number: float) -> float:
    if operation == NEGATIVE:
        return -number
    if operation == ABSOLUTE:
        return abs(number)
    if operation == ROOT:
        return math.sqrt(number)
    return math.log(number) if operation == LOGARITHM else math.exp(min(number, 700.0))
