"""Every estimator in every setting against the truth, as Fig. 3 and Table 1 of Hanzich et al."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.reports.tables import text_table
from simulator.shared_nodes.policies import SHARED_POLICIES
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
from simulator.studies.hanzich.scoring import SCORED, SEEDS, Conditions, Workloads, parts, play
from simulator.studies.study import ExhibitInput, Exhibits, Played, Study, Takes

TRUTH = (
    "The truth here is simulated, the paper's was measured; it does not say how long its "
    "benchmarks run.\n"
)


def figure_3(sources: ExhibitInput) -> Exhibit:
    """Every estimator under every policy, a quarter of the nodes with local users."""
    return figure_of(_scores(sources, LOCAL_SHARES[:1]))


def figure_of(scores: DeviationsByCell) -> Exhibit:
    """The bars of Fig. 3; those of which Table 1 has a number have the paper's too."""
    panel = _panel(scores, LOCAL_SHARES[0], {name: name for name in SCORED})
    return Exhibit("Turnaround deviation by estimator (Hanzich et al., Fig. 3)", [panel], TRUTH)


def table_1(sources: ExhibitInput) -> Exhibit:
    """MPL-MPL and CPU-CPU under every policy, by local load."""
    return table_of(_scores(sources, LOCAL_SHARES))


def table_of(scores: DeviationsByCell) -> Exhibit:
    """A panel for each local load."""
    names = {"mpl-mpl": "MPL-MPL", "cpu-cpu": "CPU-CPU"}
    panels = [_panel(scores, share, names) for share in LOCAL_SHARES]
    return Exhibit("Turnaround deviation by local load (Hanzich et al., Table 1)", panels, TRUTH)


def _panel(scores: DeviationsByCell, share: float, names: Mapping[str, str]) -> Panel:
    """The mean deviations of estimators, which are called as in ``names``, by policy."""
    return Panel(
        title=f"{share:.0%} of the nodes with local load",
        places=list(SHARED_POLICIES),
        series=[
            Series(
                name,
                [_mean(scores, Cell(policy, share, estimator)) for policy in SHARED_POLICIES],
                [_paper(policy, share, estimator) for policy in SHARED_POLICIES],
            )
            for estimator, name in names.items()
        ],
        along="policy",
        value="deviation of turnarounds in %",
        digits=1,
    )


def _scores(sources: ExhibitInput, shares: Sequence[float]) -> DeviationsByCell:
    """The deviations of every policy with these local loads."""
    seeds = range(sources.options.get("seeds", SEEDS))
    scale = sources.options.get("scale", 1.0)
    settings = [
        Conditions(policy, share, scale, sources.limit)
        for policy, share in product(SHARED_POLICIES, shares)
    ]
    return scores_of(sources.play(play, [Workloads(setting, seeds) for setting in settings]))


def _mean(scores: DeviationsByCell, cell: Cell) -> float:
    return mean([each.at_arrival for each in scores[cell]]).value


def _paper(policy: str, share: float, estimator: str) -> float | None:
    """The paper's number, for the two estimators of its Table 1."""
    if (policy, estimator) not in COLUMNS:
        return None
    return PAPER[share][COLUMNS.index((policy, estimator))]


EXHIBITS: Exhibits = {"figure 3": figure_3, "table 1": table_1}


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
