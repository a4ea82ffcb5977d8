"""Tang et al.'s schemes side by side: key x time window x percentile x lower bound x fewest jobs.

All schemes of one key and window look at the same usages, so a log is played to each key and
window once. A usage above 1 counts as 1, as in the paper: a job is taken to have run for its
request at the most.

Reference:
    W. Tang, N. Desai, D. Buettner and Z. Lan, "Job scheduling with adjusted runtime estimates
    on production supercomputers", JPDC 73(7), 2013, section 4.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from predictors.base import SHORTEST_ESTIMATE
from predictors.jobs import Completion
from predictors.measures import PredictionMeasures, Seconds, measure
from predictors.methods.percentile import KEYS, Percentile, rank, share_of
from simulator.replay.trace_replay import play_jobs

PERCENTILES = (50, 70, 80, 85, 90, 95, 100)
"""The paper's median, percentiles and maximum."""

WINDOWS = (30, 60, 90, 180, 365, None)
"""Lengths of the window in days; ``None`` is all history."""

LOWER_BOUNDS = (0.0, 0.5)
"""Without a threshold on A, and with the paper's: from its section 4.2.3 on."""

MIN_JOBS = (1, 10)
"""Without a minimum of similar jobs, and with the paper's: from its section 4.2.5 on."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to adjust requests: parameters of the percentile predictor."""

    key: str
    percentile: float
    window_days: float | None
    lower_bound: float
    min_jobs: int = 10

    @property
    def window(self) -> str:
        """The window in days, or ``all``."""
        return "all" if self.window_days is None else f"{self.window_days:g}"

    @property
    def label(self) -> str:
        """The scheme as a method on a command line."""
        return (
            f"percentile:key={self.key},percentile={self.percentile:g},window_days={self.window},"
            f"lower_bound={self.lower_bound:g},min_jobs={self.min_jobs}"
        )

    def predictor(self) -> Percentile:
        """A new predictor."""
        return Percentile(
            key=self.key,
            percentile=self.percentile,
            window_days=self.window_days,
            lower_bound=self.lower_bound,
            min_jobs=self.min_jobs,
        )


Swept = Mapping[Scheme, PredictionMeasures]


def usable_keys(runs: Sequence[Completion]) -> list[str]:
    """The keys of which every part is known for some job; SWF logs, for example, have no projects.

    A key with a part that no job has equals the key without that part, which is compared already.
    """
    parts_present = {
        name
        for name in {part for parts in KEYS.values() for part in parts}
        if any(getattr(run.submission, name) is not None for run in runs)
    }
    return [key for key, parts in KEYS.items() if parts_present.issuperset(parts)]


def schemes(keys: Iterable[str]) -> list[Scheme]:
    """Every combination of the paper's options with some keys."""
    combinations = product(keys, WINDOWS, LOWER_BOUNDS, MIN_JOBS, PERCENTILES)
    return [
        Scheme(key, percentile, window, bound, fewest)
        for key, window, bound, fewest, percentile in combinations
    ]


def sweep(runs: Sequence[Completion], compared: Sequence[Scheme]) -> Swept:
    """Play a log to every scheme in one pass."""
    requested = np.array([run.submission.requested_walltime for run in runs])
    actual = np.minimum(requested, [run.runtime for run in runs])
    predicted = predictions(runs, compared, requested)
    return {scheme: measure(predicted[scheme], requested, actual) for scheme in compared}


def predictions(
    runs: Sequence[Completion], compared: Sequence[Scheme], requested: Seconds
) -> Mapping[Scheme, Seconds]:
    """Predictions of every scheme for every job in seconds, as its predictor makes them."""
    families: dict[tuple[str, float | None], list[Scheme]] = {}
    for scheme in compared:
        families.setdefault((scheme.key, scheme.window_days), []).append(scheme)
    players = {family: schemes[0].predictor() for family, schemes in families.items()}
    found = {
        family: _Family(len(runs), {scheme.percentile for scheme in schemes})
        for family, schemes in families.items()
    }

    def learn(job: int) -> None:
        for player in players.values():
            player.observe(runs[job])

    def note(job: int) -> None:
        for family, player in players.items():
            found[family].note(job, player.eligible(runs[job].submission))

    play_jobs(runs, ended=learn, submitted=note)
    return {
        scheme: found[scheme.key, scheme.window_days].predicted(scheme, requested)
        for scheme in compared
    }


class _Family:
    """Usages of all jobs at the percentiles of the schemes of one key and window."""

    def __init__(self, jobs: int, percentiles: Iterable[float]) -> None:
        self._shares = {percentile: share_of(percentile) for percentile in percentiles}
        self._usages = {percentile: np.ones(jobs) for percentile in self._shares}
        self._eligible = np.zeros(jobs, dtype=np.int64)

    def note(self, job: int, usages: Sequence[float]) -> None:
        """Write the percentiles of a job's eligible usages down."""
        count = self._eligible[job] = len(usages)
        if count:
            for percentile, share in self._shares.items():
                self._usages[percentile][job] = usages[rank(count, *share) - 1]

    def predicted(self, scheme: Scheme, requested: Seconds) -> Seconds:
        """The predictions of one scheme."""
        adjusted = requested * np.maximum(scheme.lower_bound, self._usages[scheme.percentile])
        adjusted = np.minimum(requested, np.maximum(SHORTEST_ESTIMATE, adjusted))
        return np.where(self._eligible >= scheme.min_jobs, adjusted, requested)
