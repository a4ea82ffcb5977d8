"""Tang et al. 2013: adjusted requests under WFP and FCFS, for all jobs or not for running ones."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.reports.exhibit_pictures import write_exhibit
from simulator.reports.tables import text_table
from simulator.studies.study import Exhibits, Played, Study, Takes
from simulator.studies.tang.tang_accuracy import (
    by_window,
    classes,
    figure_4,
    figure_11,
    figure_13,
)
from simulator.studies.tang.tang_gains import simulated, simulated_figures
from simulator.studies.tang.tang_paper import GAINS
from simulator.studies.tang.tang_requests import figure_1, figure_2, table_1, table_2
from simulator.studies.tang.tang_simulations import (
    INTREPID,
    LOGS,
    MEASURES,
    PERCENTILES,
    Months,
    MonthSimulation,
    Readings,
    month_runs,
)

HEADS = (
    "log, order, adjustment", "estimates", "wait", "slowdown", "weighted", "adjusted P", "paper",
    "outlived",
)  # fmt: skip

COMPARED = (*PERCENTILES, "exact")


def runs(paths: Sequence[Path], limit: int | None, **options: Any) -> Sequence[MonthSimulation]:
    """Two logs x two orders x two adjustments x (requests, three percentiles, exact)."""
    options.pop("log", None)
    return month_runs(paths[0], LOGS, limit, Readings(**options))


def tables(played: Played) -> str:
    """Gains over all, then month by month."""
    found: dict[str, dict[str, Months]] = {}
    for run, months in played:
        found.setdefault(run.group, {})[run.estimates] = months
    overall = []
    monthly: dict[str, list[tuple[str, ...]]] = {}
    for group, outcomes in found.items():
        log, rules = group.split(", ", 1)
        for label in COMPARED:
            gains = outcomes[label].gains(outcomes["requested"])
            paper = GAINS[rules].get(label, ()) if log == INTREPID else ()
            overall.append(
                (
                    group,
                    label,
                    *(_mean(gain) for gain in gains),
                    _paper(paper),
                    f"{outcomes[label].outlived:.1%}",
                )
            )
            monthly.setdefault(log, []).append((group, label, *map(_percent, gains[0])))
    parts = [_rules(played[0][0]), text_table(HEADS, overall)]
    for log, lines in monthly.items():
        months = [f"m{month}" for month in range(1, len(lines[0]) - 1)]
        parts += [
            f"Gain in wait by month, in percent, {log}:\n",
            text_table((*HEADS[:2], *months), lines),
        ]
    return "\n".join(parts)


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


def pictures(directory: Path, played: Played) -> Iterator[str]:
    """Write Figs. 14 to 17 as pictures and CSV."""
    for number, exhibit in simulated_figures(played).items():
        yield write_exhibit(exhibit, directory / f"tang-figure-{number}.png")


def _mean(gains: NDArray[np.float64]) -> str:
    """Mean gain over the months with waits, as text."""
    with_waits = gains[np.isfinite(gains)]
    return f"{with_waits.mean():+.1f}" if len(with_waits) else "-"


def _percent(gain: float) -> str:
    """Gain of one month as text; ``-`` without waits."""
    return f"{gain:+.0f}" if np.isfinite(gain) else "-"


def _paper(gains: Sequence[float | None]) -> str:
    if not gains:
        return "- / - / -"
    return " / ".join("-" if gain is None else f"{gain:g}" for gain in gains)


NOTES = """\
Gains in percent over the unadjusted requests under the same order: wait, slowdown, weighted wait
(Eq 4) with P by the request as Eq 5 has it, and the same with P by the adjusted request, as the
scheduler computes it; averages of the log's months, as the paper's; positive is better. exact is
what perfect estimates would gain. The paper's log of Intrepid is another one, July 2010 to June
2011; published are only January to September 2009, and without projects, so that the triple key is
user and walltime here. The paper's simulator allocates partitions of the Blue Gene; ours counts
processors. Months begin anew as in the paper, with estimates from the history as it was logged;
--in-one-piece plays the log as a whole, which changes little. The threshold and the minimum of
jobs are rules that the paper makes in its sections 4.2.3 and 4.2.5 and does not name in section
6.1: --lower-bound 0 and --min-jobs 1 are without them.

As in the paper, selective adjustment gains more than regular, for every percentile, order and log
in the wait, and FCFS gains with it in nearly every month. Without the threshold it gains more
(WFP, p85, wait: 11.6 instead of 7.7 %; the paper has 22). Unlike there, WFP gains nothing from
regular adjustment, and the weighted wait gets worse. Without the threshold the latter hangs on the
reading of P: under regular WFP p85 it loses 10.6 % by the request and gains 4.0 % by the adjusted
request. Two things are behind it, on Intrepid. There is less to gain: in regular use even exact
run times save 11 % of the waits under WFP and 2 % under FCFS, while one job in ten outlives the
85th percentile and holds up those that were planned behind it. And the weight is in few hands: P
grows with the cube of the wait and with the size, so that a few of the widest jobs hold most of
it, and these are passed by narrow jobs in the wider windows of selective adjustment.
"""

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

STUDY = Study(
    title="Adjusted requests under WFP and FCFS, regular and selective (Tang et al. 2013)",
    takes=Takes.DIRECTORY,
    logs=tuple(LOGS.values()),
    runs=runs,
    play=MonthSimulation.play,
    tables=tables,
    notes=lambda _: NOTES,
    records=records,
    pictures=pictures,
    exhibits=EXHIBITS,
)
