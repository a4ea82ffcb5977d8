"""Tang et al. 2013, section 6: what adjusted requests gain, month by month (Figs. 14 to 17)."""

from collections.abc import Mapping

import numpy as np

from simulator.reports.exhibit import Exhibit, Panel, Series, Value
from simulator.studies.study import ExhibitInput, Make, Played
from simulator.studies.tang.tang_log import FloatArray
from simulator.studies.tang.tang_paper import GAINS
from simulator.studies.tang.tang_simulations import (
    INTREPID,
    LOGS,
    RULES,
    MonthSimulation,
    Readings,
    month_runs,
)
from simulator.studies.tang.tang_simulations import PERCENTILES as ADJUSTED


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


def simulated_figures(played: Played) -> Mapping[int, Exhibit]:
    """Figures 14 to 17 of runs that were played, of the paper's machine."""
    return {
        14 + number: _simulated(
            14 + number,
            [
                (run, months)
                for run, months in played
                if (run.log, run.order, run.adjustment) == (INTREPID, *rules)
            ],
        )
        for number, rules in enumerate(RULES)
    }


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


def _means(gains: FloatArray) -> list[Value]:
    """Means over the months with waits; None without such a month."""
    with_waits = [row[np.isfinite(row)] for row in gains]
    return [float(row.mean()) if len(row) else None for row in with_waits]


def _known(values: FloatArray) -> list[Value]:
    return [float(value) if np.isfinite(value) else None for value in values]
