"""Which simulations Tang et al.'s figures are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.studies.tang.months import MonthSimulation

INTREPID = "Intrepid"

LOGS: Mapping[str, str] = {
    INTREPID: "ANL-Intrepid-2009-1.swf.gz",
    "Theta": "ALCF-Theta-2023.swf.gz",
}
"""The paper's machine, and a later one of the same centre under the same resource manager."""

PERCENTILES = ("p95", "p85", "p70")
ESTIMATES = ("requested", *PERCENTILES, "exact")

RULES = (("wfp", "regular"), ("wfp", "selective"), ("fcfs", "regular"), ("fcfs", "selective"))
"""Order and adjustment of Figs. 14, 15, 16 and 17."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What the paper's section 6 leaves open.

    Attributes:
        lower_bound: the threshold on A.
        min_jobs: fewest similar jobs.
        in_one_piece: a log is played as a whole, and not every month anew.
    """

    lower_bound: float = 0.5
    min_jobs: int = 10
    in_one_piece: bool = False


def month_runs(
    directory: Path, logs: Mapping[str, str], limit: int | None, readings: Readings
) -> Sequence[MonthSimulation]:
    """Every log under every rule with all estimates."""
    return [
        MonthSimulation(
            log=name,
            trace=str(directory / file),
            order=order,
            adjustment=adjustment,
            estimates=estimates,
            lower_bound=readings.lower_bound,
            min_jobs=readings.min_jobs,
            anew=not readings.in_one_piece,
            limit=limit,
        )
        for name, file in logs.items()
        for order, adjustment in RULES
        for estimates in ESTIMATES
    ]
