"""The picture of the study of likeness: error against underestimation, a panel for each log."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from tradeoff import Point

from simulator.reports.palette import METHODS
from simulator.reports.replay_pictures import STYLE, save

if TYPE_CHECKING:
    from likeness import Likeness

COLUMNS = 5
BEYOND = 1.2
"""How far a panel reaches beyond the trade-offs; other methods may lie outside."""


def draw(found: Sequence["Likeness"], path: Path) -> None:
    """Each method's trade-off on each log: the further down and to the left the better."""
    columns = min(COLUMNS, len(found))
    rows = -(-len(found) // columns)
    with rc_context(STYLE):
        figure = Figure(figsize=(2.4 * columns + 0.6, 2.3 * rows + 0.9), layout="constrained")
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes, log in zip(panels, found, strict=False):
            _panel(axes, log)
        for axes in panels[len(found) :]:
            axes.set_visible(False)
        figure.supxlabel("jobs that ran longer than predicted")
        figure.supylabel("mean absolute error, hours")
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=COLUMNS
        )
        save(figure, path)


def _panel(axes: Axes, log: "Likeness") -> None:
    ours = {
        "least-cost": ("least-cost", log.reference.points, "-"),
        "attention": ("attention", log.attention, "-"),
        "auto": ("auto", log.auto, "--"),
    }
    for label, (method, points, line) in ours.items():
        axes.plot(*_places(points), line, marker=".", color=METHODS[method].light, label=label)
    for method, points in _by_method(log.published).items():
        axes.plot(*_places(points), "x", color=METHODS[method].light, label=method)
    shares = [point.underestimation_rate for _, points, _ in ours.values() for point in points]
    errors = [point.error / 3600 for _, points, _ in ours.values() for point in points]
    axes.set(
        title=log.name.split(".")[0],
        xlim=(0, BEYOND * max(shares)),
        ylim=(min(errors) / BEYOND, BEYOND * max(errors)),
    )
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _by_method(points: Sequence[Point]) -> Mapping[str, Sequence[Point]]:
    """The settings of each method, whose name is the beginning of theirs."""
    found: dict[str, list[Point]] = {}
    for point in points:
        method = next(name for name in METHODS if point.setting.startswith(name))
        found.setdefault(method, []).append(point)
    return found


def _places(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Shares that were underestimated, and errors in hours."""
    return (
        [point.underestimation_rate for point in points],
        [point.error / 3600 for point in points],
    )
