"""The simulations of Klusáček & Soysal 2020: conservative plans, and FCFS on named nodes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from simulator.scheduling.semantics import Semantics
from simulator.studies.simulations import Simulation

CTC, SDSC = "CTC-SP2-1996-3.1-cln.swf.gz", "SDSC-SP2-1998-4.2-cln.swf.gz"
STAND_IN = "CERIT-SC-wagap-2013.swf.gz"
LOGS = (CTC, SDSC, STAND_IN)

MORE_LOGS: Mapping[str, str] = {"FH1": "*FH1*.swf*", "FH2": "*FH2*.swf*"}
"""The paper's other logs, and how their files are looked for; the study takes what it finds."""

ESTIMATES = ("exact", "requested", "max-usage")

PINNING = (0, 3600, 7200)
"""Seconds: none, 1 h and 2 h."""

FEW_JOBS = 5000
"""Without backfilling the queue of these logs never empties, and waits grow with the log."""


class FirstJobs(NamedTuple):
    """The first jobs of a log, which are played on named nodes."""

    name: str
    limit: int | None


def runs(logs: Path, limit: int | None, node_jobs: int | None = None) -> Sequence[Simulation]:
    """Conservative backfilling with three estimates; FCFS on nodes, pinned or not.

    Args:
        logs: their directory.
        limit: the first ``limit`` jobs of each log, or all.
        node_jobs: the same for named nodes, where whole logs take long.
    """
    paths = [*(logs / log for log in LOGS), *more_logs(logs).values()]
    # On the stand-in hardly anybody waits.
    on_nodes = [path for path in paths if path.name != STAND_IN]
    return [
        *(run for path in paths for run in conservative_runs(path, limit)),
        *(run for path in on_nodes for run in node_runs(path, spans(limit, node_jobs))),
    ]


def conservative_runs(path: Path, limit: int | None) -> Sequence[Simulation]:
    """A log under conservative backfilling."""
    return [
        Simulation(
            trace=str(path),
            semantics=Semantics(policy="conservative"),
            estimates=estimates,
            limit=limit,
            group=f"{name_of(path)}, conservative",
        )
        for estimates in ESTIMATES
    ]


def node_runs(path: Path, played: Sequence[FirstJobs]) -> Sequence[Simulation]:
    """Some spans of a log with every pinning; the first few jobs also with the start kept.

    Exact estimates are played without pinning only: with them all plans stay as they are.
    """
    return [
        Simulation(
            trace=str(path),
            semantics=Semantics(policy="fcfs-pinned", pinning=pinning, pinned=pinned),
            estimates=estimates,
            limit=span.limit,
            group=_node_group(name_of(path), span, pinning, pinned),
        )
        for span in played
        for pinning in PINNING
        for pinned in ("nodes", "start")
        if pinned == "nodes" or (pinning and span == FEW)
        for estimates in ESTIMATES
        if estimates != "exact" or not pinning
    ]


FEW = FirstJobs(f"first {FEW_JOBS:,}", FEW_JOBS)


def spans(limit: int | None, node_jobs: int | None) -> Sequence[FirstJobs]:
    """The first few jobs, and all jobs that are played on named nodes."""
    most = min((jobs for jobs in (limit, node_jobs) if jobs is not None), default=None)
    if most is None:
        return FEW, FirstJobs("all", None)
    if most <= FEW_JOBS:
        return (FirstJobs(f"first {most:,}", most),)
    return FEW, FirstJobs(f"first {most:,}", most)


def _node_group(log: str, span: FirstJobs, pinning: int, pinned: str) -> str:
    suffix = ", start kept" if pinned == "start" else ""
    return f"{log}, {span.name}, pinning {pinning // 3600} h{suffix}"


def more_logs(logs: Path) -> Mapping[str, Path]:
    """The paper's logs beside CTC and SDSC, as far as they are there."""
    found = {name: sorted(logs.glob(pattern)) for name, pattern in MORE_LOGS.items()}
    return {name: paths[0] for name, paths in found.items() if paths}


def name_of(path: Path) -> str:
    """A log's short name: the paper's, where it has one."""
    for name, pattern in MORE_LOGS.items():
        if path.match(pattern):
            return name
    return "-".join(path.name.split("-")[:2])
