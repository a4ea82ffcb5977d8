"""The scheduling policies by name.

A policy is asked once in every pass. Its ``decide`` looks at the state and lets the machine start
jobs by their places in the queue; it changes only its own plans. Its ``run`` is the scheduling
loop with this ``decide`` in it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from simulator.engine.loop import Loop
from simulator.engine.policies import backfilling, conservative, fcfs, pinning
from simulator.engine.state import State


class Policy(NamedTuple):
    """The loop of a policy, and its line in the semantics card.

    Attributes:
        run: runs a simulation until it stops.
        shortest_first: whether candidates for backfilling are tried shortest estimate first.
        plans_starts: whether every job has a planned start from its submission on.
        names_nodes: whether jobs are planned on named nodes.
    """

    run: Loop
    meaning: str
    shortest_first: bool = False
    plans_starts: bool = False
    names_nodes: bool = False


POLICIES: Mapping[str, Policy] = {
    "fcfs": Policy(fcfs.run, "no job passes the head of the queue"),
    "easy": Policy(
        backfilling.run,
        "the first blocked jobs reserve the earliest slot; others, in the order of the queue, "
        "start if they fit beside the reservations",
    ),
    "easy-sjbf": Policy(
        backfilling.run,
        "the first blocked jobs reserve the earliest slot; others, shortest estimate first, "
        "start if they fit beside the reservations",
        shortest_first=True,
    ),
    "conservative": Policy(
        conservative.run,
        "every job has a planned start that no later job may delay",
        plans_starts=True,
    ),
    "fcfs-pinned": Policy(
        pinning.run,
        "every job is planned on named nodes at the end of the plan, and keeps nodes and start "
        "once the start is near",
        plans_starts=True,
        names_nodes=True,
    ),
}


NUMBERS: Mapping[str, int] = {name: number for number, name in enumerate(POLICIES)}
"""The policies in the rules of a state."""

_RUNS = tuple(policy.run for policy in POLICIES.values())


def run(state: State) -> int:
    """Run a simulation under the policy of its rules until it stops."""
    number: int = state.rules["policy"][0]
    return _RUNS[number](state)
