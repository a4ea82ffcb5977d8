"""Pictures of what tuning brings: the trade-off, and Figures 2 and 3 of Xu et al. 2019."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from simulator.reports.palette import colours_of
from simulator.reports.replay_pictures import (
    ACTUAL_COLOUR,
    DURATIONS,
    STYLE,
    save,
)
from simulator.studies.xu.equal_shares import STEPS, TUNED, TuningComparison

Curves = Mapping[str, Sequence[float]]
"""By method."""

SHORTEST_SHOWN = 10.0
"""Seconds at which the axis of errors begins."""


def write_pictures(found: TuningComparison, directory: Path, name: str) -> list[Path]:
    """Draw a study; ``name`` begins the names of the files."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    for kind, draw in (("tradeoff", trade_off), ("errors", errors), ("course", course)):
        with rc_context(STYLE):
            figure = Figure(figsize=(8, 4.6), layout="constrained")
            axes = figure.subplots()
            draw(axes, found)
            axes.legend(loc="best")
            path = directory / f"{name}-{kind}.svg"
            save(figure, path)
        drawn.append(path)
    return drawn


def trade_off(axes: Axes, found: TuningComparison) -> None:
    """Error against the share of underestimated jobs; nearer to the corner is better."""
    colours = colours_of(curve.name for curve in found.curves)
    for curve, colour in zip(found.curves, colours, strict=True):
        shares = [point.underestimation_rate for point in curve.points]
        seconds = [point.error for point in curve.points]
        width = 2.4 if curve.name == TUNED else 1.3
        axes.plot(shares, seconds, color=colour, linewidth=width, marker=".", label=curve.name)
    for point in found.settings:
        if point.setting in {"requested", "max-usage", "last-two"}:
            axes.plot(point.underestimation_rate, point.error, "x", color=ACTUAL_COLOUR)
            axes.annotate(point.setting, (point.underestimation_rate, point.error))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set(xlabel="underestimated jobs", ylabel="mean absolute error, seconds", ylim=(0, None))
    axes.set_title(f"Error against underestimation, {found.jobs:,} jobs")


def errors(axes: Axes, found: TuningComparison) -> None:
    """Distribution of absolute errors (Fig. 2)."""
    for (name, values), colour in _coloured(found.errors_at):
        shares = np.linspace(0, 1, len(values))
        axes.plot(np.maximum(values, SHORTEST_SHOWN), shares, color=colour, label=name)
    longest = max(values[-1] for values in found.errors_at.values())
    ticks = {at: text for at, text in DURATIONS.items() if SHORTEST_SHOWN <= at <= longest}
    axes.set_xscale("log")
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set(xlabel="absolute error", ylabel="share of jobs with no larger one", ylim=(0, 1))
    axes.set_title("How large errors are")


def course(axes: Axes, found: TuningComparison) -> None:
    """Error over the number of predicted jobs (Fig. 3)."""
    jobs = np.linspace(0, found.jobs, STEPS + 1)[1:]
    for (name, values), colour in _coloured(found.running):
        axes.plot(jobs, values, color=colour, marker=".", label=name)
    axes.set(xlabel="jobs predicted", ylabel="mean absolute error until then, s", ylim=(0, None))
    axes.set_title("Error over the log")


def _coloured(methods: Curves) -> list[tuple[tuple[str, Sequence[float]], str]]:
    """Every method with its colour."""
    return list(zip(methods.items(), colours_of(methods), strict=True))
