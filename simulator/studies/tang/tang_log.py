"""The log that Tang et al.'s figures about accuracy are made of, and the paper's numbers.

``--log`` names any site's. Keys with a part that the log does not know are those without it:
without projects the double key is the user, the triple key the user and the walltime.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import Completion
from simulator.studies.study import ExhibitInput, LogPart
from simulator.studies.tang.percentile_schemes import Swept, schemes, sweep, usable_keys
from simulator.studies.tang.tang_simulations import INTREPID, LOGS

GAINS: Mapping[str, Mapping[str, tuple[float | None, float | None, float | None]]] = {
    "wfp, regular": {"p95": (15, None, None), "p85": (15, 16, 19)},
    "wfp, selective": {"p85": (22, 22, 28)},
    "fcfs, regular": {"p95": (2, None, None), "p70": (None, -8, None)},
    "fcfs, selective": {"p85": (20, 22, 15), "p70": (20, 20, 15)},
}
"""Gains in percent in wait, slowdown and weighted wait (section 6.2, Figs. 14 to 17)."""

TRACE: Mapping[str, float] = {
    "jobs": 275_858,
    "days": 911,
    "average run time, s": 5199,
    "average request, s": 9096,
    "users": 503,
}
"""Table 1, with the days from January 2009 to June 2011."""

USAGES: Mapping[str, float] = {
    "close to 1": 0.12,
    "above 0.8": 0.25,
    "below 0.5": 0.50,
    "below 0.2": 0.28,
}
"""Shares of jobs by R that the text reads off Fig. 1 (section 3.2)."""

SPREADS: Mapping[str, float] = {
    "all jobs": 0.335,
    "project": 0.308,
    "user": 0.294,
    "user+project": 0.285,
    "user+project+walltime": 0.253,
}
"""Average standard deviation of R within groups of at least 10 jobs (Table 2)."""

MEAN_USAGE = 0.50
"""Of all jobs; by quarter 0.42 to 0.59 (section 3.2)."""

BEST_ACCURACY = 0.679
"""Of the triple key at the 70th percentile over all history (section 4.2.2)."""

ACCURACIES: Mapping[str, Mapping[int, float]] = {
    "requests": {50: 0.50, 60: 0.64},
    "maximum": {60: 0.70},
    "median": {50: 0.68, 60: 0.83},
    "p85": {50: 0.71, 60: 0.86},
}
"""Accuracy that a given percentage of the jobs does not exceed (Fig. 11)."""


FloatArray = NDArray[np.float64]


def path_of(sources: ExhibitInput) -> Path:
    """The log: the one named by ``--log``, else Intrepid's."""
    named: Path | None = sources.options.get("log")
    return named if named is not None else sources.logs / LOGS[INTREPID]


def name_of(sources: ExhibitInput) -> str:
    """The name of the log, as its file begins."""
    return "-".join(path_of(sources).name.split(".")[0].split("-")[:2])


def runs_in(sources: ExhibitInput) -> list[Completion]:
    """The runs of the log."""
    runs: list[Completion]
    [(_, runs)] = sources.play(LogPart.runs, [_part(sources)])
    return runs


def swept_of(sources: ExhibitInput) -> Swept:
    """All schemes of the log."""
    swept: Swept
    [(_, swept)] = sources.play(_sweep, [_part(sources)])
    return swept


def _part(sources: ExhibitInput) -> LogPart:
    return LogPart(str(path_of(sources)), sources.limit)


def _sweep(part: LogPart) -> Swept:
    runs = part.runs()
    return sweep(runs, schemes(usable_keys(runs)))


def keys_in(swept: Swept) -> Mapping[str, str]:
    """The triple and the double key of schemes that were swept."""
    return keys_of(list(dict.fromkeys(scheme.key for scheme in swept)))


def keys_of(usable: Sequence[str]) -> Mapping[str, str]:
    """The triple and the double key, as far as the log knows their parts."""
    triple = "user+project+walltime" if "user+project+walltime" in usable else "user+walltime"
    return {"triple": triple, "double": "user+project" if "user+project" in usable else "user"}


def requested_of(runs: Sequence[Completion]) -> FloatArray:
    """Requests in seconds."""
    return np.array([run.submission.requested_walltime for run in runs], dtype=float)


def requested_and_run(runs: Sequence[Completion]) -> tuple[FloatArray, FloatArray]:
    """Requests, and run times cut to them: a usage above 1 counts as 1."""
    requested = requested_of(runs)
    return requested, np.minimum(requested, [run.runtime for run in runs])


def usages_of(runs: Sequence[Completion]) -> FloatArray:
    """The usage R of every run."""
    return np.array([run.usage for run in runs], dtype=float)
