"""What a job may take: the runtimes at some levels of its distribution, each as likely."""

from collections.abc import Sequence

STEPS = 20

LADDER = tuple((step + 0.5) / STEPS for step in range(STEPS))
"""Levels of a job's distribution; each stands for an equal share of what may come."""

Ladder = Sequence[float] | None
"""Runtimes at the levels ``LADDER``, in seconds; None where the method tells none."""

Ladders = tuple[Sequence[Ladder], Sequence[Ladder]]
"""Of the running and of the waiting jobs."""


def drawn_from(ladder: Sequence[float], place: float) -> float:
    """The runtime at a place of a ladder, in [0, 1)."""
    return ladder[int(place * STEPS)]
