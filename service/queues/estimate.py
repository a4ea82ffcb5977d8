"""What the service says of a job's runtime, for the simulator."""

from collections.abc import Sequence

from msgspec import Struct


class Estimate(Struct, frozen=True, gc=False):
    """What is known of how long a job runs.

    Attributes:
        runtime: predicted, in seconds.
        priority: of its user's accuracy group.
        ladder: runtimes at the levels of the simulator's ``LADDER``; None where nobody can tell.
    """

    runtime: float
    priority: float
    ladder: Sequence[float] | None = None
