"""Every estimator in every setting against the truth, as Fig. 3 and Table 1 of Hanzich et al."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import product
from typing import Any

from simulator.reports.tables import text_table
from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.studies.hanzich.findings import Cell, Scores, Verdict, by_cell, mean, verdicts
from simulator.studies.hanzich.nas import LOCAL_SHARES
from simulator.studies.hanzich.scoring import SCORED, Deviation, Setting, score

SEEDS_AT_ONCE = 10
"""Played by a process before it takes others."""

COLUMNS = tuple(product(SHARED_POLICIES, ("mpl-mpl", "cpu-cpu")))
"""Of Table 1."""

PAPER = {
    0.25: (144.33, 99.67, 69.67, 63.33, 6.33, 23.00, 23.00, 15.33, 12.67, 8.67),
    0.5: (58.67, 59.67, 55.00, 31.33, 14.00, 18.67, 20.50, 21.33, 22.00, 21.67),
    1.0: (46.33, 45.00, 54.00, 46.67, 34.33, 8.67, 16.67, 28.33, 25.33, 18.33),
}
"""Its values in the paper, by local share, in the order of ``COLUMNS``."""


def run_study(
    executor: Executor, *, seeds: int, scale: float, progress: Callable[[int], object]
) -> Scores:
    """Play so many workloads in each setting.

    Args:
        executor: plays them, in any order; the scores do not depend on it.
        seeds: from 0; at least 2.
        scale: how many times longer the benchmarks run than supposed.
        progress: called with the number of workloads that were just played.
    """
    settings = [Setting(*each, scale) for each in product(SHARED_POLICIES, LOCAL_SHARES)]
    scored: dict[Setting, list[Mapping[str, Deviation]]] = {each: [] for each in settings}
    parts = list(product(settings, _parts(seeds)))
    for (setting, _), found in zip(
        parts, executor.map(score, *zip(*parts, strict=True)), strict=True
    ):
        scored[setting] += found
        progress(len(found))
    return by_cell(scored)


def workloads(seeds: int) -> int:
    """How many ``run_study`` plays."""
    return len(SHARED_POLICIES) * len(LOCAL_SHARES) * seeds


def _parts(seeds: int) -> Iterator[range]:
    for first in range(0, seeds, SEEDS_AT_ONCE):
        yield range(first, min(seeds, first + SEEDS_AT_ONCE))


def report(scores: Scores) -> str:
    """The tables, and which findings of the paper hold."""
    return "\n".join(
        [
            "Turnaround deviation in %, 25% of the nodes with local load (Fig. 3);",
            "mean over the seeds, +- 95% confidence; below it the signed mean, + is pessimistic",
            "",
            _figure(scores),
            "Turnaround deviation in % by local load (Table 1): MPL-MPL and CPU-CPU",
            "",
            _table(scores),
            "Findings of the paper: comparisons in which they hold beyond the noise",
            "",
            _findings(verdicts(scores)),
        ]
    )


def as_records(scores: Scores) -> list[dict[str, Any]]:
    """The mean of every cell with half of the width of its confidence interval, for JSON."""
    return [
        {
            **cell._asdict(),
            "deviation": mean([each.at_arrival for each in scores[cell]])._asdict(),
            "signed_deviation": mean([each.signed for each in scores[cell]])._asdict(),
            "adjusted_deviation": mean([each.adjusted for each in scores[cell]])._asdict(),
        }
        for cell in scores
    ]


def _figure(scores: Scores) -> str:
    rows = []
    for policy in SHARED_POLICIES:
        cells = [scores[Cell(policy, LOCAL_SHARES[0], name)] for name in SCORED]
        rows.append([policy, *(_with_margin([d.at_arrival for d in cell]) for cell in cells)])
        signed = [mean([d.signed for d in cell]).value for cell in cells]
        rows.append(["", *(f"({value:+.1f})" for value in signed)])
    return text_table(["policy", *SCORED], rows)


def _table(scores: Scores) -> str:
    rows = []
    for share in LOCAL_SHARES:
        cells = [scores[Cell(policy, share, name)] for policy, name in COLUMNS]
        rows += [
            [f"{share:.0%} at arrival", *(_with_margin([d.at_arrival for d in c]) for c in cells)],
            ["as last adjusted", *(_with_margin([d.adjusted for d in c]) for c in cells)],
            ["paper", *(f"{value:.1f}" for value in PAPER[share])],
        ]
    return text_table(["local load", *(f"{_short(p)} {n[:3].upper()}" for p, n in COLUMNS)], rows)


def _short(policy: str) -> str:
    return policy.replace("-backfilling", "+BF")


def _findings(found: Sequence[Verdict]) -> str:
    rows = [
        [
            verdict.finding,
            f"{verdict.holds}",
            f"{verdict.contrary}",
            f"{verdict.comparisons - verdict.holds - verdict.contrary}",
            f"{verdict.difference:+.1f}",
        ]
        for verdict in found
    ]
    return text_table(["finding", "holds", "contrary", "neither", "points"], rows)


def _with_margin(values: Sequence[float]) -> str:
    value, margin = mean(values)
    return f"{value:.1f}+-{margin:.1f}"
