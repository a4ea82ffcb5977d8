"""The log that Tang et al.'s figures about accuracy are made of: its runs, keys and schemes.

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
