"""The whole state of the twin in flat arrays, which machine code reads and writes.

Times and durations are whole seconds, except those of the backfill agent, which are milliseconds.
A job is its place in the order of submission; a node is its place in Slurm's list of nodes. A set
of nodes is a row of words with ``BITS`` nodes each.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from simulator.engine.slurm.node_sets import BITS, set_of
from simulator.engine.state import EVENT, NEVER, RATIO, UNKNOWN, records_of

BOUNDED_PLANS, RELEVANT_ENDS = 2411, 2505
"""Releases since which a plan knows which jobs end before its start, and ends of jobs that give it
no nodes do not put it off."""

NOW, FUTURE, USABLE, CANDIDATES, PLAN = range(5)
"""Rows of ``sets``: nodes that are free now; those that are free in a plan; those that a job may
use; those that its nodes are chosen from; those that were chosen."""

OF_NODES = 2
"""The row of ``free_gpus`` with all GPUs, behind ``NOW`` and ``FUTURE``."""


def _record(**fields: type) -> "np.dtype[Any]":
    return np.dtype(list(fields.items()))


JOB = _record(
    submit=np.int64,
    processors=np.int64,
    runtime=np.int64,  # what it will run: the scheduler never looks at it
    request=np.int64,
    estimate=np.int64,  # what was predicted of it when it was submitted
    length=np.int64,  # by which an order by length goes, given with the estimate; 0: the estimate
    predicted=np.float64,  # given in place of the estimate, which it is cut to; 0: none
    priority=np.float64,  # its accuracy group's
    start=np.int64,
    corrections=np.int64,  # 1 if it outlived its TimeMin
    backfilled=np.int64,  # it was started while a job ahead of it in the queue waited on
    promise=np.int64,
    in_gap=np.int64,
    nodes_since=np.int64,
    nodes=np.int64,  # whole nodes that it needs, or nodes with GPUs
    gpus=np.int64,  # GPUs that it needs on each of these nodes
    limit=np.int64,  # TimeLimit in seconds, a whole number of minutes
    time_min=np.int64,  # TimeMin in seconds, 0: none
    partition=np.int64,
    user=np.int64,
    account=np.int64,
    fixed_score=np.float64,  # the part of its priority that does not change
    score=np.int64,  # its priority
    order_length=np.int64,  # in whole minutes, by which its site factor grows
    place=np.int64,  # its place among the running jobs' sets of nodes
    epilog=np.int64,  # seconds from its end until its nodes may be used, but for the first one
    first_epilog=np.int64,  # likewise of its first node, which runs its script; not shorter
)
"""A job; the fields up to ``nodes_since`` are those of the other policies, too."""

RUN = _record(
    job=np.int64,
    limit_end=np.int64,  # start + TimeLimit
    soft_end=np.int64,  # start + TimeMin where that is a soft limit, else ``limit_end``
)
"""A running job and its expected ends."""

SLOT = _record(
    begin=np.int64,
    end=np.int64,
    next=np.int64,  # 0: none
)
"""A time in the plan of a cycle, from ``begin`` until ``end``; its set of free nodes is a row."""

PARTITION = _record(
    tier=np.int64,
    exclusive=np.int64,  # its jobs take whole nodes
    failed=np.int64,  # a job of it could not start in this pass of the main scheduler
    tested=np.int64,  # number of its jobs that were looked at in this cycle
)

RESERVATION = _record(
    begin=np.int64,
    end=np.int64,
    period=np.int64,  # seconds after which it comes again, 0: never
    all_nodes=np.int64,  # it has the flag ALL_NODES
    partition=np.int64,  # whose nodes it has (PART_NODES); UNKNOWN: none
    maintenance=np.int64,  # it has the flag MAINT
)
"""A reservation, as it comes next; its set of nodes is a row behind those of the partitions."""

HOLD = _record(
    node=np.int64,
    cpus=np.int64,
    gpus=np.int64,
    next=np.int64,  # of the same job, or of the unused ones; UNKNOWN: none
)
"""CPUs and GPUs of a node that a running job holds, where jobs share nodes."""

PARTY = _record(
    jobs=np.int64,  # that run
    cpus=np.int64,  # that they hold
    usage=np.float64,  # CPU seconds, decayed
    shares=np.float64,
    account=np.int64,  # a user's account
    level=np.float64,  # shares divided by usage, among its siblings
)
"""A user or an account."""

CLOCK = _record(
    now=np.int64,
    pause_at=np.int64,  # stop before this submission
    submitted=np.int64,
    wanted=np.int64,  # the submissions up to this one want estimates
    waiting=np.int64,
    running=np.int64,
    ends=np.int64,
    epilogs=np.int64,
    finished=np.int64,
    started=np.int64,
    places=np.int64,  # number of rows of running jobs' sets that were ever used
    spare=np.int64,  # number of these rows that are free again
    main_due=np.int64,  # when the main scheduler looks at the queue because of submissions
    main_last=np.int64,  # when it last did so
    main_open=np.int64,  # something has changed that it has not seen
    changed=np.int64,  # the backfill agent has not seen the last change
    cycle_due=np.int64,  # milliseconds: when the backfill agent looks for changes
    polling=np.int64,  # nothing waited after the last cycle: the agent looks each second
    cycle_busy=np.int64,  # milliseconds that the cycle has taken
    replan=np.int64,  # more has changed since the last cycle than jobs that joined at the end
    planned=np.int64,  # number of waiting jobs that the last cycle looked at
    unable=np.int64,  # jobs in places from ``planned`` up to this cannot start now
    stopped=np.int64,  # the last cycle ended before the end of the queue
    horizon=np.int64,  # until then a cycle would find what the last one found
    tested=np.int64,  # number of jobs that this cycle tested
    cycle_starts=np.int64,  # number of jobs that it started
    slots=np.int64,
    stop=np.int64,  # end of the plan
    plan_start=np.int64,  # start of the last plan that was found
    later=np.int64,  # the next start to ask for, 0: none
    tested_before=np.int64,  # number of jobs tested before this one
    left=np.int64,  # number of running jobs that a plan waits for, and how many were looked at
    position=np.int64,
    removed=np.int64,  # number of those that were taken away
    aligned=np.int64,  # the end from which the window of ends counts
    holds=np.int64,  # number of holds that were ever used
    spare_hold=np.int64,  # the first that is unused again
    priority_due=np.int64,  # when priorities are computed again
    decayed=np.int64,  # when usage was last decayed
    cycles=np.int64,  # number of cycles that were planned from an empty plan
    logged_cycle=np.int64,  # the first entry of ``logged_cycles`` that has not begun
    reservation_due=np.int64,  # when the next reservation ends; NEVER: there is none
    idle_since=np.int64,  # since then nothing runs, and only reservations that come again are left
    overdue_after=np.int64,  # a job that has waited longer goes first
    overdue_due=np.int64,  # when that is next computed
)
"""The time, and how much of each array is in use."""

RULES = _record(
    bf_interval=np.int64,
    bf_resolution=np.int64,
    bf_window=np.int64,
    bf_max_job_test=np.int64,
    bf_max_job_part=np.int64,
    bf_max_job_user=np.int64,
    bf_max_job_start=np.int64,
    bf_max_time=np.int64,
    bf_continue=np.int64,
    bf_node_space_size=np.int64,
    bf_window_linear=np.int64,
    sched_interval=np.int64,
    batch_sched_delay=np.int64,
    default_queue_depth=np.int64,
    defer=np.int64,
    kill_wait=np.int64,
    over_time_limit=np.int64,
    soft=np.int64,
    release=np.int64,  # year and month
    exit_time=np.int64,  # PBS: time from the end of a job until the server knows it
    cycle_time=np.int64,  # milliseconds
    test_time=np.int64,  # microseconds
    time_min=np.int64,  # estimates are given as TimeMin
    shortest_first=np.int64,  # by estimates or by limits
    length_factor=np.int64,  # shortest first, with a bound on precedence; 0: without
    most_precedence=np.int64,  # that bound in seconds
    **RATIO,
    largest_site_factor=np.int64,  # of the first job, where several factors make the priority
    by_accuracy=np.int64,  # site factors go by the accuracy of users and by waits
    skips=np.int64,  # cycles that would change nothing are skipped
    nodes=np.int64,
    by_node=np.int64,  # nodes differ, or jobs share them
    reservations=np.int64,  # number of reservations
    multifactor=np.int64,
    priority_calc_period=np.int64,
    priority_decay_half_life=np.int64,
    priority_max_age=np.int64,
    weight_age=np.int64,
    weight_fair_share=np.int64,
    max_jobs_per_user=np.int64,
    max_cpus_per_user=np.int64,
    max_jobs_per_account=np.int64,
    max_cpus_per_account=np.int64,
)
"""The rules as numbers; ``simulator.scheduling.slurm_rules`` explains them."""


class SlurmState(NamedTuple):
    """The arrays; ``clock`` and ``rules`` have one entry."""

    jobs: Any
    queue: Any
    runs: Any
    run_sets: Any
    by_end: Any
    remaining: Any
    removed: Any
    spare: Any
    ends: Any
    epilogs: Any
    finished: Any
    sets: Any
    completing: Any
    partitions: Any
    partition_sets: Any
    reservations: Any
    slots: Any
    slot_sets: Any
    stretches: Any
    node_cpus: Any
    node_weights: Any
    free_cpus: Any
    free_gpus: Any
    plan_cpus: Any
    holds: Any
    first_hold: Any
    users: Any
    accounts: Any
    ranking: Any
    user_order: Any
    tested_of_user: Any
    logged_cycles: Any
    clock: Any
    rules: Any


class NodeGroup(NamedTuple):
    """Equal nodes that follow one another in Slurm's list."""

    nodes: int
    cpus: int
    weight: int = 1
    gpus: int = 0


