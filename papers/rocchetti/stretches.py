"""The six scenarios on many stretches of a log, and the paper's findings counted over them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.simulations import Simulation
from simulator.reports.exhibit import Value
from simulator.scheduling.semantics import Semantics


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioRun:
    """Results of one scenario on one stretch of a log.

    Attributes:
        log: its short name.
        policy: of the scheduler.
        days: of the stretch.
        load: work as a multiple of what the machine can do, which the stretch was chosen for.
        scenario: number in Table 4.
        order: of the queue.
        estimates: of the scheduler.
        jobs: of the stretch.
        digest: of the submissions, by which equal stretches are told apart.
        wait: mean, in minutes.
        makespan: in days.
        stretches: number of distinct stretches of the log under the policy; 0 before they are told
            apart.
    """

    log: str
    policy: str
    days: int
    load: float
    scenario: int
    order: str
    estimates: str
    jobs: int
    digest: str
    wait: float
    makespan: float
    stretches: int = 0


def logs_in(directory: Path) -> Mapping[str, Path]:
    """Return the paper's logs that lie in a directory."""
    found = {name: sorted(directory.glob(log.pattern)) for name, log in LOGS.items()}
    return {name: paths[0] for name, paths in found.items() if paths}


def scenario_runs(log: str, path: Path, limit: int | None) -> list[Simulation]:
    """Return six scenarios x two policies x all stretches of a log."""
    return [
        Simulation(
            trace=str(path),
            log=log,
            semantics=Semantics(policy=policy, order=order),
            estimates=estimates,
            processors=LOGS[log].cores,
            limit=limit,
            days=days,
            load=load,
            least_processors=2,
        )
        for policy in POLICIES
        for days in DAYS
        for load in LOADS
        for estimates, order in SCENARIOS
    ]


def scenario_run(run: Simulation) -> ScenarioRun:
    """Simulate a scenario on a stretch."""
    found = run.play()
    submitted = found.schedule.workload.submit
    order = run.semantics.order
    return ScenarioRun(
        log=run.log,
        policy=run.semantics.policy,
        days=run.days or 0,
        load=run.load,
        scenario=SCENARIOS.index((run.estimates, order)) + 1,
        order=order,
        estimates=run.estimates,
        jobs=len(submitted),
        digest=sha256(submitted.tobytes()).hexdigest()[:16],
        wait=found.measures.wait / 60,
        makespan=found.measures.makespan / 86400,
    )


def distinct(runs: Sequence[ScenarioRun]) -> list[ScenarioRun]:
    """Return the runs on stretches that differ in any job: of equal stretches the first."""
    first: dict[tuple[str, str, str], tuple[int, float]] = {}
    for each in runs:
        first.setdefault((each.log, each.policy, each.digest), (each.days, each.load))
    stretches = Counter((log, policy) for log, policy, _ in first)
    return [
        replace(each, stretches=stretches[each.log, each.policy])
        for each in runs
        if first[each.log, each.policy, each.digest] == (each.days, each.load)
    ]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCount:
    """A finding over many stretches.

    Attributes:
        log: their log.
        policy: of the scheduler.
        finding: of the paper.
        stretches: number of stretches.
        held: number of stretches in which the finding holds.
        ratio: geometric mean of the two values' ratio; None without.
        lower: of its interval of 95 %.
        upper: of its interval of 95 %.
    """

    log: str
    policy: str
    finding: str
    stretches: int
    held: int
    ratio: Value = None
    lower: Value = None
    upper: Value = None


class Ratio(NamedTuple):
    """Geometric mean of ratios, with its interval of 95 %."""

    value: Value = None
    lower: Value = None
    upper: Value = None


def findings_over(runs: Sequence[ScenarioRun]) -> list[FindingCount]:
    """Count the findings of the paper over the distinct stretches of every log and policy."""
    values: dict[tuple[str, str], dict[str, list[ScenarioRun]]] = {}
    for each in runs:
        of_policy = values.setdefault((each.log, each.policy), {})
        of_policy.setdefault(each.digest, []).append(each)
    return [
        count
        for (log, policy), stretches in values.items()
        for count in _counts(log, policy, list(stretches.values()))
    ]


def _counts(
    log: str, policy: str, stretches: Sequence[Sequence[ScenarioRun]]
) -> list[FindingCount]:
    waits = [[each.wait for each in scenarios] for scenarios in stretches]
    makespans = [[each.makespan for each in scenarios] for scenarios in stretches]
    known: dict[str, Any] = {"log": log, "policy": policy, "stretches": len(stretches)}
    counts = []
    for findings, values in ((WAITS, waits), (MAKESPANS, makespans)):
        for finding in findings:
            ratio = ratio_of(finding, values)
            counts.append(
                FindingCount(
                    finding=finding.text,
                    held=held(finding, values),
                    ratio=ratio.value,
                    lower=ratio.lower,
                    upper=ratio.upper,
                    **known,
                )
            )
    orders = whole_orders(waits, makespans)
    return [*counts, *(FindingCount(finding=name, held=n, **known) for name, n in orders.items())]


Values = Sequence[Sequence[float]]
"""A value for each scenario, by stretch."""


def held(finding: Finding, values: Values) -> int:
    """Return the number of stretches in which a finding holds."""
    pairs = np.array([(each[finding.of - 1], each[finding.to - 1]) for each in values])
    greater = pairs[:, 0] > pairs[:, 1] if finding.grows else pairs[:, 0] < pairs[:, 1]
    return int(np.count_nonzero(greater))


def ratio_of(finding: Finding, values: Values) -> Ratio:
    """Return the ratio of a finding's two values over stretches.

    The interval is a bootstrap over the stretches, as if they had nothing in common. Stretches in
    which nobody waits have no ratio; without any there is no interval.
    """
    pairs = np.array([(each[finding.of - 1], each[finding.to - 1]) for each in values])
    positive = pairs[(pairs > 0).all(axis=1)]
    if not len(positive):
        return Ratio()
    logarithms = np.log(positive[:, 0] / positive[:, 1])
    drawn = np.random.default_rng(0).choice(logarithms, (DRAWS, len(logarithms))).mean(axis=1)
    lower, upper = np.exp(np.quantile(drawn, (0.025, 0.975)))
    return Ratio(float(np.exp(logarithms.mean())), float(lower), float(upper))


def whole_orders(waits: Values, makespans: Values) -> Mapping[str, int]:
    """Return in how many stretches the whole order of scenarios is the paper's."""
    return {
        "exact: FCFS > PSP > aging": sum(_falls(each[:3]) for each in waits),
        "requests: FCFS > PSP > aging": sum(_falls(each[3:]) for each in waits),
        "both": sum(_falls(each[:3]) and _falls(each[3:]) for each in waits),
        "exact: makespan FCFS < PSP < aging": sum(_falls(each[2::-1]) for each in makespans),
        "requests: makespan FCFS < PSP < aging": sum(_falls(each[:2:-1]) for each in makespans),
    }


def _falls(values: Sequence[float]) -> bool:
    return all(one > other for one, other in pairwise(values))
