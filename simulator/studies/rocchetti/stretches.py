"""Jobs of the six scenarios: many stretches of a log, on a machine that is too small."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from simulator.scheduling.semantics import Semantics
from simulator.studies.simulations import Results, Simulation


class PaperLog(NamedTuple):
    """A log of the paper.

    Attributes:
        pattern: of its file's name.
        cores: of the machine that is simulated (the paper's section 4.2).
    """

    pattern: str
    cores: int


CURIE, GAIA = "Curie", "Gaia"

LOGS: Mapping[str, PaperLog] = {
    CURIE: PaperLog("CEA-Curie-2011-2.1-cln.swf.gz", 4096),
    GAIA: PaperLog("*Gaia*.swf*", 1024),
}

DAYS = (8, 10, 12, 14, 16)
LOADS = (1.1, 1.25, 1.5, 2.0)

ORDERS = ("fcfs", "psp", "psp-aging")
ESTIMATES = ("exact", "requested")

SCENARIOS = tuple((estimates, order) for estimates in ESTIMATES for order in ORDERS)
"""Scenarios 1 to 6 (Table 4)."""

POLICIES: Mapping[str, str] = {"easy": "EASY backfilling", "fcfs": "no backfilling"}
"""The paper does not say whether its Slurm backfilled."""


class ScenarioStretch(NamedTuple):
    """Days in a row, with the outcome of every scenario by policy.

    Attributes:
        waits: mean, in minutes, of scenarios 1 to 6.
        makespans: in days.
    """

    log: str
    name: str
    jobs: int
    waits: Sequence[float]
    makespans: Sequence[float]


StretchesByPolicy = Mapping[str, Sequence[ScenarioStretch]]


def logs_in(directory: Path) -> Mapping[str, Path]:
    """The paper's logs that lie in a directory."""
    found = {name: sorted(directory.glob(log.pattern)) for name, log in LOGS.items()}
    return {name: paths[0] for name, paths in found.items() if paths}


def scenario_runs(directory: Path, limit: int | None) -> Sequence[Simulation]:
    """Six scenarios x two policies x all stretches x the logs that are there."""
    return [
        Simulation(
            trace=str(path),
            semantics=Semantics(policy=policy, order=order),
            estimates=estimates,
            processors=LOGS[name].cores,
            limit=limit,
            days=days,
            load=load,
            least_processors=2,
            group=f"{name}, {policy}, {days} days x {load:g}",
        )
        for name, path in logs_in(directory).items()
        for policy in POLICIES
        for days in DAYS
        for load in LOADS
        for estimates, order in SCENARIOS
    ]


def stretches_of(results: Results, log: str, policy: str) -> list[ScenarioStretch]:
    """The stretches of a log that differ in any job, with what came out under a policy."""
    found: dict[bytes, ScenarioStretch] = {}
    for group in results.groups():
        if not group.startswith(f"{log}, {policy}, "):
            continue
        played = [each for run, each in results.outcomes if run.group == group]
        submitted = played[0].schedule.workload.submit
        found.setdefault(
            submitted.tobytes(),
            ScenarioStretch(
                log=log,
                name=group.split(", ")[2],
                jobs=len(submitted),
                waits=[each.measures.wait / 60 for each in played],
                makespans=[each.measures.makespan / 86400 for each in played],
            ),
        )
    return list(found.values())
