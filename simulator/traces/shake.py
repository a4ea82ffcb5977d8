"""Shakes a workload a little, again and again, to see which differences are noise.

A schedule is chaotic: a submission that comes a second later can change every wait after it. A
difference between two policies that is smaller than the differences a policy has with itself,
under submissions moved by a minute, says nothing.

Reference: D. Tsafrir, K. Ouaknine and D. G. Feitelson, "Reducing performance evaluation
sensitivity and variability by input shaking", MASCOTS 2007.
"""

from dataclasses import dataclass, replace

import numpy as np

from simulator.traces.trace import Trace


def shaken(trace: Trace, seconds: int, seed: int) -> Trace:
    """The trace with every submission moved by whole seconds, uniform in [-seconds, seconds].

    None is moved before second 0. The order of jobs may change; ``prepare`` sorts them.
    """
    moves = np.random.default_rng(seed).integers(-seconds, seconds, len(trace), endpoint=True)
    return replace(trace, submit=np.maximum(np.minimum(trace.submit, 0), trace.submit + moves))


@dataclass(frozen=True, slots=True)
class Spread:
    """One measure over the repetitions."""

    mean: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """The spread of at least one value."""
        return cls(float(np.mean(values)), min(values), max(values))

    def overlaps(self, other: "Spread") -> bool:
        """Whether the ranges meet, so that a difference is inside the noise."""
        return self.least <= other.greatest and other.least <= self.greatest
