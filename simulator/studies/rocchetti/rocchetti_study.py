"""Rocchetti et al. 2017: priorities by the accuracy of users' requests, six scenarios."""

from collections.abc import Sequence

from simulator.reports.tables import text_table
from simulator.studies.rocchetti.rocchetti_exhibits import EXHIBITS
from simulator.studies.rocchetti.stretches import (
    CURIE,
    LOGS,
    MAKESPANS,
    PAPER_MAKESPANS,
    PAPER_WAITS,
    POLICIES,
    WAITS,
    ScenarioStretch,
    counted,
    scenario_runs,
    stretches_of,
    whole_orders,
)
from simulator.studies.simulations import Results, scheduling_study

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


LEGEND = """\
The paper plays "a representative subset" of each log, which it does not name, on fewer cores than
there were (4,096 for Curie, 1,024 for Gaia), and does not say whether its Slurm backfilled. Ours
are all distinct stretches of 8 to 16 days whose jobs of more than one core, and no more than there
are, come nearest to 1.1 to 2 times what these cores can do in them. They overlap, so that the
intervals (bootstrap over stretches) are narrower than they should be. Aging goes by the request,
also where estimates are exact.
"""

STUDY = scheduling_study(
    "Six scenarios of priorities by accuracy (Rocchetti et al. 2017)",
    (LOGS[CURIE].pattern,),
    scenario_runs,
    tables,
    notes=lambda _: LEGEND,
    exhibits=EXHIBITS,
)
