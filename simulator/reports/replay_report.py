"""Writes a replay to a directory: a page with tables and pictures, and their data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from predictors.measures import accuracy
from simulator.replay.percentile_schemes import Swept, as_records
from simulator.replay.trace_replay import Replay
from simulator.reports import replay_pictures
from simulator.reports.method_summary import LEGEND, MethodSummary, summary_table, sweep_table
from simulator.reports.page import note, page, picture, preformatted, section
from simulator.traces.files import write_whole

DISTRIBUTIONS = "distributions.png"
ERRORS_PER_USER = "errors-per-user.png"
ACCURACY_BY_PERCENTILE = "accuracy-by-percentile.png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of a replay.

    Attributes:
        title: the title, which names the trace.
        facts: further facts about the replay, by name.
        played: the replay.
        summaries: summaries of the methods.
        by_percentile: the schemes of the picture of accuracy by percentile and key.
        swept: further schemes, if they were compared.
    """

    title: str
    facts: Mapping[str, str]
    played: Replay
    summaries: Sequence[MethodSummary]
    by_percentile: Swept
    swept: Swept | None = None

    def write(self, directory: Path) -> None:
        """Write the page, ``table.txt``, ``report.json`` and the pictures."""
        directory.mkdir(parents=True, exist_ok=True)
        replay_pictures.distributions(self.played, directory / DISTRIBUTIONS)
        replay_pictures.errors_per_user(self.played, directory / ERRORS_PER_USER)
        if self.by_percentile:
            replay_pictures.accuracy_by_percentile(
                self.by_percentile, self._of_requests(), directory / ACCURACY_BY_PERCENTILE
            )
        document = msgspec.json.format(msgspec.json.encode(self._data()), indent=2)
        write_whole(directory / "table.txt", self._text())
        write_whole(directory / "report.json", document + b"\n")
        write_whole(directory / "index.html", self._page(directory))

    def _of_requests(self) -> float:
        """Average accuracy of requests; as in the schemes, a usage above 1 counts as 1."""
        requested = self.played.requested
        return float(accuracy(requested, np.minimum(requested, self.played.actual)).mean())

    def _text(self) -> str:
        facts = "".join(f"{name}: {fact}\n" for name, fact in self.facts.items())
        text = f"{self.title}\n{facts}\n{summary_table(self.summaries)}\n{LEGEND}"
        return f"{text}\n{sweep_table(self.swept)}" if self.swept else text

    def _data(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "facts": self.facts,
            "seconds": self.played.seconds,
            "methods": [summary.as_dict() for summary in self.summaries],
            "accuracy_by_percentile": as_records(self.by_percentile),
            "sweep": as_records(self.swept) if self.swept else None,
        }

    def _page(self, directory: Path) -> str:
        sections = [
            section("Methods", preformatted(summary_table(self.summaries)) + note(LEGEND)),
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
            picture(
                "Accuracy by percentile and similarity key",
                directory / ACCURACY_BY_PERCENTILE,
                "All history, no lower bound, the percentile method in process. After Tang et "
                "al. 2013, Figure 4.",
            ),
        ]
        if self.swept:
            sections.append(section("Schemes", preformatted(sweep_table(self.swept))))
        return page(self.title, self.facts, sections)
