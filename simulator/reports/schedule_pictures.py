"""Pictures that compare schedules: the figures of the papers, and a Gantt chart."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from simulator.reports.comparison import Outcome
from simulator.reports.palette import colours_of
from simulator.reports.replay_pictures import METHOD_COLOURS, REQUEST_COLOUR, STYLE, save
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

GANTT_JOBS = 400
"""Approximate number of jobs in the window of the Gantt chart."""

LARGEST_LINEAR = 1000
"""Gains and losses above this percentage are drawn on a logarithmic axis."""

MONTH = 365.25 * 86400 / 12
"""Seconds."""

Times = NDArray[Any]


def waits(outcomes: Sequence[Outcome], path: Path) -> None:
    """Distribution of waits (Klusáček & Soysal 2020, Figs. 6 and 7)."""
    _distributions(
        [(each.label, each.schedule.wait) for each in outcomes],
        "share of jobs",
        "Waits, by how long at most",
        path,
    )


def wait_errors(outcomes: Sequence[Outcome], path: Path) -> None:
    """Distribution of errors of the wait predicted at arrival (same paper, Fig. 9)."""
    _distributions(
        [
            (each.label, wait_error(each.schedule.promise, each.schedule.start))
            for each in outcomes
            if each.schedule.semantics.makes_promises
        ],
        "share of jobs",
        "Errors of the wait predicted at arrival, by how large at most",
        path,
    )


def node_notices(outcomes: Sequence[Outcome], path: Path) -> None:
    """Distribution of T_node (same paper, Figs. 11 and 12)."""
    _distributions(
        [
            (each.label, node_notice(each.schedule.nodes_since, each.schedule.start))
            for each in outcomes
            if each.schedule.semantics.names_nodes
        ],
        "share of jobs",
        "T_node, for how long nodes were known before the start",
        path,
    )


def _distributions(series: Sequence[tuple[str, Times]], what: str, title: str, path: Path) -> None:
    """Grouped bars: the share of each class, for every series; nothing without series."""
    if not series:
        return
    bounds = np.array(list(CLASSES))
    width = 0.8 / len(series)
    with rc_context(STYLE):
        figure = Figure(figsize=(9, 4.4), layout="constrained")
        axes = figure.subplots()
        colours = colours_of(label for label, _ in series)
        for number, ((label, times), colour) in enumerate(zip(series, colours, strict=True)):
            classes = np.searchsorted(bounds, times, side="left")
            shares = np.bincount(classes, minlength=len(bounds) + 1) / max(1, len(times))
            places = np.arange(len(shares)) + (number - (len(series) - 1) / 2) * width
            axes.bar(places, shares, width, label=label, color=colour)
        names = [*CLASSES.values(), "more"]
        axes.set_xticks(range(len(names)), names)
        axes.set(ylabel=what)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.grid(visible=False, axis="x")
        axes.set_title(title)
        axes.legend(loc="best")
        save(figure, path)


def backfilled(outcomes: Sequence[Outcome], path: Path) -> None:
    """Share of backfilled jobs (Klusáček & Soysal 2020, Fig. 5)."""
    with rc_context(STYLE):
        figure = Figure(figsize=(8, 0.9 + 0.4 * len(outcomes)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(outcomes))[::-1]
        shares = [each.measures.backfilled for each in outcomes]
        bars = axes.barh(places, shares, color=_colours(outcomes))
        axes.bar_label(bars, labels=[f"{share:.1%}" for share in shares], padding=3)
        axes.set_yticks(places, [each.label for each in outcomes])
        axes.set(xlim=(0, 1))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.grid(visible=False, axis="y")
        axes.set_title("Jobs that passed a waiting one")
        save(figure, path)


def gains_by_month(outcomes: Sequence[Outcome], path: Path) -> None:
    """Wait, bounded slowdown and weighted wait by month, the first outcome being 100.

    After Tang et al. 2013, Figures 14 to 17; months are of submission.
    """
    if len(outcomes) < 2:
        return
    months = _months(outcomes[0].schedule)
    with rc_context(STYLE):
        figure = Figure(figsize=(9, 7.5), layout="constrained")
        panels = figure.subplots(3, sharex=True)
        base = _monthly(outcomes[0].schedule, months)
        for each, colour in zip(outcomes, _colours(outcomes), strict=True):
            values = _monthly(each.schedule, months)
            for axes, line, reference in zip(panels, values, base, strict=True):
                axes.plot(100 * line / reference, color=colour, marker=".", label=each.label)
        for axes, name in zip(panels, ("wait", "bounded slowdown", "weighted wait"), strict=True):
            axes.set_title(f"Average {name} by month, {outcomes[0].label} = 100")
            if axes.get_ylim()[1] > LARGEST_LINEAR:
                axes.set_yscale("log")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        panels[-1].set_xlabel("month of the log")
        panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
        save(figure, path)


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
        for each, colour in zip(outcomes, _colours(outcomes), strict=True):
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


def gantt(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw the first schedule's busiest days as bars: time to the right, processors upwards."""
    schedule = outcomes[0].schedule
    workload = schedule.workload
    middle = int(np.argmax(schedule.wait))
    order = np.argsort(schedule.start, kind="stable")
    place = int(np.flatnonzero(order == middle)[0])
    shown = order[max(0, place - GANTT_JOBS // 2) : place + GANTT_JOBS // 2]
    rows = _rows(schedule, shown)
    begin = int(schedule.start[shown].min())
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 5), layout="constrained")
        axes = figure.subplots()
        for job, spans in rows:
            colour = REQUEST_COLOUR if schedule.backfilled[job] else METHOD_COLOURS[0]
            width = (schedule.end[job] - schedule.start[job]) / 3600
            for low, high in spans:
                left = (schedule.start[job] - begin) / 3600
                axes.broken_barh([(left, width)], (low, high - low), facecolor=colour,
                                 edgecolor="white", linewidth=0.3)  # fmt: skip
        axes.set(
            ylim=(0, workload.processors_of_machine), xlim=(0, None),
            xlabel="hours", ylabel="processors",
        )  # fmt: skip
        axes.grid(visible=False)
        axes.set_title(
            f"{len(shown):,} jobs around the longest wait, {outcomes[0].label}; backfilled ones red"
        )
        save(figure, path)


