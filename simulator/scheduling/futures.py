"""Alternative futures of a queue, in which predictions err as much as they recently did.

The ranges of the futures show how certain a forecast is. The futures contain no jobs that are
still to be submitted.

In each future all jobs of one owner are at the same place among the ratios: a user who repeats a
job repeats the error. Errors drawn for each job alone would cancel out along the queue.
"""

from collections.abc import Hashable, Sequence
from random import Random

import numpy as np

from predictors.memory.error_ratios import sample
from simulator.scheduling.forecast import Forecast, QueuedJobs, Snapshot, forecast
from simulator.scheduling.semantics import Semantics
from simulator.traces.trace import Integers


def futures(
    snapshot: Snapshot, semantics: Semantics, ratios: Sequence[float], samples: int
) -> list[Forecast]:
    """``samples`` alternative forecasts; empty without ratios.

    Args:
        snapshot: the snapshot, in which jobs run for as long as predicted.
        semantics: the rules.
        ratios: recent ratios of runtime to prediction, ascending.
        samples: number of forecasts.
    """
    return [
        forecast(_varied(snapshot, ratios, Random(seed)), semantics)  # noqa: S311 - repeatable
        for seed in range(samples if ratios else 0)
    ]


def coverage(samples: int) -> float:
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


def _varied(snapshot: Snapshot, ratios: Sequence[float], random: Random) -> Snapshot:
    running, waiting = snapshot.running, snapshot.waiting
    places = Places(random)
    return snapshot.with_runtimes(
        _drawn(running, running.age, ratios, places),
        _drawn(waiting, np.zeros_like(waiting.age), ratios, places),
    )


def _drawn(
    jobs: QueuedJobs, elapsed: Integers, ratios: Sequence[float], places: Places
) -> Integers:
    """A runtime for each job, drawn from the ratios beyond its elapsed time; else unchanged."""
    drawn = jobs.runtime.copy()
    columns = (jobs.estimate, jobs.request, elapsed, jobs.owner)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (estimate, request, passed, owner) in enumerate(rows):
        ratio = sample(ratios, passed / estimate, places.of(owner))
        if ratio is not None:
            drawn[row] = max(passed + 1, min(request, round(estimate * ratio)))
    return drawn
