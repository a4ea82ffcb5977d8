"""Other futures of a queue, in which jobs run longer or shorter than predicted.

The runtime of a job is drawn from its own distribution, or, where its method gives none, from the
errors of recent predictions. The range of the futures is the uncertainty of a forecast. No further
jobs are submitted in them.

In each future the jobs of one owner are drawn at the same quantile: an owner who repeats a job
repeats the error, and errors that were drawn independently would cancel out along the queue.
"""

from collections.abc import Hashable, Iterator, Sequence
from random import Random

import numpy as np

from predictors.memory.error_ratios import sample
from simulator.scheduling.forecast import Forecast, QueuedJobs, Snapshot, forecast
from simulator.scheduling.semantics import Semantics
from simulator.traces.trace import Integers

STEPS = 20

QUANTILE_GRID = tuple((step + 0.5) / STEPS for step in range(STEPS))
"""Levels of the quantiles of a runtime distribution, each with the same probability mass."""

Quantiles = Sequence[float] | None
"""Runtimes in seconds at the levels of ``QUANTILE_GRID``; None where the method gives none."""

QueueQuantiles = tuple[Sequence[Quantiles], Sequence[Quantiles]]
"""Quantiles of the running jobs, and of the waiting jobs."""


def quantile_at(quantiles: Sequence[float], level: float) -> float:
    """Return the runtime at a level in [0, 1)."""
    return quantiles[int(level * STEPS)]


def futures_one_by_one(
    snapshot: Snapshot,
    semantics: Semantics,
    ratios: Sequence[float],
    samples: int,
    quantiles: QueueQuantiles | None = None,
) -> Iterator[Forecast]:
    """Play up to ``samples`` futures; none if there are neither quantiles nor ratios.

    Args:
        snapshot: the snapshot, in which jobs run for as long as predicted.
        semantics: the rules.
        ratios: runtime / prediction of recent runs, ascending.
        samples: the number of futures that are played.
        quantiles: runtime quantiles of each job; the ratios are for jobs without.
    """
    if quantiles is None:
        quantiles = ([None] * len(snapshot.running), [None] * len(snapshot.waiting))
    can_vary = bool(ratios) or any(row is not None for kind in quantiles for row in kind)
    for seed in range(samples if can_vary else 0):
        random = Random(seed)  # noqa: S311 - repeatable
        yield forecast(_varied(snapshot, ratios, quantiles, random), semantics)


def futures(
    snapshot: Snapshot,
    semantics: Semantics,
    ratios: Sequence[float],
    samples: int,
    quantiles: QueueQuantiles | None = None,
) -> list[Forecast]:
    """Return all that ``futures_one_by_one`` plays."""
    return list(futures_one_by_one(snapshot, semantics, ratios, samples, quantiles))


def nominal_coverage(samples: int) -> float:
    """Return the probability that one more future lies within the range of ``samples`` futures."""
    return (samples - 1) / (samples + 1)


class OwnerLevels:
    """The level at which the jobs of each owner are drawn, in one future."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._known: dict[Hashable, float] = {}

    def of(self, owner: Hashable) -> float:
        """Return the level of an owner, in [0, 1)."""
        if owner not in self._known:
            self._known[owner] = self._random.random()
        return self._known[owner]


def _varied(
    snapshot: Snapshot, ratios: Sequence[float], quantiles: QueueQuantiles, random: Random
) -> Snapshot:
    running, waiting = snapshot.running, snapshot.waiting
    levels = OwnerLevels(random)
    return snapshot.with_runtimes(
        _drawn(running, running.age, (ratios, quantiles[0]), levels),
        _drawn(waiting, np.zeros_like(waiting.age), (ratios, quantiles[1]), levels),
    )


def _drawn(
    jobs: QueuedJobs,
    elapsed: Integers,
    variety: tuple[Sequence[float], Sequence[Quantiles]],
    levels: OwnerLevels,
) -> Integers:
    """Draw a runtime for each job from its quantiles, else from the ratios of longer runs."""
    ratios, quantiles = variety
    drawn = jobs.runtime.copy()
    columns = (jobs.estimate, jobs.request, elapsed, jobs.owner)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (estimate, request, passed, owner) in enumerate(rows):
        own, level = quantiles[row], levels.of(owner)
        if own is not None:
            drawn[row] = max(passed + 1, min(request, round(quantile_at(own, level))))
            continue
        ratio = sample(ratios, passed / estimate, level)
        if ratio is not None:
            drawn[row] = max(passed + 1, round(min(request, estimate * ratio)))
    return drawn
