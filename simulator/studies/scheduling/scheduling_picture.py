"""The picture of the study: changes by log and method."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from simulator.reports.palette import colours_of
from simulator.reports.replay_pictures import STYLE, save
from simulator.studies.scheduling.scheduling_changes import Line
from simulator.studies.scheduling.scheduling_tables import short


def draw(lines: Sequence[Line], path: Path) -> None:
    """Changes by log and method, with the ranges of the repetitions."""
    logs = list(dict.fromkeys(line.log for line in lines))
    methods = list(dict.fromkeys(line.estimates for line in lines))
    titles = ("mean wait", "bounded slowdown", "longest wait")
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 7.5), layout="constrained")
        for place, (axes, title) in enumerate(
            zip(figure.subplots(3, 1, sharex=True), titles, strict=True)
        ):
            for number, (method, colour) in enumerate(
                zip(methods, colours_of(methods), strict=True)
            ):
                own = [line for line in lines if line.estimates == method]
                changes = [line.today[place] for line in own]
                means = np.array([change.mean for change in changes]) - (place == 2)
                ends = [[c.mean - c.low for c in changes], [c.high - c.mean for c in changes]]
                shift = (number - (len(methods) - 1) / 2) * 0.8 / len(methods)
                axes.errorbar(
                    [logs.index(line.log) + shift for line in own],
                    means,
                    yerr=ends,
                    fmt="o",
                    markersize=4,
                    color=colour,
                    label=short(method),
                )
            axes.axhline(0, color="0.5", linewidth=1)
            axes.set(title=f"{title}, against requests under EASY")
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xticks(range(len(logs)), logs)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5)
        save(figure, path)
