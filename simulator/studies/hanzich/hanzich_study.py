"""Every estimator in every setting against the truth, as Fig. 3 and Table 1 of Hanzich et al."""

from collections.abc import Sequence
from typing import Any

from simulator.reports.tables import text_table
from simulator.shared_nodes.policies import SHARED_POLICIES
from simulator.studies.hanzich.hanzich_exhibits import EXHIBITS
from simulator.studies.hanzich.hanzich_findings import (
    COLUMNS,
    PAPER,
    Cell,
    DeviationsByCell,
    mean,
    scores_of,
    verdicts,
)
from simulator.studies.hanzich.nas import LOCAL_SHARES
from simulator.studies.hanzich.scoring import SCORED, parts, play
from simulator.studies.study import Played, Study, Takes


def records(played: Played) -> dict[str, Any]:
    """Every cell, and which findings of the paper hold."""
    scores = scores_of(played)
    seeds = sum(len(part.seeds) for part, _ in played) // len({part.setting for part, _ in played})
    return {"seeds": seeds, "cells": as_records(scores), "findings": verdicts(scores)}


def tables(played: Played) -> str:
    """The deviations as the paper has them."""
    scores = scores_of(played)
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
        ]
    )


def findings(played: Played) -> str:
    """Table of the paper's findings with the comparisons in which they hold."""
    rows = [
        [
            verdict.finding,
            f"{verdict.holds}",
            f"{verdict.contrary}",
            f"{verdict.comparisons - verdict.holds - verdict.contrary}",
            f"{verdict.difference:+.1f}",
        ]
        for verdict in verdicts(scores_of(played))
    ]
    table = text_table(["finding", "holds", "contrary", "neither", "points"], rows)
    return f"Findings of the paper: comparisons in which they hold beyond the noise\n\n{table}"


MEASURES = {
    "deviation": "at_arrival",
    "signed_deviation": "signed",
    "adjusted_deviation": "adjusted",
    "execution_deviation": "execution",
}
"""Fields of ``Deviation`` by their names in JSON."""


def as_records(scores: DeviationsByCell) -> list[dict[str, Any]]:
    """The mean of every cell with half of the width of its confidence interval, for JSON."""
    return [
        {
            **cell._asdict(),
            **{
                name: mean([getattr(each, field) for each in deviations])._asdict()
                for name, field in MEASURES.items()
            },
        }
        for cell, deviations in scores.items()
    ]


def _figure(scores: DeviationsByCell) -> str:
    rows = []
    for policy in SHARED_POLICIES:
        cells = [scores[Cell(policy, LOCAL_SHARES[0], name)] for name in SCORED]
        rows.append([policy, *(_with_margin([d.at_arrival for d in cell]) for cell in cells)])
        signed = [mean([d.signed for d in cell]).value for cell in cells]
        rows.append(["", *(f"({value:+.1f})" for value in signed)])
    return text_table(["policy", *SCORED], rows)


def _executions(scores: DeviationsByCell) -> str:
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


def _table(scores: DeviationsByCell) -> str:
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


def _with_margin(values: Sequence[float]) -> str:
    value, margin = mean(values)
    return f"{value:.1f}+-{margin:.1f}"


STUDY = Study(
    title="Turnarounds on shared nodes, estimated and true (Hanzich et al. 2005)",
    takes=Takes.NOTHING,
    runs=parts,
    play=play,
    tables=tables,
    notes=findings,
    records=records,
    exhibits=EXHIBITS,
)
