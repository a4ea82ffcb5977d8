"""The scheduling policies by name.

A policy is asked once in every pass. It looks at the state, decides, and lets the machine
start jobs by their places in the queue. A policy changes only its own plans. A new policy is a
module with such a ``decide``, a number, a row and a line here, and a hand-worked test.
"""

from collections.abc import Mapping
from typing import NamedTuple

from simulator.engine.compiled import kernel
from simulator.engine.policies import backfilling, conservative, fcfs, pinning
from simulator.engine.state import State

FCFS, BACKFILLING, CONSERVATIVE, PINNING = range(4)


class Policy(NamedTuple):
    """The number of a policy, and its line in the semantics card."""

    number: int
    meaning: str
    shortest_first: bool = False


POLICIES: Mapping[str, Policy] = {
    "fcfs": Policy(FCFS, "no job passes the head of the queue"),
    "easy": Policy(
        BACKFILLING,
        "the first blocked jobs reserve the earliest slot; others, in the order of the queue, "
        "start if they fit beside the reservations",
    ),
    "easy-sjbf": Policy(
        BACKFILLING,
        "the first blocked jobs reserve the earliest slot; others, shortest estimate first, "
        "start if they fit beside the reservations",
        shortest_first=True,
    ),
    "conservative": Policy(
        CONSERVATIVE, "every job has a planned start that no later job may delay"
    ),
    "fcfs-pinned": Policy(
        PINNING,
        "every job is planned on named nodes at the end of the plan, and keeps nodes and start "
        "once the start is near",
    ),
}


@kernel
def decide(state: State) -> None:
    """Let the policy in force decide."""
    number = state.rules[0].policy
    if number == FCFS:
        fcfs.decide(state)
    elif number == BACKFILLING:
        backfilling.decide(state)
    elif number == CONSERVATIVE:
        conservative.decide(state)
    elif number == PINNING:
        pinning.decide(state)
