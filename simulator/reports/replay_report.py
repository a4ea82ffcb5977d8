"""Writes a replay to a directory: a page with tables and pictures, and their data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from simulator.replay.trace_replay import Replay
from simulator.reports import replay_pictures
from simulator.reports.method_summary import summarise, summary_table
from simulator.reports.page import page, picture, preformatted, section
from simulator.traces.files import write_whole

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
    title = f"Replay of {facts['trace']}"
    methods = summary_table(summarise(played))
    listed = "".join(f"{name}: {fact}\n" for name, fact in facts.items())
    parts = [f"{title}\n{listed}", methods, *([schemes] if schemes else [])]
    document = msgspec.json.format(msgspec.json.encode({"title": title, **data}), indent=2)
    write_whole(directory / "table.txt", "\n".join(parts))
    write_whole(directory / "report.json", document + b"\n")
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
    write_whole(directory / "index.html", page(title, facts, sections))
