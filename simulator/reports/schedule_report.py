"""Writes simulations side by side to a directory: a page, tables, pictures and data.

The pictures compare schedules: the figures of the papers, and utilisation.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from simulator.reports.comparison import Outcome, tables
from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.reports.page import ReportFiles, note, picture, preformatted, section
from simulator.reports.palette import colours_of
from simulator.reports.pictures import STYLE, draw, save
from simulator.scheduling.measures import bounded_slowdown, node_notice, wait_error, weighted_wait
from simulator.scheduling.measures import start_priority as priority_of
from simulator.scheduling.simulate import Schedule

CLASSES = {
    0: "0",
    60: "1 min",
    600: "10 min",
    3600: "1 h",
    4 * 3600: "4 h",
    12 * 3600: "12 h",
    86400: "1 d",
    4 * 86400: "4 d",
}
"""Upper ends in seconds of the classes in which times are counted; the last class is open."""

LARGEST_LINEAR = 1000
"""Gains and losses above this percentage are drawn on a logarithmic axis."""

MONTH = 365.25 * 86400 / 12
"""Seconds."""

Times = NDArray[Any]


def waits_of(schedule: Schedule) -> Times:
    """Wait of each job in seconds."""
    return np.asarray(schedule.wait)


def wait_errors_of(schedule: Schedule) -> Times:
    """Absolute error of each wait predicted at arrival, in seconds."""
    return np.asarray(wait_error(schedule.promise, schedule.start))


def node_notices_of(schedule: Schedule) -> Times:
    """T_node of each job in seconds."""
    return np.asarray(node_notice(schedule.nodes_since, schedule.start))


def class_panel(title: str, times: Mapping[str, Times]) -> Panel:
    """The share of jobs in each of ``CLASSES``, as bars for each name."""
    bounds = np.array(list(CLASSES))
    series = []
    for name, values in times.items():
        classes = np.searchsorted(bounds, values, side="left")
        shares = np.bincount(classes, minlength=len(bounds) + 1) / max(1, len(values))
        series.append(Series(name, shares.tolist()))
    return Panel(
        title=title,
        places=[*CLASSES.values(), "more"],
        series=series,
        along="at most",
        value="share of jobs",
        shares=True,
    )


def waits(outcomes: Sequence[Outcome], path: Path) -> None:
    """Distribution of waits (Klusáček & Soysal 2020, Figs. 6 and 7)."""
    _draw_classes("Waits", waits_of, outcomes, path)


def wait_errors(outcomes: Sequence[Outcome], path: Path) -> None:
    """Distribution of errors of the wait predicted at arrival (same paper, Fig. 9)."""
    chosen = [each for each in outcomes if each.schedule.semantics.makes_promises]
    _draw_classes("Errors of the wait predicted at arrival", wait_errors_of, chosen, path)


def node_notices(outcomes: Sequence[Outcome], path: Path) -> None:
    """Distribution of T_node (same paper, Figs. 11 and 12)."""
    chosen = [each for each in outcomes if each.schedule.semantics.names_nodes]
    title = "T_node: time for which nodes were known before the start"
    _draw_classes(title, node_notices_of, chosen, path)


def _draw_classes(
    title: str, times: Callable[[Schedule], Times], outcomes: Sequence[Outcome], path: Path
) -> None:
    """Draw a distribution; nothing without outcomes."""
    if outcomes:
        panel = class_panel("", {each.label: times(each.schedule) for each in outcomes})
        draw(Exhibit(title, [panel]), path)


def backfilled(outcomes: Sequence[Outcome], path: Path) -> None:
    """Share of backfilled jobs (Klusáček & Soysal 2020, Fig. 5)."""
    panel = Panel(
        title="",
        places=[""],
        series=[Series(each.label, [each.measures.backfilled]) for each in outcomes],
        value="share of jobs",
        shares=True,
    )
    draw(Exhibit("Jobs that passed a waiting one", [panel]), path)


def gains_by_month(outcomes: Sequence[Outcome], path: Path) -> None:
    """Wait, bounded slowdown and weighted wait by month, the first outcome being 100.

    After Tang et al. 2013, Figures 14 to 17; months are of submission.
    """
    if len(outcomes) < 2:
        return
    months = _months(outcomes[0].schedule)
    base = _monthly(outcomes[0].schedule, months)
    values = {each.label: _monthly(each.schedule, months) for each in outcomes}
    panels = [
        Panel(
            title=f"Average {name}",
            places=[f"m{month + 1}" for month in range(len(base[row]))],
            series=[
                Series(label, (100 * lines[row] / base[row]).tolist())
                for label, lines in values.items()
            ],
            kind="lines",
            linear_until=LARGEST_LINEAR,
        )
        for row, name in enumerate(("wait", "bounded slowdown", "weighted wait"))
    ]
    draw(Exhibit(f"Averages by month, {outcomes[0].label} = 100", panels), path)


def _months(schedule: Schedule) -> Times:
    submit = schedule.workload.submit
    months: Times = ((submit - submit.min()) // MONTH).astype(int)
    return months


def _monthly(schedule: Schedule, months: Times) -> list[Times]:
    """The three measures month by month; NaN in months without jobs or without waits."""
    wait = schedule.wait
    slow = bounded_slowdown(wait, schedule.workload.runtime)
    priority = priority_of(schedule)
    chosen = [months == month for month in range(int(months.max(initial=0)) + 1)]
    lines = [
        [float(wait[month].mean()) if month.any() else 0.0 for month in chosen],
        [float(slow[month].mean()) if month.any() else 0.0 for month in chosen],
        [weighted_wait(wait[month], priority[month]) for month in chosen],
    ]
    return [np.where(np.array(line) > 0, line, np.nan) for line in lines]


def utilisation(outcomes: Sequence[Outcome], path: Path) -> None:
    """Share of the processors held at full hours, smoothed over a hundredth of the log."""
    with rc_context(STYLE):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        axes = figure.subplots()
        colours = colours_of(each.label for each in outcomes)
        for each, colour in zip(outcomes, colours, strict=True):
            hours, held = _held_by_hour(each.schedule)
            window = max(1, len(held) // 100)
            smooth = np.convolve(held, np.ones(window) / window, mode="same")
            axes.plot(hours, smooth, color=colour, linewidth=1.2, label=each.label)
        axes.set(ylim=(0, 1.02), ylabel="processors held")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        _date_axis(axes)
        axes.set_title("Utilisation over time")
        figure.legend(loc="outside lower center", ncols=3)
        save(figure, path)


def _held_by_hour(schedule: Schedule) -> tuple[Times, Times]:
    """Full hours, and the share of the machine's processors held then."""
    workload = schedule.workload
    first, last = int(workload.submit.min()), int(schedule.end.max())
    edges = np.arange(first, last + 3600, 3600)
    changes = np.zeros(len(edges))
    for times, sign in ((schedule.start, 1), (schedule.end, -1)):
        np.add.at(changes, np.searchsorted(edges, times), sign * workload.processors)
    held = np.cumsum(changes) / workload.processors_of_machine
    return _as_dates(schedule, edges), held


