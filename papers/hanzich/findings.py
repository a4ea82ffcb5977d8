"""Tests the findings of Hanzich et al. 2005 on our deviations, seed by seed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from papers.hanzich.nas import LOCAL_SHARES
from papers.hanzich.scoring import Deviation
from simulator.shared_nodes.policies import SHARED_POLICIES

CONFIDENCE = 0.95

ANALYTIC = ("proportional", "mpl", "cpu")
"""The paper's formulas for the remaining time."""

USED = ("mpl", "cpu")
"""Its formulas for the CPU time."""


class Cell(NamedTuple):
    """A combination of estimators in a setting."""

    policy: str
    local_share: float
    estimator: str


DeviationsByCell = Mapping[Cell, Sequence[Deviation]]
"""By cell, the same seeds in the same order in each."""


class Mean(NamedTuple):
    """A mean over the seeds, and half of the width of its confidence interval."""

    value: float
    margin: float


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of at least two values, with the margin of Student's t distribution."""
    quantile = students_quantile(len(values) - 1)
    return Mean(fmean(values), quantile * stdev(values) / sqrt(len(values)))


@cache
def students_quantile(freedom: int) -> float:
    """Return the two-sided quantile of Student's t distribution at ``CONFIDENCE``."""
    from scipy.stats import t  # noqa: PLC0415 - loaded by this study alone: it takes half a second

    return float(t.ppf((1 + CONFIDENCE) / 2, freedom))


def scores_of(deviations: Iterable[Deviation]) -> DeviationsByCell:
    """Return the deviations of all workloads of one scale by cell."""
    found: dict[Cell, list[Deviation]] = {}
    for each in deviations:
        found.setdefault(Cell(each.policy, each.local_share, each.estimator), []).append(each)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingVerdict:
    """In how many comparisons a finding holds; the others are within the noise.

    Attributes:
        finding: of the paper.
        holds: comparisons whose confidence interval lies on its side.
        contrary: on the other side.
        comparisons: all.
        difference: mean over the comparisons, in points, positive in favour of the finding.
    """

    finding: str
    holds: int
    contrary: int
    comparisons: int
    difference: float

    @property
    def neither(self) -> int:
        """Comparisons within the noise."""
        return self.comparisons - self.holds - self.contrary


def verdicts(deviations: Iterable[Deviation]) -> list[FindingVerdict]:
    """Judge every finding over all cells that it speaks of."""
    scores = scores_of(deviations)
    return [
        _verdict(finding, [values(scores) for values in comparisons])
        for finding, comparisons in FINDINGS.items()
    ]


def _verdict(finding: str, comparisons: Sequence[Sequence[float]]) -> FindingVerdict:
    means = [mean(values) for values in comparisons]
    return FindingVerdict(
        finding=finding,
        holds=sum(each.value > each.margin for each in means),
        contrary=sum(each.value < -each.margin for each in means),
        comparisons=len(means),
        difference=fmean(each.value for each in means),
    )


Comparison = Callable[[DeviationsByCell], Sequence[float]]
"""By seed, by how many points the finding holds."""


def _worse(worse: Cell, better: Cell) -> Comparison:
    def differences(scores: DeviationsByCell) -> list[float]:
        pairs = zip(scores[worse], scores[better], strict=True)
        return [one.at_arrival - other.at_arrival for one, other in pairs]

    return differences


def _pessimistic(cell: Cell) -> Comparison:
    return lambda scores: [each.signed for each in scores[cell]]


def _execution_worse(worse: Cell, better: Cell) -> Comparison:
    def differences(scores: DeviationsByCell) -> list[float]:
        pairs = zip(scores[worse], scores[better], strict=True)
        return [one.execution - other.execution for one, other in pairs]

    return differences


_ESTIMATORS = tuple(f"{remaining}-{used}" for remaining, used in product(ANALYTIC, USED))
_BACKFILLING = ("normal-backfilling", "uniform-backfilling")

FINDINGS: Mapping[str, Sequence[Comparison]] = {
    "Uniform deviates less than Normal": [
        _worse(Cell("normal" + selects, share, name), Cell("uniform" + selects, share, name))
        for selects, share, name in product(("", "-backfilling"), LOCAL_SHARES, _ESTIMATORS)
    ],
    "FCFS deviates less than backfilling": [
        _worse(Cell(f"{places}-backfilling", share, name), Cell(places, share, name))
        for places, share, name in product(("normal", "uniform"), LOCAL_SHARES, _ESTIMATORS)
    ],
    "CPU-CPU deviates less than MPL-MPL": [
        _worse(Cell(policy, share, "mpl-mpl"), Cell(policy, share, "cpu-cpu"))
        for policy, share in product(SHARED_POLICIES, LOCAL_SHARES)
    ],
    "CPU time by usage (Eq 9) deviates less than by MPL (Eq 8)": [
        _worse(Cell(policy, share, f"{name}-mpl"), Cell(policy, share, f"{name}-cpu"))
        for policy, share, name in product(SHARED_POLICIES, LOCAL_SHARES, ANALYTIC)
    ],
    "Proportional deviates more than MPL and CPU": [
        _worse(Cell(policy, share, f"proportional-{used}"), Cell(policy, share, f"{name}-{used}"))
        for policy, share, used, name in product(
            SHARED_POLICIES, LOCAL_SHARES, USED, ("mpl", "cpu")
        )
    ],
    "Under backfilling estimates are pessimistic": [
        _pessimistic(Cell(policy, share, name))
        for policy, share, name in product(_BACKFILLING, LOCAL_SHARES, _ESTIMATORS)
    ],
    "Under backfilling more local load means less deviation": [
        _worse(Cell(policy, min(LOCAL_SHARES), name), Cell(policy, max(LOCAL_SHARES), name))
        for policy, name in product(_BACKFILLING, ("mpl-mpl", "cpu-cpu"))
    ],
    "Basic deviates more than Normal or Uniform (in some cases)": [
        _worse(Cell("basic", share, name), Cell(other, share, name))
        for share, name, other in product(LOCAL_SHARES, _ESTIMATORS, ("normal", "uniform"))
    ],
    "Under Basic with 25% local load CPU-CPU is pessimistic": [
        _pessimistic(Cell("basic", min(LOCAL_SHARES), "cpu-cpu"))
    ],
    "History errs less in execution times than the formulas (37% against 41%)": [
        _execution_worse(Cell(policy, share, name), Cell(policy, share, "hybrid-cpu"))
        for policy, share, name in product(SHARED_POLICIES, LOCAL_SHARES, _ESTIMATORS)
    ],
}
"""Each finding as the comparisons that it makes."""
