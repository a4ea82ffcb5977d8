"""Writes simulations side by side to a directory: a page, tables, pictures and data.

The pictures compare schedules: the figures of the papers, and utilisation.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.reports.comparison import Outcome, tables
from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.reports.page import ReportFiles, note, preformatted, section
from simulator.reports.pictures import write_exhibit
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

HUNDREDTHS = 100
"""Parts of the time over which utilisation is a mean."""

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


def class_shares(times: Times) -> list[float]:
    """Return the share of jobs in each of ``CLASSES``, and beyond."""
    bounds = np.array(list(CLASSES))
    classes = np.searchsorted(bounds, times, side="left")
    shares: list[float] = (
        np.bincount(classes, minlength=len(bounds) + 1) / max(1, len(times))
    ).tolist()
    return shares


def waits(outcomes: Sequence[Outcome]) -> Exhibit | None:
    """Return the distribution of waits."""
    remark = "After Klusáček and Soysal 2020, Figures 6 and 7."
    return _in_classes("Waits", waits_of, outcomes, remark)


def wait_errors(outcomes: Sequence[Outcome]) -> Exhibit | None:
    """Return the distribution of errors of the wait predicted at arrival."""
    chosen = [each for each in outcomes if each.schedule.semantics.makes_promises]
    remark = (
        "Errors of the start planned at a job's arrival. After Klusáček and Soysal 2020, Figure 9."
    )
    return _in_classes("Errors of the wait predicted at arrival", wait_errors_of, chosen, remark)


def node_notices(outcomes: Sequence[Outcome]) -> Exhibit | None:
    """Return the distribution of T_node."""
    chosen = [each for each in outcomes if each.schedule.semantics.names_nodes]
    title = "T_node: time for which nodes were known before the start"
    remark = "After Klusáček and Soysal 2020, Figures 11 and 12."
    return _in_classes(title, node_notices_of, chosen, remark)


def _in_classes(
    title: str, times: Callable[[Schedule], Times], outcomes: Sequence[Outcome], remark: str
) -> Exhibit | None:
    """Return a distribution; None without outcomes."""
    if not outcomes:
        return None
    panel = Panel(
        title="",
        places=[*CLASSES.values(), "more"],
        series=[Series(each.label, class_shares(times(each.schedule))) for each in outcomes],
        along="at most",
        value="share of jobs",
        shares=True,
    )
    return Exhibit(title, [panel], remark)


def backfilled(outcomes: Sequence[Outcome]) -> Exhibit:
    """Return the share of backfilled jobs."""
    panel = Panel(
        title="",
        places=[""],
        series=[Series(each.label, [each.measures.backfilled]) for each in outcomes],
        value="share of jobs",
        shares=True,
    )
    remark = "After Klusáček and Soysal 2020, Figure 5."
    return Exhibit("Jobs that passed a waiting one", [panel], remark)


def gains_by_month(outcomes: Sequence[Outcome]) -> Exhibit | None:
    """Return wait, bounded slowdown and weighted wait by month of submission.

    The first outcome is 100; None if it is the only one.
    """
    if len(outcomes) < 2:
        return None
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
    return Exhibit(
        f"Averages by month, {outcomes[0].label} = 100",
        panels,
        "Values below 100 beat the first combination. After Tang et al. 2013, Figures 14 to 17.",
    )


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


def utilisation(outcomes: Sequence[Outcome]) -> Exhibit:
    """Return the share of the processors held, in hundredths of the time of all schedules."""
    first = min(float(each.schedule.workload.submit.min()) for each in outcomes)
    last = max(float(each.schedule.end.max()) for each in outcomes)
    edges = np.linspace(first, max(last, first + 1), HUNDREDTHS + 1)
    panel = Panel(
        title="",
        places=_dates(outcomes[0].schedule, edges[:-1]),
        series=[Series(each.label, _held(each.schedule, edges)) for each in outcomes],
        value="processors held",
        kind="lines",
        shares=True,
    )
    remark = "Processors that jobs hold, as a share of the machine."
    return Exhibit("Utilisation over time", [panel], remark)


def _held(schedule: Schedule, edges: Times) -> list[float]:
    """Return the mean share of the machine's processors that jobs hold between the edges."""
    workload = schedule.workload
    times = np.concatenate([schedule.start, schedule.end])
    processors = np.concatenate([workload.processors, -workload.processors])
    order = np.argsort(times, kind="stable")
    times, held = times[order], np.cumsum(processors[order])
    # Processor seconds until each change, and from the last change before each edge.
    work = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(times))])
    until = np.interp(edges, times, work)
    shares = np.diff(until) / np.diff(edges) / workload.processors_of_machine
    return [float(each) for each in shares]


def _dates(schedule: Schedule, seconds: Times) -> list[str]:
    begin = schedule.workload.trace.unix_start + schedule.workload.origin
    return [str(each) for each in (seconds + begin).astype("datetime64[s]").astype("datetime64[D]")]


PICTURES: Mapping[str, Callable[[Sequence[Outcome]], Exhibit | None]] = {
    "waits.png": waits,
    "backfilled.png": backfilled,
    "wait-errors.png": wait_errors,
    "node-notices.png": node_notices,
    "gains-by-month.png": gains_by_month,
    "utilisation.png": utilisation,
}
"""The pictures of a report; None is not drawn."""


def write_report(
    directory: Path, title: str, facts: Mapping[str, str], outcomes: Sequence[Outcome]
) -> None:
    """Write ``index.html``, ``table.txt``, ``report.json`` and the pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    exhibits = {name: exhibit(outcomes) for name, exhibit in PICTURES.items()}
    text = tables(outcomes)
    data = {"facts": facts, "simulations": [each.as_record() for each in outcomes]}
    sections = [
        section("Schedules", preformatted(text)),
        *(write_exhibit(each, directory / name) for name, each in exhibits.items() if each),
        note("The rules of these simulations are listed above; docs/simulator.md defines them."),
    ]
    files = ReportFiles(title=title, facts=facts, text=text, sections=sections, data=data)
    files.write(directory)