def _rows(schedule: Schedule, shown: Times) -> list[tuple[int, list[tuple[int, int]]]]:
    """The processors on which each job is drawn: the lowest that are free at its start."""
    size = schedule.workload.processors_of_machine
    busy_until = np.full(size, -1)
    rows = []
    for job in shown.tolist():
        free = np.flatnonzero(busy_until <= schedule.start[job])
        taken = free[: int(schedule.workload.processors[job])]
        busy_until[taken] = schedule.end[job]
        rows.append((job, _spans(taken)))
    return rows


def _spans(taken: Times) -> list[tuple[int, int]]:
    """Runs of consecutive processors as pairs (first, last + 1)."""
    if not len(taken):
        return []
    breaks = np.flatnonzero(np.diff(taken) > 1) + 1
    edges = [0, *breaks.tolist(), len(taken)]
    return [(int(taken[low]), int(taken[high - 1]) + 1) for low, high in pairwise(edges)]


def _as_dates(schedule: Schedule, seconds: Times) -> Times:
    begin = schedule.workload.trace.unix_start + schedule.workload.origin
    dates: Times = (seconds + begin).astype("datetime64[s]")
    return dates


def _date_axis(axes: Axes) -> None:
    locator: Any = AutoDateLocator()  # type: ignore[no-untyped-call] # matplotlib's types end here
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _colours(outcomes: Sequence[Outcome]) -> list[str]:
    return colours_of(each.label for each in outcomes)
