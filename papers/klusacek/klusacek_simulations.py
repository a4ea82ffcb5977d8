"""The simulations of Klusáček & Soysal 2020: conservative plans, and FCFS on named nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from papers.simulations import Simulation
from simulator.reports.comparison import Outcome
from simulator.reports.schedule_report import (
    CLASSES,
    class_shares,
    node_notices_of,
    wait_errors_of,
    waits_of,
)
from simulator.scheduling.semantics import Semantics

CTC, SDSC = "CTC-SP2-1996-3.1-cln.swf.gz", "SDSC-SP2-1998-4.2-cln.swf.gz"
STAND_IN = "CERIT-SC-wagap-2013.swf.gz"
LOGS = (CTC, SDSC, STAND_IN)

MORE_LOGS: Mapping[str, str] = {"FH1": "*FH1*.swf*", "FH2": "*FH2*.swf*"}
"""The paper's other logs, and how their files are looked for; the study takes what it finds."""

ESTIMATES = ("exact", "requested", "max-usage")

PINNING = (0, 3600, 7200)
"""Seconds: none, 1 h and 2 h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A number of one simulation.

    Attributes:
        log: its short name.
        jobs: the jobs that were played, in words.
        estimates: of the scheduler.
        pinning: interval in seconds before the start, within which a job keeps its nodes.
        quantity: what is measured.
        place: upper end of a class of ``quantity``, or a statistic.
        value: share of the jobs, or seconds.
    """

    log: str
    jobs: str
    estimates: str
    pinning: int
    quantity: str
    place: str
    value: float


QUANTITIES: Mapping[str, Callable[[Outcome], NDArray[np.int64]]] = {
    "wait": lambda each: waits_of(each.schedule),
    "error of the predicted wait": lambda each: wait_errors_of(each.schedule),
    "T_node": lambda each: node_notices_of(each.schedule),
}

STATISTICS: Mapping[str, Callable[[NDArray[np.int64]], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "median": lambda values: float(np.median(values)),
    "90%": lambda values: float(np.quantile(values, 0.9)),
}


def measured(run: Simulation) -> list[Measured]:
    """Simulate a log, and measure the schedule and its predictions."""
    found = run.play()
    jobs = "all jobs" if run.limit is None else f"first {run.limit:,} jobs"
    return [
        Measured(
            log=run.log,
            jobs=jobs,
            estimates=run.estimates,
            pinning=run.semantics.pinning,
            quantity=quantity,
            place=place,
            value=value,
        )
        for quantity, place, value in _numbers(found)
    ]


def _numbers(found: Outcome) -> Iterable[tuple[str, str, float]]:
    """Yield quantity, place and value of every number of a simulation."""
    semantics = found.schedule.semantics
    if semantics.names_nodes:
        quantities = ["wait", "T_node"]
    else:
        quantities = ["wait", "error of the predicted wait"]
        gaps = float(np.mean(found.schedule.in_gap))
        yield "planned at arrival into a gap", "jobs", gaps
        yield "started past a waiting job", "jobs", found.measures.backfilled
    for quantity in quantities:
        values = QUANTITIES[quantity](found)
        for place, share in zip((*CLASSES.values(), "more"), class_shares(values), strict=True):
            yield quantity, place, share
        for name, statistic in STATISTICS.items():
            yield quantity, name, statistic(values)


def conservative_runs(paths: Sequence[Path], limit: int | None) -> Sequence[Simulation]:
    """Return simulations of logs under conservative backfilling."""
    return [
        Simulation(
            trace=str(path),
            log=name_of(path),
            semantics=Semantics(policy="conservative"),
            estimates=estimates,
            limit=limit,
        )
        for path in paths
        for estimates in ESTIMATES
    ]


def node_runs(paths: Sequence[Path], limit: int | None) -> Sequence[Simulation]:
    """Return simulations of logs on named nodes, with every pinning.

    Exact estimates are played without pinning only: with them all plans stay as they are.
    """
    return [
        Simulation(
            trace=str(path),
            log=name_of(path),
            semantics=Semantics(policy="fcfs-pinned", pinning=pinning),
            estimates=estimates,
            limit=limit,
        )
        for path in paths
        for pinning in PINNING
        for estimates in ESTIMATES
        if estimates != "exact" or not pinning
    ]


def more_logs(logs: Path) -> Mapping[str, Path]:
    """Return the paper's logs beside CTC and SDSC, as far as they are in a directory."""
    found = {name: sorted(logs.glob(pattern)) for name, pattern in MORE_LOGS.items()}
    return {name: paths[0] for name, paths in found.items() if paths}


def name_of(path: Path) -> str:
    """Return a log's short name: the paper's, where it has one."""
    for name, pattern in MORE_LOGS.items():
        if path.match(pattern):
            return name
    return "-".join(path.name.split("-")[:2])
