"""A workload on a simulated Slurm cluster before its first submission."""

import numpy as np

from simulator.engine.slurm.slurm_loop import BY_ESTIMATE, BY_LIMIT
from simulator.engine.slurm.slurm_state import SlurmState, new_slurm_state
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import Workload, WorkloadError
from simulator.traces.trace import Integers

MOST_NODES = 2**16
"""Nodes of a twin. A plan is a set of nodes for each of hundreds of times."""


def empty_cluster(workload: Workload, semantics: Semantics) -> SlurmState:
    """Return a cluster of one partition of equal nodes, which jobs take whole.

    Raises:
        WorkloadError: the machine has too many nodes.
    """
    rules = semantics.slurm
    assert rules is not None  # noqa: S101 - the policy is slurm
    nodes = workload.processors_of_machine
    if nodes > MOST_NODES:
        raise WorkloadError(
            f"The twin of Slurm plans sets of nodes, at most {MOST_NODES:,}: {nodes:,} "
            "processors need --cores-per-node."
        )
    columns = {
        name: getattr(workload, name) for name in ("submit", "processors", "runtime", "request")
    }
    columns |= {
        "nodes": workload.processors,
        "limit": limits_of(workload.request),
        "partition": np.zeros(len(workload), np.int64),
        "user": numbered(workload.trace.user),
    }
    return new_slurm_state(
        columns,
        partitions=[(1, list(range(nodes)))],
        rules={**rules.numbers(), **_effects(semantics), "nodes": nodes},
    )


def limits_of(requests: Integers) -> Integers:
    """Return time limits, which are whole minutes, in seconds."""
    limits: Integers = -(-requests // 60) * 60
    return limits


def numbered(names: Integers) -> Integers:
    """Return the numbers 0, 1, … in the place of arbitrary ones."""
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _effects(semantics: Semantics) -> dict[str, int]:
    """Return what estimates do: they are TimeMin, or they order the queue."""
    shortest = BY_ESTIMATE if semantics.estimated_order else BY_LIMIT
    return {
        "time_min": int(semantics.estimated_backfilling or semantics.estimated_running),
        "shortest_first": shortest if semantics.order == "sjf" else 0,
    }
