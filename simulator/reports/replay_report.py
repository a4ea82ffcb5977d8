"""Writes a replay to a directory: a page with tables, the field's usual pictures, and data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from predictors.measures import Seconds, error_per_group
from simulator.replay.trace_replay import Replay
from simulator.reports import palette
from simulator.reports.method_summary import summarise, summary_table, user_numbers
from simulator.reports.page import ReportFiles, picture, preformatted, section
from simulator.reports.pictures import STYLE, save, time_axis

REQUESTED = "requested"
"""The method whose answers are the requests; pictures show the requests themselves."""

ACTUAL_COLOUR = palette.METHODS["exact"].light
REQUEST_COLOUR = palette.METHODS["requested"].light
"""For lines that are no method."""


def distributions(played: Replay, path: Path) -> None:
    """Cumulative distributions of actual, requested and predicted walltimes.

    Klusáček & Soysal 2020, Figure 2, on a logarithmic axis and with every method.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(8, 4.6), layout="constrained")
        axes = figure.subplots()
        # Several methods that are all close to the truth hide each other: the truth is wide.
        _cumulative(axes, played.actual, "actual", color=ACTUAL_COLOUR, linewidth=3.2, alpha=0.85)
        _cumulative(axes, played.requested, "requested", color=REQUEST_COLOUR, linewidth=1.8)
        for (method, predicted), colour in _coloured(played):
            _cumulative(axes, predicted, method, color=colour, linewidth=1.3)
        _logarithmic_time(axes, np.concatenate([played.requested, played.actual]))
        axes.set(ylim=(0, 1.01), xlabel="walltime", ylabel="share of jobs that are no longer")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_title(f"Actual, requested and predicted walltimes of {len(played.runs):,} jobs")
        axes.legend(loc="upper left")
        save(figure, path)


def errors_per_user(played: Replay, path: Path) -> None:
    """Average absolute error of every user's jobs, of requests and of each method.

    Klusáček & Soysal 2020, Figures 3 and 4, with a panel for each method and users in the order
    of the error of their requests.
    """
    users, count = user_numbers(played)
    of_requests = error_per_group(played.requested, played.actual, users, count) / 3600
    order = np.argsort(-of_requests, kind="stable")
    coloured = _coloured(played)
    if not coloured:
        return
    with rc_context(STYLE):
        figure = Figure(figsize=(8, 1.1 + 1.9 * len(coloured)), layout="constrained")
        panels = figure.subplots(len(coloured), sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, ((method, predicted), colour) in zip(panels, coloured, strict=True):
            errors = error_per_group(predicted, played.actual, users, count) / 3600
            _user_panel(axes, of_requests[order], errors[order], colour)
            better = float(np.mean(errors < of_requests))
            axes.set_title(f"{method}: closer than the request for {better:.0%} of {count:,} users")
        panels[-1].set_xlabel("users, by the error of their requests")
        figure.supylabel("average absolute error, hours", fontsize=10)
        save(figure, path)


def _coloured(played: Replay) -> Sequence[tuple[tuple[str, Seconds], str]]:
    """Methods other than the request, each with its predictions and its colour."""
    methods: Mapping[str, Seconds] = {
        method: answers.predicted
        for method, answers in played.answers.items()
        if method != REQUESTED
    }
    return list(zip(methods.items(), palette.colours_of(methods), strict=True))


def _cumulative(axes: Axes, values: Seconds, label: str, **style: Any) -> None:
    """Draw a step at every value; values below a second are drawn at one second (logarithm)."""
    distinct, counts = np.unique(np.maximum(values, 1.0), return_counts=True)
    shares = np.cumsum(counts) / len(values)
    # The first step rises from zero too.
    axes.step([distinct[0], *distinct], [0.0, *shares], where="post", label=label, **style)


def _logarithmic_time(axes: Axes, values: Seconds) -> None:
    """Set usual durations as ticks, over all but the rarest values."""
    time_axis(axes, *np.quantile(np.maximum(values, 1.0), (0.002, 0.9995)) * (0.7, 1.4))


def _user_panel(axes: Axes, of_requests: Seconds, errors: Seconds, colour: str) -> None:
    """Draw the errors of requests as a falling slope, and those of the method as bars over it."""
    places = np.arange(len(errors))
    axes.fill_between(places, of_requests, step="mid", color=REQUEST_COLOUR, alpha=0.3, linewidth=0)
    axes.step(places, of_requests, where="mid", color=REQUEST_COLOUR, linewidth=1)
    axes.bar(places, errors, width=1.0, color=colour, linewidth=0)
    axes.set(xlim=(-0.5, len(errors) - 0.5), ylim=(0, None))
    axes.grid(visible=False, axis="x")


DISTRIBUTIONS = "distributions.png"
ERRORS_PER_USER = "errors-per-user.png"


def write_report(
    directory: Path,
    facts: Mapping[str, str],
    played: Replay,
    *,
    data: Mapping[str, Any],
) -> None:
    """Write ``index.html``, ``table.txt``, ``report.json`` and the pictures.

    Args:
        directory: made if it does not exist.
        facts: about the replay, by name; the first is the trace.
        played: the replay.
        data: for ``report.json``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    distributions(played, directory / DISTRIBUTIONS)
    errors_per_user(played, directory / ERRORS_PER_USER)
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
    ]
    files = ReportFiles(
        title=f"Replay of {facts['trace']}",
        facts=facts,
        text=methods,
        sections=sections,
        data=data,
    )
    files.write(directory)
