"""Input shaking: repeats a workload with moved submissions, to separate gains from noise.

A schedule is chaotic: a submission that comes a second later can change every wait after it. So a
difference between two policies means nothing if it is smaller than the differences of one policy
with itself when submissions move by a minute.

Reference: D. Tsafrir, K. Ouaknine and D. G. Feitelson, "Reducing performance evaluation
sensitivity and variability by input shaking", MASCOTS 2007.
"""

from dataclasses import dataclass, replace

import numpy as np

from simulator.traces.trace import Trace

FEWEST_REPETITIONS = 3
"""Fewest repetitions from which noise is estimated."""


def shaken(trace: Trace, seconds: int, seed: int) -> Trace:
    """Move every submission by whole seconds, uniformly distributed in [-seconds, seconds].

    No submission is moved before second 0. The order of jobs may change; ``prepare`` sorts them.
    """
    moves = np.random.default_rng(seed).integers(-seconds, seconds, len(trace), endpoint=True)
    return replace(trace, submit=np.maximum(np.minimum(trace.submit, 0), trace.submit + moves))


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of one measure over the repetitions."""

    mean: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Compute the spread of at least one value."""
        return cls(float(np.mean(values)), min(values), max(values))

    def overlaps(self, other: "Spread") -> bool:
        """Whether the ranges meet, so that a difference is inside the noise."""
        return self.least <= other.greatest and other.least <= self.greatest
