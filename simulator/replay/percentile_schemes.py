"""Tang et al.'s schemes side by side: similarity key x time window x percentile x lower bound.

Reference:
    W. Tang, N. Desai, D. Buettner and Z. Lan, "Job scheduling with adjusted runtime estimates
    on production supercomputers", JPDC 73(7), 2013, section 4.2.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from predictors.jobs import Completion
from predictors.measures import PredictionMeasures, measure
from predictors.methods.percentile import KEYS, Percentile
from simulator.replay.loop import InProcess, replay

PERCENTILES = (50, 70, 80, 85, 90, 95, 100)
"""The paper's median, percentiles and maximum."""

WINDOWS = (30, 60, 90, 180, 365, None)
"""Lengths of the window in days; ``None`` is all history."""

LOWER_BOUNDS = (0.0, 0.5)
"""Lower bounds of A: none, and the paper's."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to adjust requests: parameters of the percentile predictor."""

    key: str
    percentile: float
    window_days: float | None
    lower_bound: float

    @property
    def label(self) -> str:
        """The scheme as a method on a command line."""
        window = "all" if self.window_days is None else f"{self.window_days:g}"
        return (
            f"percentile:key={self.key},percentile={self.percentile:g},window_days={window},"
            f"lower_bound={self.lower_bound:g}"
        )

    def predictor(self) -> Percentile:
        """A new predictor."""
        return Percentile(
            key=self.key,
            percentile=self.percentile,
            window_days=self.window_days,
            lower_bound=self.lower_bound,
        )


Swept = Mapping[Scheme, PredictionMeasures]


def usable_keys(runs: Sequence[Completion]) -> list[str]:
    """The keys of which every part is known for some job; SWF logs, for example, have no projects.

    A key with a part that no job has equals the key without that part, which is compared already.
    """
    known = {
        name
        for name in {part for parts in KEYS.values() for part in parts}
        if any(getattr(run.submission, name) is not None for run in runs)
    }
    return [key for key, parts in KEYS.items() if known.issuperset(parts)]


def schemes(
    keys: Iterable[str],
    *,
    percentiles: Iterable[float] = PERCENTILES,
    windows: Iterable[float | None] = WINDOWS,
    lower_bounds: Iterable[float] = LOWER_BOUNDS,
) -> list[Scheme]:
    """All schemes that combine these values."""
    combinations = product(keys, windows, lower_bounds, percentiles)
    return [
        Scheme(key, percentile, window, bound) for key, window, bound, percentile in combinations
    ]


def sweep(
    runs: Sequence[Completion],
    compared: Sequence[Scheme],
    *,
    progress: Callable[[int], object] | None = None,
) -> Swept:
    """Play a log to every scheme in one pass.

    Args:
        runs: the log.
        compared: the schemes.
        progress: called with the number of jobs that were just predicted.
    """
    players = {scheme.label: scheme.predictor() for scheme in compared}
    played = replay(runs, InProcess(players), progress=progress)
    requested, actual = played.requested, played.actual
    return {
        scheme: measure(played.answers[scheme.label].predicted, requested, actual)
        for scheme in compared
    }


def as_records(swept: Swept) -> list[dict[str, Any]]:
    """For JSON."""
    return [
        {
            "key": scheme.key,
            "window_days": scheme.window_days,
            "lower_bound": scheme.lower_bound,
            "percentile": scheme.percentile,
            **measures.as_dict(),
        }
        for scheme, measures in swept.items()
    ]
