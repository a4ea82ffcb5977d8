"""Tang et al. 2013: adjusted requests under WFP and FCFS, for all jobs or not for running ones.

Figs. 14 to 17 (section 6) are the gains month by month.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.reports.tables import text_table
from simulator.studies.study import ExhibitInput, Exhibits, Make, Played, Study, Takes
from simulator.studies.tang.tang_accuracy import (
    by_window,
    classes,
    figure_1,
    figure_2,
    figure_4,
    figure_11,
    figure_13,
    table_1,
    table_2,
)
from simulator.studies.tang.tang_simulations import (
    INTREPID,
    LOGS,
    MEASURES,
    RULES,
    Months,
    MonthSimulation,
    Readings,
    month_runs,
)
from simulator.studies.tang.tang_simulations import PERCENTILES as ADJUSTED
from simulator.traces.trace import Reals


def simulated(number: int) -> Make:
    """Figures 14 to 17: waits, slowdowns and weighted waits by month, and mean gains."""

    def make(sources: ExhibitInput) -> Exhibit:
        order, adjustment = RULES[number - 14]
        options = {name: value for name, value in sources.options.items() if name != "log"}
        runs = [
            run
            for run in month_runs(
                sources.logs, {INTREPID: LOGS[INTREPID]}, sources.limit, Readings(**options)
            )
            if (run.order, run.adjustment) == (order, adjustment)
        ]
        return _simulated(number, sources.play(MonthSimulation.play, runs))

    return make


def _simulated(number: int, played: Played) -> Exhibit:
    found = {run.estimates: months for run, months in played}
    base = found["requested"]
    rules = ", ".join(RULES[number - 14])
    panels = []
    for row, (measure, scale) in enumerate(
        {"wait": 100, "slowdown": 10, "weighted wait": 100}.items()
    ):
        series = [Series(label, _known(scale * found[label].over(base)[row])) for label in ADJUSTED]
        panels.append(
            Panel(
                title=f"Average {measure} by month, requests are {scale}",
                places=[f"m{month + 1}" for month in range(len(base.jobs))],
                series=series,
                value=measure,
                kind="lines",
                digits=1,
            )
        )
    names = ("wait", "slowdown", "weighted wait", "the same, adjusted P")
    series = [
        Series(
            label,
            _means(found[label].gains(base)),
            [*GAINS[rules].get(label, (None,) * 3), None],
        )
        for label in ADJUSTED
    ]
    panels.append(Panel(title="Mean gain", places=names, series=series, value="percent", digits=1))
    return Exhibit(f"Fig. {number}: {rules} adjustment on {INTREPID}", panels)


def _means(gains: Reals) -> list[Value]:
    """Means over the months with waits; None without such a month."""
    with_waits = [row[np.isfinite(row)] for row in gains]
    return [float(row.mean()) if len(row) else None for row in with_waits]


def _known(values: Reals) -> list[Value]:
    return [float(value) if np.isfinite(value) else None for value in values]


GAINS: Mapping[str, Mapping[str, tuple[float | None, float | None, float | None]]] = {
    "wfp, regular": {"p95": (15, None, None), "p85": (15, 16, 19)},
    "wfp, selective": {"p85": (22, 22, 28)},
    "fcfs, regular": {"p95": (2, None, None), "p70": (None, -8, None)},
    "fcfs, selective": {"p85": (20, 22, 15), "p70": (20, 20, 15)},
}
"""Gains in percent in wait, slowdown and weighted wait (section 6.2, Figs. 14 to 17)."""

LEGEND = """\
Gains in percent over the unadjusted requests under the same order: wait, slowdown, weighted wait
(Eq 4) with P by the request as Eq 5 has it, and the same with P by the adjusted request, as the
scheduler computes it; averages of the log's months, as the paper's; positive is better. exact is
what perfect estimates would gain. The paper's log of Intrepid is another one, July 2010 to June
2011; published are only January to September 2009, and without projects, so that the triple key is
user and walltime here. The paper's simulator allocates partitions of the Blue Gene; ours counts
processors. The threshold and the minimum of jobs are rules that the paper makes in its sections
4.2.3 and 4.2.5 and does not name in section 6.1: --lower-bound 0 and --min-jobs 1 are without them.
"""

ANEW = "Months begin anew, as in the paper, with estimates from the history as it was logged.\n"
IN_ONE_PIECE = "Each log is played in one piece; in the paper every month begins anew.\n"


class Gains(NamedTuple):
    """Gains of one source of estimates over requests, in percent.

    Attributes:
        group: log, order and adjustment.
        estimates: of the scheduler.
        means: wait, slowdown, weighted wait, and it by the adjusted score; None without waits.
        outlived: percent of the jobs that outlived an estimate.
        months: in the mean wait; NaN for a month without waits.
    """

    group: str
    estimates: str
    means: Sequence[Value]
    outlived: float
    months: Reals

    @property
    def rules(self) -> str:
        """Order and adjustment."""
        return self.group.split(", ", 1)[1]

    @property
    def log(self) -> str:
        """The log's name."""
        return self.group.split(", ", 1)[0]


