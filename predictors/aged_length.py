"""The order ``sjf-aging`` of a queue: the shortest first, with a bound on precedence.

The simulator's policies, the updater of Slurm's site factors and the formula for PBS all take the
order from here.
"""

LENGTH_FACTOR = 4

MOST_PRECEDENCE = 24 * 3600
"""A job stands behind jobs submitted up to this many seconds later; and at most ``LENGTH_FACTOR``
times its own length later."""


def aged_length(submit: int, length: int) -> int:
    """Return the key of a job, which does not change while it waits; the least is first.

    Every waiting job ages alike, so age less length is an order that never changes.
    """
    return submit + min(LENGTH_FACTOR * length, MOST_PRECEDENCE)
