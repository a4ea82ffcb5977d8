"""Every estimator in every setting against the truth, as Fig. 3 and Table 1 of Hanzich et al."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from simulator.reports.tables import text_table
from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.studies.hanzich.findings import Cell, Scores, Verdict, by_cell, mean, verdicts
from simulator.studies.hanzich.nas import LOCAL_SHARES
from simulator.studies.hanzich.scoring import SCORED, Deviation, Setting, score
from simulator.studies.study import Played, Study, Takes

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


class Part(NamedTuple):
    """A few workloads in one setting."""

    setting: Setting
    seeds: range


def parts(
    paths: Sequence[Path], limit: int | None, *, seeds: int = 100, scale: float = 1.0
) -> list[Part]:
    """Every setting with every workload.

    Args:
        paths: none are taken.
        limit: jobs of each workload, or all.
        seeds: workloads in each setting; at least 2.
        scale: how many times longer the benchmarks run than supposed.
    """
    assert not paths  # noqa: S101 - the study takes nothing
    settings = [Setting(*each, scale, limit) for each in product(SHARED_POLICIES, LOCAL_SHARES)]
    return [Part(setting, chosen) for setting, chosen in product(settings, _chunks(seeds))]


def _chunks(seeds: int) -> Iterator[range]:
    for first in range(0, seeds, SEEDS_AT_ONCE):
        yield range(first, min(seeds, first + SEEDS_AT_ONCE))


def play(part: Part) -> list[Mapping[str, Deviation]]:
    """The deviations of every combination, workload by workload."""
    return score(*part)


def scores_of(played: Played) -> Scores:
    """The deviations of all workloads by cell."""
    scored: dict[Setting, list[Mapping[str, Deviation]]] = {}
    for part, found in played:
        scored.setdefault(part.setting, []).extend(found)
    return by_cell(scored)


def records(played: Played) -> dict[str, Any]:
    """Every cell, and which findings of the paper hold."""
    scores = scores_of(played)
    seeds = sum(len(part.seeds) for part, _ in played) // len({part.setting for part, _ in played})
    return {"seeds": seeds, "cells": as_records(scores), "findings": verdicts(scores)}


def tables(scores: Scores) -> str:
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
            "Deviation of execution times alone in %, 25% of the nodes with local load (section 1:",
            "41% for the paper's formulas, 37% for the history of others)",
            "",
            _executions(scores),
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
            "execution_deviation": mean([each.execution for each in scores[cell]])._asdict(),
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


def _executions(scores: Scores) -> str:
    rows = [
        [
            policy,
            *(
                _with_margin([d.execution for d in scores[Cell(policy, LOCAL_SHARES[0], name)]])
                for name in SCORED
            ),
        ]
        for policy in SHARED_POLICIES
    ]
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


STUDY = Study(
    title="Turnarounds on shared nodes, estimated and true (Hanzich et al. 2005)",
    takes=Takes.NOTHING,
    runs=parts,
    play=play,
    report=lambda played: tables(scores_of(played)),
    records=records,
)
