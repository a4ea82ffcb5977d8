"""Klusáček & Soysal 2020: better estimates under conservative backfilling and on named nodes."""

from pathlib import Path

from simulator.reports.tables import text_table
from simulator.reports.words import listed
from simulator.studies.klusacek.klusacek_exhibits import EXHIBITS
from simulator.studies.klusacek.klusacek_figures import figures_of
from simulator.studies.klusacek.klusacek_sentences import sentences
from simulator.studies.klusacek.klusacek_simulations import (
    CTC,
    LOGS,
    MORE_LOGS,
    SDSC,
    STAND_IN,
    name_of,
    runs,
)
from simulator.studies.simulations import Results, scheduling_study

HEADS = (
    "log, policy", "estimates", "passed", "in gap", "wait", "no wait", "wait > 4 h",
    "wait error", "median", "90 %",
)  # fmt: skip

NODE_HEADS = (
    "log, jobs, nodes", "estimates", "T_node", "median", "T_node > 0", "> 10 min", "wait", "median",
)  # fmt: skip


def tables(results: Results) -> str:
    """Two tables: the schedule and its predictions; the nodes."""
    figures = figures_of(results)
    of_schedules = text_table(HEADS, [each.cells() for each in figures.schedules])
    of_nodes = text_table(NODE_HEADS, [each.cells() for each in figures.nodes])
    return f"{of_schedules}\n{of_nodes}"


def notes(results: Results) -> str:
    """The logs that were played, and what follows from the results."""
    played = {name_of(Path(run.trace)) for run, _ in results.outcomes}
    missing = [name for name in MORE_LOGS if name not in played]
    lines = [f"The paper's logs are {listed(PAPER_LOGS)}."]
    if missing:
        lines.append(
            f"Missing here: {' and '.join(missing)}. The paper's largest gains are on them; they"
            " are taken when their files lie beside the others."
        )
    if name_of(Path(STAND_IN)) in played:
        lines.append(
            "CERIT-SC is not a log of the paper: it stands in for a machine on which most jobs"
            " start at once."
        )
    return "\n".join(lines) + f"\n\n{sentences(figures_of(results), PAPER_LOGS)}"


PAPER_LOGS = (*(name_of(Path(log)) for log in (CTC, SDSC)), *MORE_LOGS)

STUDY = scheduling_study(
    "Three estimates under conservative backfilling, on named nodes (Klusáček & Soysal 2020)",
    LOGS,
    runs,
    tables,
    notes=lambda played: notes(Results(played)),
    exhibits=EXHIBITS,
)
