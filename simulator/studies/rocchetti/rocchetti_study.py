"""Rocchetti et al. 2017: priorities by the accuracy of users' requests, six scenarios."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from simulator.reports.exhibit_pictures import write_exhibit
from simulator.reports.tables import text_table
from simulator.studies.rocchetti.rocchetti_exhibits import EXHIBITS, scenario_exhibits
from simulator.studies.rocchetti.rocchetti_findings import (
    MAKESPANS,
    PAPER_MAKESPANS,
    PAPER_WAITS,
    WAITS,
    counted,
    sentences,
    whole_orders,
)
from simulator.studies.rocchetti.stretches import (
    CURIE,
    LOGS,
    POLICIES,
    ScenarioStretch,
    scenario_runs,
    stretches_of,
)
from simulator.studies.simulations import Results, scheduling_study
from simulator.studies.study import Played

SCENARIO_HEADS = ("1", "2", "3", "4", "5", "6")

FINDING_HEADS = ("finding of the paper", "holds in", "ratio", "95 % interval", "paper")


def tables(results: Results) -> str:
    """Every stretch, and the findings counted over all of them."""
    played = {name for name in LOGS if any(g.startswith(name) for g in results.groups())}
    parts = []
    for log in LOGS:
        if log not in played:
            parts.append(
                f"{log}: missing here, with its columns of Tables 2, 3, 5 and 6 and Fig. 4; it is"
                " taken when its file lies beside the others.\n"
            )
            continue
        for policy, meaning in POLICIES.items():
            stretches = stretches_of(results, log, policy)
            parts += [
                f"{log}, {meaning}: mean waits in minutes of scenarios 1 to 6\n",
                _stretch_table(stretches),
                f"{log}, {meaning}: findings of the paper over {len(stretches)} stretches\n",
                _finding_table(log, stretches),
                _order_table(stretches),
            ]
    return "\n".join(parts)


def _stretch_table(stretches: Sequence[ScenarioStretch]) -> str:
    heads = ("stretch", "jobs", *SCENARIO_HEADS, *(f"makespan {n}" for n in SCENARIO_HEADS[3:]))
    return text_table(
        heads,
        [
            (
                each.name,
                f"{each.jobs:,}",
                *(f"{wait:,.0f}" for wait in each.waits),
                *(f"{days:.2f}" for days in each.makespans[3:]),
            )
            for each in stretches
        ],
    )


def _finding_table(log: str, stretches: Sequence[ScenarioStretch]) -> str:
    waits = [each.waits for each in stretches]
    makespans = [each.makespans for each in stretches]
    lines = []
    for findings, values, paper in (
        (WAITS, waits, PAPER_WAITS[log]),
        (MAKESPANS, makespans, PAPER_MAKESPANS[log]),
    ):
        for finding in findings:
            found = counted(finding, values)
            lines.append(
                (
                    finding.text,
                    f"{found.held} of {len(stretches)}",
                    f"{found.ratio:.2f}",
                    f"{found.lower:.2f} to {found.upper:.2f}",
                    f"{paper[finding.of - 1] / paper[finding.to - 1]:.2f}",
                )
            )
    return text_table(FINDING_HEADS, lines)


def _order_table(stretches: Sequence[ScenarioStretch]) -> str:
    lines = [
        (order, f"{held} of {len(stretches)}") for order, held in whole_orders(stretches).items()
    ]
    return text_table(("whole order, as the paper's", "holds in"), lines)


def pictures(directory: Path, played: Played) -> Iterator[str]:
    """Write the paper's figure and tables of scenarios as pictures and CSV."""
    for name, exhibit in scenario_exhibits(Results(played)).items():
        yield write_exhibit(exhibit, directory / f"rocchetti-{name.replace(' ', '-')}.png")


def notes(played: Played) -> str:
    """Conclusions from the stretches that were played."""
    results = Results(played)
    logs = [log for log in LOGS if any(g.startswith(f"{log}, ") for g in results.groups())]
    return sentences(
        {log: {policy: stretches_of(results, log, policy) for policy in POLICIES} for log in logs}
    )


STUDY = scheduling_study(
    "Six scenarios of priorities by accuracy (Rocchetti et al. 2017)",
    (LOGS[CURIE].pattern,),
    scenario_runs,
    tables,
    notes=notes,
    exhibits=EXHIBITS,
    pictures=pictures,
)
