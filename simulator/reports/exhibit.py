"""A figure or table of a paper, made again: its numbers here beside those the paper's text has.

The same numbers are drawn as a picture, written as CSV and printed as text, so that none of the
three can say something else than the others.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

from simulator.reports.tables import text_table
from terminal.files import text_writer

Value = float | None
"""None where there is no number."""

HEADS = ("panel", "place", "series", "here", "paper")


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one colour of bars.

    Attributes:
        name: in the legend.
        values: ours, one for each place of the panel.
        paper: the paper's, where its text has numbers; empty where it has none.
    """

    name: str
    values: Sequence[Value]
    paper: Sequence[Value] = ()

    def pairs(self) -> Iterator[tuple[Value, Value]]:
        """Our number and the paper's, place by place."""
        paper = self.paper or [None] * len(self.values)
        return zip(self.values, paper, strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One part of a figure, or one table.

    Attributes:
        places: along the horizontal axis, or the lines of the table.
        along: what the places are.
        value: what is measured, with its unit.
        kind: how it is drawn.
        shares: values are shares, printed as percentages.
        digits: after the decimal point in text.
        linear_until: above this value the axis of a picture is logarithmic.
        turned: a picture of lines has the values along its horizontal axis.
    """

    title: str
    places: Sequence[str]
    series: Sequence[Series]
    along: str = ""
    value: str = ""
    kind: Literal["bars", "lines"] = "bars"
    shares: bool = False
    digits: int = 2
    linear_until: float = inf
    turned: bool = False

    def text(self) -> str:
        """The panel as a table, with the paper's numbers in brackets."""
        heads = (self.along or "", *(series.name for series in self.series))
        columns = [[self._cell(*pair) for pair in series.pairs()] for series in self.series]
        return text_table(heads, list(zip(self.places, *columns, strict=True)))

    def _cell(self, here: Value, paper: Value) -> str:
        return self._number(here) + (f" ({self._number(paper)})" if paper is not None else "")

    def _number(self, value: Value) -> str:
        if value is None:
            return "-"
        digits = max(0, self.digits - 1)
        return f"{value:.{digits}%}" if self.shares else f"{value:,.{self.digits}f}"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A figure or table.

    Attributes:
        remark: what to know about where the numbers come from.
    """

    title: str
    panels: Sequence[Panel]
    remark: str = ""

    def text(self) -> str:
        """Every panel as a table; the paper's numbers stand in brackets."""
        parts = [f"{self.title}\n"]
        for panel in self.panels:
            unit = f", {panel.value}" if panel.value else ""
            parts += [f"{panel.title}{unit}\n", panel.text()]
        return "\n".join([*parts, *([self.remark] if self.remark else [])])

    def write_csv(self, path: Path) -> None:
        """Write a line for each number."""
        with text_writer(path, encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(HEADS)
            for panel in self.panels:
                for series in panel.series:
                    for place, (here, paper) in zip(panel.places, series.pairs(), strict=True):
                        rows.writerow([panel.title, place, series.name, _csv(here), _csv(paper)])


def _csv(value: Value) -> str:
    return "" if value is None else f"{value:.6g}"