def gains_of(played: Played) -> list[Gains]:
    """The gains of every group and source of estimates."""
    found: dict[str, dict[str, Months]] = {}
    for run, months in played:
        found.setdefault(run.group, {})[run.estimates] = months
    return [
        _gains(group, label, outcomes[label], outcomes["requested"])
        for group, outcomes in found.items()
        for label in (*ADJUSTED, "exact")
    ]


def _gains(group: str, label: str, months: Months, base: Months) -> Gains:
    gains = months.gains(base)
    return Gains(group, label, _means(gains), 100 * months.outlived, gains[0])


HEADS = (
    "log, order, adjustment", "estimates", "wait", "slowdown", "weighted", "adjusted P", "paper",
    "outlived",
)  # fmt: skip


def runs(paths: Sequence[Path], limit: int | None, **options: Any) -> Sequence[MonthSimulation]:
    """Two logs x two orders x two adjustments x (requests, three percentiles, exact)."""
    options.pop("log", None)
    return month_runs(paths[0], LOGS, limit, Readings(**options))


def tables(played: Played) -> str:
    """Gains over all, then month by month."""
    gains = gains_of(played)
    parts = [_rules(played[0][0]), text_table(HEADS, list(map(_line, gains)))]
    for log in dict.fromkeys(each.log for each in gains):
        lines = [
            (each.group, each.estimates, *(_number(gain, 0) for gain in each.months))
            for each in gains
            if each.log == log
        ]
        months = [f"m{month}" for month in range(1, len(lines[0]) - 1)]
        parts += [
            f"Gain in wait by month, in percent, {log}:\n",
            text_table((*HEADS[:2], *months), lines),
        ]
    return "\n".join(parts)


def _line(each: Gains) -> tuple[str, ...]:
    paper = GAINS[each.rules].get(each.estimates, ()) if each.log == INTREPID else ()
    return (
        each.group,
        each.estimates,
        *(_number(gain, 1) for gain in each.means),
        _paper(paper),
        f"{each.outlived:.1f}%",
    )


def notes(played: Played) -> str:
    """A legend of the tables."""
    return LEGEND + (ANEW if played[0][0].anew else IN_ONE_PIECE)


def _rules(run: MonthSimulation) -> str:
    begin = "every month anew from an empty machine" if run.anew else "each log in one piece"
    return (
        f"Threshold on A: {run.lower_bound:g}; fewest similar jobs: {run.min_jobs}; {begin}; a"
        " usage above 1 counts as 1.\n"
    )


def records(played: Played) -> Any:
    """Every run with its measures by month."""
    return {
        "title": STUDY.title,
        "simulations": [
            {
                **asdict(run),
                "trace": Path(run.trace).name,
                "outlived": months.outlived,
                "jobs": months.jobs,
                **{
                    name: [None if np.isnan(value) else float(value) for value in row]
                    for name, row in zip(MEASURES, months.values, strict=True)
                },
            }
            for run, months in played
        ],
    }


def _number(gain: Value, digits: int) -> str:
    """A gain as text; ``-`` without waits."""
    return "-" if gain is None or not np.isfinite(gain) else f"{gain:+.{digits}f}"


def _paper(gains: Sequence[float | None]) -> str:
    if not gains:
        return "- / - / -"
    return " / ".join("-" if gain is None else f"{gain:g}" for gain in gains)


EXHIBITS: Exhibits = {
    "table 1": table_1,
    "table 2": table_2,
    "figure 1": figure_1,
    "figure 2": figure_2,
    "figure 4": figure_4,
    "figure 5": classes(5, ("triple", "double"), (0.0,)),
    "figure 6": classes(6, ("triple",), (0.0, 0.5)),
    "figure 7": classes(7, ("double",), (0.0, 0.5)),
    "figure 8": by_window(8, "accuracy", "accuracy"),
    "figure 9": by_window(9, "badly_underestimated", "share of BE jobs"),
    "figure 10": by_window(10, "underestimated", "share of UE jobs"),
    "figure 11": figure_11,
    "figure 13": figure_13,
    **{f"figure {number}": simulated(number) for number in range(14, 18)},
}


def _labelled(make: Make) -> Make:
    """Say whose numbers stand in brackets beside those of a site's own log."""

    def made(sources: ExhibitInput) -> Exhibit:
        exhibit = make(sources)
        own = sources.options.get("log") is not None
        return replace(exhibit, remark=exhibit.remark + BRACKETS) if own else exhibit

    return made


BRACKETS = "In brackets: the paper's numbers, which are of Intrepid.\n"

STUDY = Study(
    title="Adjusted requests under WFP and FCFS, regular and selective (Tang et al. 2013)",
    takes=Takes.DIRECTORY,
    logs=tuple(LOGS.values()),
    runs=runs,
    play=MonthSimulation.play,
    tables=tables,
    notes=notes,
    records=records,
    exhibits={name: _labelled(make) for name, make in EXHIBITS.items()},
)
