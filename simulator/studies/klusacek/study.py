"""Klusáček & Soysal 2020: better estimates under conservative backfilling and on named nodes."""

from pathlib import Path

import numpy as np

from simulator.reports.comparison import Outcome
from simulator.reports.tables import text_table
from simulator.scheduling.measures import node_notice, wait_error
from simulator.studies.klusacek.exhibits import EXHIBITS
from simulator.studies.klusacek.runs import LOGS, MORE_LOGS, name_of, runs
from simulator.studies.simulations import Results, scheduling_study

HEADS = (
    "log, policy", "estimates", "passed", "in gap", "wait", "no wait", "wait > 4 h",
    "wait error", "median", "90 %",
)  # fmt: skip

NODE_HEADS = (
    "log, jobs, nodes", "estimates", "T_node", "median", "T_node > 0", "> 10 min", "wait", "median",
)  # fmt: skip


def report(results: Results) -> str:
    """Two tables: the schedule and its predictions; the nodes. Then what to think of them."""
    of_schedules, of_nodes = [], []
    for group in results.groups():
        for estimates, each in results.of(group).items():
            if each.schedule.semantics.names_nodes:
                of_nodes.append(_node_line(group, estimates, each))
            else:
                of_schedules.append(_schedule_line(group, estimates, each))
    parts = [text_table(HEADS, of_schedules), text_table(NODE_HEADS, of_nodes)]
    return "\n".join([*parts, _sources(results), NOTES])


def _sources(results: Results) -> str:
    """Which of the paper's logs were played, which not, and what stands in."""
    played = {name_of(Path(run.trace)) for run, _ in results.outcomes}
    missing = [name for name in MORE_LOGS if name not in played]
    lines = ["The paper's logs are CTC-SP2, SDSC-SP2, FH1 and FH2."]
    if missing:
        lines.append(
            f"Missing here: {' and '.join(missing)}. The paper's largest gains are on them; they"
            " are taken when their files lie beside the others."
        )
    lines.append(
        "CERIT-SC is not a log of the paper: it stands in for a machine on which most jobs start at"
        " once."
    )
    return "\n".join(lines) + "\n"


def _schedule_line(group: str, estimates: str, each: Outcome) -> tuple[str, ...]:
    wait = each.schedule.wait
    errors = wait_error(each.schedule.promise, each.schedule.start)
    return (
        group,
        estimates,
        f"{each.measures.backfilled:.1%}",
        f"{np.mean(each.schedule.in_gap):.1%}",
        f"{each.measures.wait:,.0f}",
        f"{np.mean(wait == 0):.1%}",
        f"{np.mean(wait > 4 * 3600):.1%}",
        f"{np.mean(errors):,.0f}",
        f"{np.median(errors):,.0f}",
        f"{np.quantile(errors, 0.9):,.0f}",
    )


def _node_line(group: str, estimates: str, each: Outcome) -> tuple[str, ...]:
    notice = node_notice(each.schedule.nodes_since, each.schedule.start)
    return (
        group,
        estimates,
        f"{np.mean(notice):,.0f}",
        f"{np.median(notice):,.0f}",
        f"{np.mean(notice > 0):.1%}",
        f"{np.mean(notice > 600):.1%}",
        f"{each.measures.wait:,.0f}",
        f"{each.measures.median_wait:,.0f}",
    )


NOTES = """\
notes to come
"""

STUDY = scheduling_study(
    "Three estimates under conservative backfilling, and on named nodes (Klusáček & Soysal 2020)",
    LOGS,
    runs,
    report,
    EXHIBITS,
)