def _as_dates(schedule: Schedule, seconds: Times) -> Times:
    begin = schedule.workload.trace.unix_start + schedule.workload.origin
    dates: Times = (seconds + begin).astype("datetime64[s]")
    return dates


def _date_axis(axes: Axes) -> None:
    locator: Any = AutoDateLocator()  # type: ignore[no-untyped-call] # matplotlib's types end here
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


class Drawn(NamedTuple):
    """A picture of the report."""

    draw: Callable[[Sequence[Outcome], Path], None]
    title: str
    explanation: str


PICTURES: Mapping[str, Drawn] = {
    "waits.png": Drawn(waits, "Waits", "After Klusáček and Soysal 2020, Figures 6 and 7."),
    "backfilled.png": Drawn(
        backfilled,
        "Backfilled jobs",
        "After Klusáček and Soysal 2020, Figure 5.",
    ),
    "wait-errors.png": Drawn(
        wait_errors,
        "Wait-prediction errors",
        "Errors of the start planned at a job's arrival. After Klusáček and Soysal 2020, Figure 9.",
    ),
    "node-notices.png": Drawn(
        node_notices,
        "Node predictions",
        "After Klusáček and Soysal 2020, Figures 11 and 12.",
    ),
    "gains-by-month.png": Drawn(
        gains_by_month,
        "Gains by month",
        "Values below 100 beat the first combination. After Tang et al. 2013, Figures 14 to 17.",
    ),
    "utilisation.png": Drawn(
        utilisation,
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
