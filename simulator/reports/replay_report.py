"""Writes a replay to a directory: a page with tables and pictures, and their data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.replay.trace_replay import Replay
from simulator.reports import replay_pictures
from simulator.reports.method_summary import summarise, summary_table
from simulator.reports.page import ReportFiles, picture, preformatted, section

DISTRIBUTIONS = "distributions.png"
ERRORS_PER_USER = "errors-per-user.png"


def write_report(
    directory: Path,
    facts: Mapping[str, str],
    played: Replay,
    *,
    schemes: str,
    data: Mapping[str, Any],
) -> None:
    """Write ``index.html``, ``table.txt``, ``report.json`` and the pictures.

    Args:
        directory: made if it does not exist.
        facts: about the replay, by name; the first is the trace.
        played: the replay.
        schemes: a table of the percentile method's schemes; empty without.
        data: for ``report.json``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    replay_pictures.distributions(played, directory / DISTRIBUTIONS)
    replay_pictures.errors_per_user(played, directory / ERRORS_PER_USER)
    methods = summary_table(summarise(played))
    sections = [
        section("Methods", preformatted(methods)),
        picture(
            "Distributions of walltimes",
            directory / DISTRIBUTIONS,
            "The closer a method's line is to the black line, the better its predictions are "
            "as a whole. After Klusáček and Soysal 2020, Figure 2.",
        ),
        picture(
            "Errors of every user",
            directory / ERRORS_PER_USER,
            "Average absolute errors. Red: error of the users' requests. Coloured: error of "
            "the predictions. After Klusáček and Soysal 2020, Figures 3 and 4.",
        ),
        *([section("Schemes", preformatted(schemes))] if schemes else []),
    ]
    files = ReportFiles(
        title=f"Replay of {facts['trace']}",
        facts=facts,
        text=f"{methods}\n{schemes}" if schemes else methods,
        sections=sections,
        data=data,
    )
    files.write(directory)
