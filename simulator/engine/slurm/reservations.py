"""Advance reservations, whose nodes take no jobs meanwhile (``reservation.c``: ``job_test_resv``).

No job of a log is in a reservation. A job may start if it would end before the reservation begins.
"""

from simulator.engine.compiled import inlined, kernel
from simulator.engine.slurm.allocation import note_change
from simulator.engine.slurm.node_sets import lies_in, meets, remove
from simulator.engine.slurm.slurm_state import USABLE, SlurmState
from simulator.engine.slurm.start_time import until
from simulator.engine.state import NEVER

MOST_MOVES = 10
"""Most reservations behind which a start is moved before it is given up in a cycle."""

LONGEST_IDLE = 15 * 86400
"""Seconds after which a job that waits while nothing runs will never start: reservations repeat
each hour, day or week, so every free time has come twice by then."""


@inlined
def is_during(state: SlurmState, reservation: int, begin: int, length: int) -> bool:
    """Return whether a job would run during a reservation."""
    each = state.reservations[reservation]
    return bool(each.begin < begin + length and each.end > begin)


@inlined
def closes(state: SlurmState, reservation: int, partition: int) -> bool:
    """Return whether no job of a partition starts, even on nodes that are not reserved.

    So it is with ``ALL_NODES``, with ``PART_NODES`` for that partition, and with ``MAINT`` where
    all nodes of the partition are reserved.
    """
    each = state.reservations[reservation]
    if each.all_nodes or each.partition == partition:
        return True
    nodes = len(state.partitions) + reservation
    return bool(
        each.maintenance and lies_in(state.partition_sets, partition, state.partition_sets, nodes)
    )


@kernel
def unreserved_start(state: SlurmState, number: int, begin: int, length: int) -> int:
    """Return the earliest start of a job when its partition is open; NEVER if none is found."""
    partition, moves, reservation = state.jobs[number].partition, 0, 0
    while reservation < len(state.reservations):
        if is_during(state, reservation, begin, length) and closes(state, reservation, partition):
            if moves == MOST_MOVES:
                return NEVER
            begin = state.reservations[reservation].end
            moves += 1
            reservation = 0
        else:
            reservation += 1
    return begin


@kernel
def leave_out_reserved(state: SlurmState, number: int, begin: int, length: int) -> int:
    """Take the nodes that are reserved while a job would run out of ``USABLE``.

    Returns:
        The time from which more nodes may be usable: the end of the next reservation, in whole
        steps of ``bf_resolution``, and a second. 0 if none of the partition's nodes is reserved.
    """
    first = len(state.partitions)
    partition = state.jobs[number].partition
    now, step = state.clock[0].now, state.rules[0].bf_resolution
    is_affected, next_end = False, NEVER
    for reservation in range(len(state.reservations)):
        each = state.reservations[reservation]
        if begin <= each.end:
            next_end = min(next_end, each.end)
        if is_during(state, reservation, begin, length):
            remove(state.sets, USABLE, state.partition_sets, first + reservation)
            is_affected |= meets(
                state.partition_sets, partition, state.partition_sets, first + reservation
            )
        elif begin == now and each.begin > now:
            until(state, each.begin - length + 1)
    return -(-next_end // step) * step + 1 if is_affected else 0


@kernel
def advance(state: SlurmState) -> None:
    """Let the reservations that have ended free their nodes; some come again."""
    clock = state.clock[0]
    clock.reservation_due = NEVER
    is_idle = clock.ends == 0 and clock.submitted == len(state.jobs)
    for reservation in range(len(state.reservations)):
        each = state.reservations[reservation]
        while each.period and each.end <= clock.now:
            each.begin += each.period
            each.end += each.period
        if each.end > clock.now:
            clock.reservation_due = min(clock.reservation_due, each.end)
            is_idle &= each.period > 0
    if not is_idle:
        clock.idle_since = clock.now
    if clock.waiting:
        note_change(state)


@inlined
def leaves_no_time(state: SlurmState) -> bool:
    """Return whether a job waits that reservations will never leave enough nodes and time for."""
    clock = state.clock[0]
    return bool(clock.waiting and clock.now > clock.idle_since + LONGEST_IDLE)
