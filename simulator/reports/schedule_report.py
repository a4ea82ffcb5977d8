"""Writes simulations side by side to a directory: a page, tables, pictures and data."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from simulator.reports import schedule_pictures
from simulator.reports.comparison import Outcome, tables
from simulator.reports.page import ReportFiles, note, picture, preformatted, section


class Drawn(NamedTuple):
    """A picture of the report."""

    draw: Callable[[Sequence[Outcome], Path], None]
    title: str
    explanation: str


PICTURES: Mapping[str, Drawn] = {
    "waits.png": Drawn(
        schedule_pictures.waits, "Waits", "After Klusáček and Soysal 2020, Figures 6 and 7."
    ),
    "backfilled.png": Drawn(
        schedule_pictures.backfilled,
        "Backfilled jobs",
        "After Klusáček and Soysal 2020, Figure 5.",
    ),
    "wait-errors.png": Drawn(
        schedule_pictures.wait_errors,
        "Wait-prediction errors",
        "Errors of the start planned at a job's arrival. After Klusáček and Soysal 2020, Figure 9.",
    ),
    "node-notices.png": Drawn(
        schedule_pictures.node_notices,
        "Node predictions",
        "After Klusáček and Soysal 2020, Figures 11 and 12.",
    ),
    "gains-by-month.png": Drawn(
        schedule_pictures.gains_by_month,
        "Gains by month",
        "Values below 100 beat the first combination. After Tang et al. 2013, Figures 14 to 17.",
    ),
    "utilisation.png": Drawn(
        schedule_pictures.utilisation,
        "Utilisation",
        "Processors that jobs hold, as a share of the machine.",
    ),
}


def write_report(
    directory: Path, title: str, facts: Mapping[str, str], outcomes: Sequence[Outcome]
) -> None:
    """Write ``index.html``, ``table.txt``, ``report.json`` and the pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, drawn in PICTURES.items():
        drawn.draw(outcomes, directory / name)
    text = tables(outcomes)
    data = {"facts": facts, "simulations": [each.as_record() for each in outcomes]}
    sections = [
        section("Schedules", preformatted(text)),
        *(
            picture(drawn.title, directory / name, drawn.explanation)
            for name, drawn in PICTURES.items()
        ),
        note("The rules of these simulations are listed above; docs/simulator.md defines them."),
    ]
    files = ReportFiles(title=title, facts=facts, text=text, sections=sections, data=data)
    files.write(directory)
