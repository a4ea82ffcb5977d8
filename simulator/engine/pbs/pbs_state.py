"""The state of the twin of PBS: nodes and jobs as in the twin of Slurm, and what a cycle knows.

Times and durations are whole seconds, except the duration of a cycle. A job is its place in the
order of submission, a queue is a partition of the other twin, and a soft walltime its TimeMin.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from simulator.engine.slurm.node_sets import members_of
from simulator.engine.slurm.slurm_state import SlurmState
from simulator.engine.state import NEVER, records_of

END, END_OF_PLAN, START_OF_PLAN = range(3)
"""Kinds of events of a calendar, in the order in which those of one second happen."""

UNLIMITED = -1

MOST_PLANS = 1000
"""Top jobs of a cycle that have a planned start."""

DEEPEST = 64
"""Numbers on the stack of a formula."""

QUEUE = np.dtype(
    [
        ("depth", np.int64),  # its own backfill_depth, else UNLIMITED
        ("planned", np.int64),  # number of its top jobs in this cycle
        ("blocked", np.int64),  # no other job of it starts in this cycle
        ("largest_node", np.int64),  # CPUs
    ]
)
"""A queue."""

EVENT = np.dtype([("time", np.int64), ("kind", np.int64), ("subject", np.int64)])
"""An event of a calendar; the subject is the place of a running job, or a plan."""

PLAN_OF_JOB = np.dtype(
    [
        ("job", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("begun", np.int64),  # its start has passed in the future that is looked at
    ]
)
"""The planned run of a top job."""

COUNTER = np.dtype(
    [
        ("jobs", np.int64),  # that run
        ("cpus", np.int64),  # that they hold
        ("later_jobs", np.int64),  # likewise in the future that is looked at
        ("later_cpus", np.int64),
        ("most_jobs", np.int64),  # the limits, or UNLIMITED
        ("most_cpus", np.int64),
    ]
)
"""Running jobs that a limit counts together."""

PBS_RULES = np.dtype(
    [
        (name, np.int64)
        for name in (
            "scheduler_iteration",
            "strict_ordering",
            "backfill",  # at least one top job of the server or of a queue is planned
            "backfill_depth",
            "fuzzy",  # ends within a step of so many seconds count together
            "origin",  # seconds of the simulation's clock at which such a step begins
            "by_queue",
            "soft_floor",
            "cycle_time",  # milliseconds
            "test_time",  # microseconds
            "formula",  # the queue is in the order of a formula
            "waits",  # the formula changes with the waiting time
            "shortest_first",  # by estimates or by walltimes
            "length_factor",  # shortest first, with a bound on precedence; 0: without
            "most_precedence",  # that bound in seconds
        )
    ]
)
"""The rules as numbers; ``simulator.scheduling.pbs_rules`` explains them."""

PBS_CLOCK = np.dtype(
    [
        (name, np.int64)
        for name in (
            "due",  # when the next cycle begins
            "busy_until",  # the scheduler is in a cycle until then
            "tested",  # number of jobs that the cycle looked at
            "planned",  # number of top jobs that count against the server's backfill_depth
            "plans",
            "events",
            "has_calendar",  # the events of this cycle are listed
        )
    ]
)
"""The time, and how much of each array is in use."""


class PbsState(NamedTuple):
    """The arrays; ``clock`` and ``rules`` of the scheduler have one entry."""

    cluster: SlurmState
    queues: Any
    calendar: Any
    plans: Any
    plan_sets: Any
    plan_cpus: Any
    later_cpus: Any
    counters: Any
    counters_of_job: Any
    keys: Any
    operations: Any
    operands: Any
    columns: Any
    stack: Any
    scheduler: Any
    rules: Any

    @property
    def jobs(self) -> Any:
        """The jobs."""
        return self.cluster.jobs

    @property
    def clock(self) -> Any:
        """The time."""
        return self.cluster.clock

    @property
    def finished(self) -> Any:
        """The jobs that have ended, in the order of their ends."""
        return self.cluster.finished


class Counters(NamedTuple):
    """Limits: the most jobs and CPUs of each counter, and the counters of each job."""

    most: Sequence[tuple[int, int]]
    of_job: Any


class Program(NamedTuple):
    """A formula as operations on a stack, with a row of ``columns`` for each of its variables."""

    operations: Sequence[int]
    operands: Sequence[float]
    columns: Any


def new_pbs_state(
    cluster: SlurmState,
    *,
    depths: Sequence[int],
    counters: Counters,
    program: Program,
    rules: Mapping[str, int],
) -> PbsState:
    """Return the state before the first submission.

    Args:
        depths: backfill_depth of each queue, or ``UNLIMITED`` where the server's counts.
        program: the formula of the queue's order; without operations there is none.
        rules: a number for each field of ``PBS_RULES``, except ``backfill`` and ``formula``.
    """
    nodes, by_node = len(cluster.node_cpus), bool(cluster.rules["by_node"][0])
    server_depth = rules["backfill_depth"]
    wanted = server_depth + sum(max(0, depth) for depth in depths)
    most_plans = max(1, min(MOST_PLANS, wanted))
    state = PbsState(
        cluster=cluster,
        queues=records_of(len(depths), QUEUE),
        calendar=records_of(len(cluster.runs) + 2 * most_plans + 1, EVENT),
        plans=records_of(most_plans, PLAN_OF_JOB),
        plan_sets=np.zeros((most_plans, cluster.sets.shape[1]), np.int64),
        plan_cpus=np.zeros((most_plans, nodes) if by_node else (1, 1), np.int64),
        later_cpus=np.zeros(nodes, np.int64),
        counters=records_of(max(1, len(counters.most)), COUNTER),
        counters_of_job=counters.of_job,
        keys=np.zeros(len(cluster.jobs)),
        operations=np.array(program.operations, np.int64),
        operands=np.array(program.operands, np.float64),
        columns=program.columns,
        stack=np.zeros(DEEPEST),
        scheduler=records_of(1, PBS_CLOCK),
        rules=records_of(1, PBS_RULES),
    )
    for name, number in rules.items():
        state.rules[name] = number
    state.rules["backfill"] = wanted > 0
    state.rules["formula"] = len(program.operations) > 0
    state.queues["depth"] = depths
    state.queues["largest_node"] = [_largest_node(cluster, number) for number in range(len(depths))]
    for number, (jobs, cpus) in enumerate(counters.most):
        state.counters["most_jobs"][number], state.counters["most_cpus"][number] = jobs, cpus
    state.scheduler["due"] = NEVER
    return state


def _largest_node(cluster: SlurmState, queue: int) -> int:
    """Return the CPUs of the largest node of a queue."""
    return int(cluster.node_cpus[members_of(cluster.partition_sets[queue])].max(initial=0))
