"""Keeping out of the event loop's way: what else runs waits, so that no request has to."""

import gc
import os
import sys

SWITCH_SECONDS = 0.001
"""How long a thread may keep the event loop waiting; Python's default of 5 ms ruins p99."""

COLLECTION_THRESHOLD = 20_000
"""Objects between garbage collections; Python's default of 700 is a few requests here."""

LOWEST_PRIORITY = 19
"""As ``nice`` counts."""


def settle_process() -> None:
    """Keep long pauses away from requests: what was learned so far is not garbage-collected.

    What of it is garbage, a few thousand of 290,000 objects, is kept too: to find it would take a
    tenth of a second or more of each start.
    """
    gc.freeze()
    gc.set_threshold(COLLECTION_THRESHOLD)
    sys.setswitchinterval(SWITCH_SECONDS)


def come_second() -> None:
    """Let the other processes of the service go first, and still get on when they are busy."""
    os.nice(LOWEST_PRIORITY)


def give_way(process_id: int) -> None:
    """Let a process run only when no other wants to.

    The lowest priority alone is not enough: such a process rarely gets its turn, but then keeps
    the processor for milliseconds, in which no prediction is answered.
    """
    if hasattr(os, "SCHED_IDLE"):  # Linux
        os.sched_setscheduler(process_id, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.setpriority(os.PRIO_PROCESS, process_id, LOWEST_PRIORITY)
