"""Draws exhibits, with the numbers of a paper beside ours; style, axes and files of pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from simulator.reports.exhibit import Exhibit, Panel, Value
from simulator.reports.page import picture
from simulator.reports.palette import colours_of
from terminal.files import whole_file

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "savefig.dpi": 144,
}

DURATIONS = {
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    3600: "1 h",
    6 * 3600: "6 h",
    86400: "1 d",
    7 * 86400: "1 w",
    60 * 86400: "60 d",
}
"""Ticks of a logarithmic time axis, in seconds."""


def save(figure: Figure, path: Path, **options: Any) -> None:
    """Write a picture, in the form that the name of the file ends in, as a whole or not at all."""
    with whole_file(path) as file:
        figure.savefig(file, **options)


def time_axis(axes: Axes, shortest: float, longest: float) -> None:
    """Make the horizontal axis a logarithmic one of time; both ends are seconds."""
    axes.set_xscale("log")
    axes.set_xlim(shortest, longest)
    ticks = {seconds: name for seconds, name in DURATIONS.items() if shortest <= seconds <= longest}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xticks([], minor=True)


PAPER_COLOUR = "#111111"
PAPER_NAME = "the paper"

MOST_NAMED = 30
"""Places; of more not every name is written."""

MANY = 9
"""More places than that are drawn over the whole width, and their names are turned."""


def draw(exhibit: Exhibit, path: Path) -> None:
    """All panels of an exhibit, below each other; those with few places in two columns."""
    columns = 1 if len(exhibit.panels) == 1 or _widest(exhibit.panels) > MANY else 2
    rows = -(-len(exhibit.panels) // columns)
    with rc_context({**STYLE, "savefig.dpi": 100}):
        figure = Figure(figsize=(9.5, 0.7 + 3.1 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, exhibit.panels, strict=False):
            _panel(axes, panel)
        for axes in grid[len(exhibit.panels) :]:
            axes.set_visible(False)
        figure.suptitle(exhibit.title, x=0.01, ha="left", fontsize=12)
        save(figure, path, metadata={"Software": None})


def write_exhibit(exhibit: Exhibit, path: Path) -> str:
    """Write an exhibit as PNG and as CSV beside it; returns the section of a page."""
    draw(exhibit, path)
    exhibit.write_csv(path.with_suffix(".csv"))
    return picture(exhibit.title, path, exhibit.remark)


def _widest(panels: Sequence[Panel]) -> int:
    return max(len(panel.places) * (len(panel.series) if panel.kind == "bars" else 1)
               for panel in panels)  # fmt: skip


def _panel(axes: Axes, panel: Panel) -> None:
    (_bars if panel.kind == "bars" else _lines)(axes, panel)
    axes.set_title(panel.title)
    if panel.turned:
        axes.set(xlabel=panel.value, ylabel=panel.along)
        axes.set_yticks(range(len(panel.places)), panel.places)
        axes.legend(loc="best", fontsize=8)
        return
    axes.set(xlabel=panel.along, ylabel=panel.value)
    every = -(-len(panel.places) // MOST_NAMED)
    axes.set_xticks(range(0, len(panel.places), every), panel.places[::every])
    if len(panel.places) > MANY:
        axes.tick_params(axis="x", labelrotation=45)
    if axes.get_ylim()[1] > panel.linear_until:
        axes.set_yscale("log")
    if panel.shares:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(loc="best", fontsize=8)


def _bars(axes: Axes, panel: Panel) -> None:
    width = 0.8 / len(panel.series)
    named = False
    colours = colours_of(series.name for series in panel.series)
    for number, (series, colour) in enumerate(zip(panel.series, colours, strict=True)):
        places = np.arange(len(panel.places)) + (number - (len(panel.series) - 1) / 2) * width
        axes.bar(places, _floats(series.values), width, label=series.name, color=colour)
        if any(value is not None for value in series.paper):
            axes.plot(
                places, _floats(series.paper), linestyle="", marker="D", markersize=5,
                color=PAPER_COLOUR, markeredgecolor="white", label=None if named else PAPER_NAME,
            )  # fmt: skip
            named = True
    axes.grid(visible=False, axis="x")


def _lines(axes: Axes, panel: Panel) -> None:
    places = np.arange(len(panel.places))
    colours = colours_of(series.name for series in panel.series)
    for series, colour in zip(panel.series, colours, strict=True):
        marker = "." if len(places) <= MOST_NAMED else ""
        ours, paper = _floats(series.values), _floats(series.paper)
        axes.plot(*_turned(places, ours, panel), marker=marker, color=colour, label=series.name)
        if any(value is not None for value in series.paper):
            axes.plot(
                *_turned(places, paper, panel), linestyle="", marker="D", markersize=6,
                markerfacecolor="none", color=colour, label=f"{series.name}, {PAPER_NAME}",
            )  # fmt: skip


def _turned(places: Any, values: Any, panel: Panel) -> tuple[Any, Any]:
    return (values, places) if panel.turned else (places, values)


def _floats(values: Sequence[Value]) -> "np.ndarray[Any, np.dtype[np.float64]]":
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