class PartitionNodes(NamedTuple):
    """A partition: its priority tier, whether jobs take whole nodes, and its nodes' places."""

    tier: int
    exclusive: bool
    members: Sequence[int]


class ReservedNodes(NamedTuple):
    """A reservation: its nodes' places, and fields of ``RESERVATION``."""

    members: Sequence[int]
    begin: int
    end: int
    period: int = 0
    all_nodes: bool = False
    partition: int = UNKNOWN
    maintenance: bool = False


def new_slurm_state(
    columns: Mapping[str, Any],
    *,
    groups: Sequence[NodeGroup],
    partitions: Sequence[PartitionNodes],
    rules: Mapping[str, int],
    reservations: Sequence[ReservedNodes] = (),
) -> SlurmState:
    """Return an empty cluster before the first submission.

    Args:
        columns: ``submit``, ``processors``, ``runtime``, ``request``, ``nodes``, ``limit``,
            ``partition``, ``user``, ``account``, ``fixed_score``, ``epilog`` and ``first_epilog``
            of the jobs, in the order of their submission; perhaps ``gpus``.
        rules: a number for each field of ``RULES``, except those that count what is given here.
    """
    jobs = records_of(len(columns["submit"]), JOB)
    for name, column in columns.items():
        jobs[name] = column
    for name in ("estimate", "start", "promise", "nodes_since", "place"):
        jobs[name] = UNKNOWN
    jobs["score"] = jobs["fixed_score"].astype(np.int64)
    cpus = np.repeat([each.cpus for each in groups], [each.nodes for each in groups])
    weights = np.repeat([each.weight for each in groups], [each.nodes for each in groups])
    gpus = np.repeat([each.gpus for each in groups], [each.nodes for each in groups])
    by_node = (
        len(set(cpus.tolist())) > 1
        or len(set(weights.tolist())) > 1
        or bool(jobs["gpus"].any())
        or not all(each.exclusive for each in partitions)
    )
    members = [each.members for each in partitions] + [each.members for each in reservations]
    size, nodes = len(jobs), len(cpus)
    words = -(-nodes // BITS)
    places = min(size, int(cpus.sum()))
    slots = rules["bf_node_space_size"] + 3
    state = SlurmState(
        jobs=jobs,
        queue=np.zeros(size, np.int64),
        runs=records_of(places, RUN),
        run_sets=np.zeros((places, words), np.int64),
        by_end=np.zeros(places, np.int64),
        remaining=np.zeros(places, np.int64),
        removed=np.zeros(places, np.int64),
        spare=np.zeros(places, np.int64),
        ends=records_of(places, EVENT),
        epilogs=records_of(2 * places, EVENT),
        finished=np.zeros(size, np.int64),
        sets=np.zeros((5, words), np.int64),
        completing=np.zeros((1, words), np.int64),
        partitions=records_of(len(partitions), PARTITION),
        partition_sets=np.stack([set_of(each, nodes) for each in members]),
        reservations=records_of(len(reservations), RESERVATION),
        slots=records_of(slots, SLOT),
        slot_sets=np.zeros((slots, words), np.int64),
        tested_of_user=np.zeros(_most(jobs["user"]) + 1, np.int64),
        logged_cycles=np.zeros(0, np.int64),
        stretches=np.zeros((5, nodes), np.int64),
        node_cpus=cpus.astype(np.int64),
        node_weights=weights.astype(np.int64),
        free_cpus=np.stack([cpus, cpus]).astype(np.int64),
        free_gpus=np.stack([gpus, gpus, gpus]).astype(np.int64),
        plan_cpus=np.zeros((2, nodes), np.int64),
        holds=records_of(int(cpus.sum()) if by_node else 1, HOLD),
        first_hold=np.full(places, UNKNOWN, np.int64),
        users=records_of(_most(jobs["user"]) + 1, PARTY),
        accounts=records_of(_most(jobs["account"]) + 1, PARTY),
        ranking=np.zeros(_most(jobs["user"]) + 1, np.int64),
        user_order=np.arange(_most(jobs["user"]) + 1),
        clock=records_of(1, CLOCK),
        rules=records_of(1, RULES),
    )
    counted = {"nodes": nodes, "by_node": int(by_node), "reservations": len(reservations)}
    for name, number in {**rules, **counted}.items():
        state.rules[name] = number
    for name in RESERVATION.names or ():
        state.reservations[name] = [getattr(each, name) for each in reservations]
    for number, each in enumerate(partitions):
        state.partitions["tier"][number] = each.tier
        state.partitions["exclusive"][number] = each.exclusive
    state.users["account"][jobs["user"]] = jobs["account"]
    state.users["shares"] = 1.0
    state.accounts["shares"] = 1.0
    state.sets[NOW] = set_of(range(nodes), nodes)
    state.clock["pause_at"] = size
    state.clock["main_due"] = NEVER
    state.clock["overdue_after"] = NEVER
    state.clock["reservation_due"] = min((each.end for each in reservations), default=NEVER)
    state.clock["main_last"] = -rules["batch_sched_delay"]
    state.clock["cycle_due"] = 1000 * rules["bf_interval"]
    state.clock["spare_hold"] = UNKNOWN
    state.clock["replan"] = 1
    state.clock["polling"] = 1
    return state


def _most(numbers: Any) -> int:
    return int(numbers.max(initial=0))
