"""Other futures of a queue, in which jobs run longer or shorter than predicted.

How long a job may run is told by its own distribution, or, where its method has none, by how far
off predictions were lately. Their ranges tell how sure a forecast is. They know of no jobs that are
still to be submitted.

In each of them all jobs of one owner are at the same place of what may come: who repeats a job
repeats the error, and errors that were drawn one by one would cancel out along the queue.
"""

from collections.abc import Hashable, Sequence
from random import Random

import numpy as np

from predictors.memory.error_ratios import sample
from simulator.scheduling.forecast import Forecast, QueuedJobs, Snapshot, forecast
from simulator.scheduling.semantics import Semantics
from simulator.traces.trace import Integers

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


def futures(
    snapshot: Snapshot,
    semantics: Semantics,
    ratios: Sequence[float],
    samples: int,
    ladders: Ladders | None = None,
) -> list[Forecast]:
    """``samples`` forecasts; none if nothing is known of how runtimes vary.

    Args:
        snapshot: the snapshot, in which jobs run for as long as predicted.
        semantics: the rules.
        ratios: of runtime to prediction, ascending, as they were lately.
        samples: the number of futures that are played.
        ladders: what each job may take; the ratios are for jobs that have none.
    """
    if ladders is None:
        ladders = ([None] * len(snapshot.running), [None] * len(snapshot.waiting))
    can_vary = bool(ratios) or any(ladder is not None for kind in ladders for ladder in kind)
    return [
        forecast(_varied(snapshot, ratios, ladders, Random(seed)), semantics)  # noqa: S311 - repeatable
        for seed in range(samples if can_vary else 0)
    ]


def nominal_coverage(samples: int) -> float:
    """The probability that one more future lies within the range of ``samples`` futures."""
    return (samples - 1) / (samples + 1)


class Places:
    """The place of each owner's jobs among the ratios, in one future."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._known: dict[Hashable, float] = {}

    def of(self, owner: Hashable) -> float:
        """In [0, 1)."""
        if owner not in self._known:
            self._known[owner] = self._random.random()
        return self._known[owner]


def _varied(
    snapshot: Snapshot, ratios: Sequence[float], ladders: Ladders, random: Random
) -> Snapshot:
    running, waiting = snapshot.running, snapshot.waiting
    places = Places(random)
    return snapshot.with_runtimes(
        _drawn(running, running.age, (ratios, ladders[0]), places),
        _drawn(waiting, np.zeros_like(waiting.age), (ratios, ladders[1]), places),
    )


def _drawn(
    jobs: QueuedJobs,
    elapsed: Integers,
    variety: tuple[Sequence[float], Sequence[Ladder]],
    places: Places,
) -> Integers:
    """A runtime for each job, from its ladder or ratios of those that ran on; else as it was."""
    ratios, ladders = variety
    drawn = jobs.runtime.copy()
    columns = (jobs.estimate, jobs.request, elapsed, jobs.owner)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (estimate, request, passed, owner) in enumerate(rows):
        ladder, place = ladders[row], places.of(owner)
        if ladder is not None:
            drawn[row] = max(passed + 1, min(request, round(drawn_from(ladder, place))))
            continue
        ratio = sample(ratios, passed / estimate, place)
        if ratio is not None:
            drawn[row] = max(passed + 1, round(min(request, estimate * ratio)))
    return drawn
