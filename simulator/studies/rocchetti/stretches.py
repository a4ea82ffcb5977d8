"""The six scenarios on many stretches of a log, and the paper's findings counted over them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

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


PAPER_WAITS: Mapping[str, Sequence[float]] = {
    "Curie": (4569, 3785, 2617, 4609, 3706, 2336),
    "Gaia": (4358, 3716, 2641, 5153, 3354, 2421),
}
"""Minutes, scenarios 1 to 6 (Table 5)."""

PAPER_MAKESPANS: Mapping[str, Sequence[float]] = {
    "Curie": (16.19, 15.33, 17.19, 16.17, 17.04, 17.71),
    "Gaia": (27.82, 27.62, 27.79, 27.85, 28.03, 29.08),
}
"""Days (Table 6)."""

PAPER_GROUPS: Mapping[str, Sequence[float]] = {
    "Curie": (0.14, 0.07, 0.09, 0.10, 0.18, 0.16, 0.11, 0.07, 0.04, 0.04),
    "Gaia": (0.27, 0.08, 0.10, 0.05, 0.15, 0.15, 0.15, 0.00, 0.00, 0.05),
}
"""Shares of users in g1 to g10 (Table 3)."""

CORES: Mapping[str, float] = {
    "2 to 16": 16,
    "17 to 64": 64,
    "65 to 256": 256,
    "257 to 1024": 1024,
    "1025 or more": float("inf"),
}
"""Classes of Table 2, with their upper ends."""

PAPER_CORES: Mapping[str, Sequence[float]] = {
    "Curie": (0.60, 0.07, 0.18, 0.14, 0.01),
    "Gaia": (0.87, 0.11, 0.02, 0.00, 0.00),
}
"""Shares of jobs by the cores they request (Table 2)."""

DRAWS = 10_000
"""Of the bootstrap that intervals come from."""


class Finding(NamedTuple):
    """One scenario against another.

    Attributes:
        text: what the paper found.
        of: number of the scenario whose value is the numerator.
        to: number of the one that it is compared with.
        grows: the paper's value is the greater of the two.
    """

    text: str
    of: int
    to: int
    grows: bool = False


WAITS: Sequence[Finding] = (
    Finding("exact: PSP waits less than FCFS", 2, 1),
    Finding("exact: aging waits less than PSP", 3, 2),
    Finding("exact: aging waits less than FCFS", 3, 1),
    Finding("requests: PSP waits less than FCFS", 5, 4),
    Finding("requests: aging waits less than PSP", 6, 5),
    Finding("requests: aging waits less than FCFS", 6, 4),
)
"""Section 5, Table 5."""

MAKESPANS: Sequence[Finding] = (
    Finding("exact: makespan grows with PSP", 2, 1, grows=True),
    Finding("exact: makespan grows with aging", 3, 2, grows=True),
    Finding("requests: makespan grows with PSP", 5, 4, grows=True),
    Finding("requests: makespan grows with aging", 6, 5, grows=True),
)
"""Section 5, Table 6: the text says so; its scenario 2 contradicts it."""


class FindingCount(NamedTuple):
    """A finding over many stretches.

    Attributes:
        held: in how many stretches it is so.
        ratio: geometric mean of the two values' ratio.
        lower: of its interval of 95 %.
        upper: of its interval of 95 %.
    """

    held: int
    ratio: float
    lower: float
    upper: float


def counted(finding: Finding, values: Sequence[Sequence[float]]) -> FindingCount:
    """A finding over stretches, each with a value for each scenario.

    The interval is a bootstrap over the stretches, as if they had nothing in common. Stretches in
    which nobody waits have no ratio; without any there is no interval.
    """
    pairs = np.array([(each[finding.of - 1], each[finding.to - 1]) for each in values])
    greater = pairs[:, 0] > pairs[:, 1] if finding.grows else pairs[:, 0] < pairs[:, 1]
    held = int(np.count_nonzero(greater))
    positive = pairs[(pairs > 0).all(axis=1)]
    if not len(positive):
        return FindingCount(held, np.nan, np.nan, np.nan)
    logarithms = np.log(positive[:, 0] / positive[:, 1])
    drawn = np.random.default_rng(0).choice(logarithms, (DRAWS, len(logarithms))).mean(axis=1)
    lower, upper = np.exp(np.quantile(drawn, (0.025, 0.975)))
    return FindingCount(held, float(np.exp(logarithms.mean())), float(lower), float(upper))


def whole_orders(stretches: Sequence[ScenarioStretch]) -> Mapping[str, int]:
    """In how many stretches the whole order of scenarios is the paper's."""
    return {
        "exact: FCFS > PSP > aging": sum(_falls(each.waits[:3]) for each in stretches),
        "requests: FCFS > PSP > aging": sum(_falls(each.waits[3:]) for each in stretches),
        "both": sum(_falls(each.waits[:3]) and _falls(each.waits[3:]) for each in stretches),
        "exact: makespan FCFS < PSP < aging": sum(
            _falls(each.makespans[2::-1]) for each in stretches
        ),
        "requests: makespan FCFS < PSP < aging": sum(
            _falls(each.makespans[:2:-1]) for each in stretches
        ),
    }


def _falls(values: Sequence[float]) -> bool:
    return all(one > other for one, other in pairwise(values))
