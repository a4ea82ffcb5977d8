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


NOTES = """\
The paper plays "a representative subset" of each log, which it does not name, on 4,096 cores, and
does not say whether its Slurm backfilled. Ours are all distinct stretches of 8 to 16 days whose
jobs of 2 to 4,096 cores come nearest to 1.1 to 2.0 times what these cores can do in them. They
overlap, so that the intervals (bootstrap over stretches) are narrower than they should be. Aging
goes by the request, also where estimates are exact.

PSP below FCFS: reproduced, in 16 of 18 stretches, with and without backfilling.

Aging below PSP: not reproduced under EASY with requests (7 of 18, and the ratio's interval holds
1); reproduced without backfilling (15 of 18, and aging is below FCFS in all). Long waits do not
rescue it under EASY: of the four stretches whose FCFS waits exceed 3,000 minutes it fails in two.
Aging grows with wait over request, so that under EASY it serves the short jobs that backfilling
serves already, and the long ones pay.

Without backfilling exact estimates change nothing: the order of the queue does not use them. The
paper's waits hardly depend on them without aging either (4,569 and 4,609; 3,785 and 3,706), so its
scheduler may not have backfilled; with aging they do (2,617 and 2,336), which we cannot explain.

Makespan: the paper says that it grows with PSP and again with aging. That is contradicted: with
requests the two together occur in none of 18 stretches, with or without backfilling, and PSP makes
it shorter by 4 to 5 %. The paper's own Table 6 has its least makespan in scenario 2, with PSP,
where its text speaks of FCFS with real estimates.
"""

STUDY = scheduling_study(
    "Six scenarios of priorities by accuracy (Rocchetti et al. 2017)",
    (LOGS[CURIE].pattern,),
    scenario_runs,
    tables,
    notes=lambda _: NOTES,
    exhibits=EXHIBITS,
    pictures=pictures,
)
