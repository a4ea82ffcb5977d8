"""Which processors of a machine serve which jobs."""

from collections.abc import Sequence

from service.queues.snapshot import Pool


def pool_of(pools: Sequence[Pool], queue: str | None) -> int:
    """The place of the pool that serves a queue; the first serves those that no pool names."""
    for place, pool in enumerate(pools):
        if queue in pool.queues:
            return place
    return 0
