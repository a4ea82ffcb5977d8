"""A workload on a simulated PBS cluster before its first submission."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from simulator.engine.pbs.formula import BY_ESTIMATE, BY_WALLTIME, COLUMN, WAIT
from simulator.engine.pbs.pbs_state import UNLIMITED, Counters, PbsState, Program, new_pbs_state
from simulator.scheduling.pbs_formula import compiled_formula
from simulator.scheduling.pbs_rules import PbsLimit, PbsRules
from simulator.scheduling.ratio_rules import RESPONSE_RATIO
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.slurm_cluster import (
    empty_nodes,
    numbered,
    plain_cluster,
    queues_of_jobs,
)
from simulator.scheduling.slurm_rules import SlurmCluster
from simulator.scheduling.workload import Workload
from simulator.traces.trace import Integers, Reals


def empty_server(workload: Workload, semantics: Semantics) -> PbsState:
    """Return a server before the first submission.

    Raises:
        WorkloadError: the machine has too many nodes, or a job does not fit into its queue.
    """
    rules = semantics.pbs
    assert rules is not None  # noqa: S101 - the policy is pbs
    cluster = rules.cluster or plain_cluster(workload)
    queues = queues_of_jobs(workload, cluster)
    by_length = semantics.order != "fcfs"
    scores = np.zeros(len(workload))
    state = empty_nodes(
        workload,
        _in_order(cluster),
        {"partition": queues, "limit": workload.request, "fixed_score": scores},
        {
            "bf_node_space_size": 0,
            "bf_interval": 1,
            "batch_sched_delay": 0,
            "exit_time": rules.exit_time,
            "soft": 1,
            "time_min": int(semantics.estimated_backfilling or semantics.estimated_running),
            **semantics.ratio.numbers(semantics.order),
        },
        whole_nodes=rules.cluster is None,
    )
    program = Program((), (), np.zeros((1, len(workload))))
    if rules.job_sort_formula and not by_length:
        program = _program(workload, rules, cluster, queues)
    shortest = BY_ESTIMATE if semantics.estimated_order else BY_WALLTIME
    fuzzy = max(1, rules.opt_backfill_fuzzy)
    return new_pbs_state(
        state,
        depths=[UNLIMITED if q.backfill_depth is None else q.backfill_depth for q in rules.queues],
        counters=_counters(workload, rules, queues),
        program=program,
        rules={
            **rules.numbers(),
            "origin": (workload.trace.unix_start + workload.origin) % fuzzy,
            "waits": int(WAIT in program.operations or semantics.order == RESPONSE_RATIO),
            "shortest_first": shortest if by_length else 0,
            **semantics.aging,
        },
    )


def _in_order(cluster: SlurmCluster) -> SlurmCluster:
    """Return the cluster with a tier for each queue: of equal priorities the first is higher."""
    places = sorted(
        range(len(cluster.partitions)), key=lambda place: -cluster.partitions[place].tier
    )
    tiers = {place: len(places) - rank for rank, place in enumerate(places)}
    return replace(
        cluster,
        partitions=tuple(
            replace(each, tier=tiers[place]) for place, each in enumerate(cluster.partitions)
        ),
    )


def _counters(workload: Workload, rules: PbsRules, queues: Integers) -> Counters:
    """Return a counter for each user, group or queue that a limit counts."""
    most: list[tuple[int, int]] = []
    rows: list[Integers] = []
    for limits, counted in _groupings(workload, rules, queues):
        bound = (_least(limits, "jobs"), _least(limits, "ncpus"))
        rows.append(len(most) + 1 + counted)
        most += [(UNLIMITED, UNLIMITED)] + [bound] * (int(counted.max(initial=-1)) + 1)
    of_job = np.stack(rows) if rows else np.zeros((0, len(workload)), np.int64)
    return Counters(most, of_job)


def _groupings(
    workload: Workload, rules: PbsRules, queues: Integers
) -> Iterator[tuple[Sequence[PbsLimit], Integers]]:
    """Yield limits of the server and of queues, and whom they count together: -1 nobody."""
    everybody = np.zeros(len(workload), np.int64)
    entities = {
        "u": numbered(workload.trace.user),
        "g": numbered(workload.trace.group),
        "o": everybody,
    }
    places = [(rules.limits, everybody == 0)]
    places += [(queue.limits, queues == place) for place, queue in enumerate(rules.queues)]
    for limits, is_there in places:
        for entity, counted in entities.items():
            if chosen := [each for each in limits if each.entity == entity]:
                yield chosen, np.where(is_there, counted, -1)


def _least(limits: Sequence[PbsLimit], resource: str) -> int:
    return min((each.most for each in limits if each.resource == resource), default=UNLIMITED)


def _program(
    workload: Workload, rules: PbsRules, cluster: SlurmCluster, queues: Integers
) -> Program:
    """Return the formula of the order, with the values of its variables."""
    operations = compiled_formula(rules.job_sort_formula)
    names = list(dict.fromkeys(each.variable for each in operations if each.variable))
    values = [variable_of(name, workload, rules, cluster=cluster, queues=queues) for name in names]
    return Program(
        [each.code for each in operations],
        [names.index(each.variable) if each.code == COLUMN else each.number for each in operations],
        np.stack(values) if values else np.zeros((1, len(workload))),
    )


def variable_of(
    name: str,
    workload: Workload,
    rules: PbsRules,
    *,
    cluster: SlurmCluster,
    queues: Integers,
) -> Reals:
    """Return the values of a formula's variable; those of the defaults where jobs have none."""
    known: dict[str, Reals | Integers] = {
        "walltime": workload.request,
        "ncpus": workload.processors,
        "nodect": np.maximum(1, -(-workload.processors // max(c for _, c, _ in cluster.groups))),
        "queue_priority": np.array([each.tier for each in cluster.partitions])[queues],
    }
    if name in known:
        return known[name].astype(float)
    server = (rules.defaults or {}).get(name, 0.0)
    defaults = [(queue.defaults or {}).get(name, server) for queue in rules.queues]
    return np.array(defaults, float)[queues]
