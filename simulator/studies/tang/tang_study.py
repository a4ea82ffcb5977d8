"""Tang et al. 2013: adjusted requests under WFP and FCFS, for all jobs or not for running ones."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.reports.exhibit_pictures import draw
from simulator.reports.tables import text_table
from simulator.studies.study import Played, Study, Takes, write_text
from simulator.studies.tang.months import MEASURES, Months, MonthSimulation
from simulator.studies.tang.tang_exhibits import EXHIBITS
from simulator.studies.tang.tang_gains import simulated_figures
from simulator.studies.tang.tang_paper import GAINS
from simulator.studies.tang.tang_simulations import (
    INTREPID,
    LOGS,
    PERCENTILES,
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


def report(played: Played) -> str:
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
    return "\n".join([*parts, NOTES])


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


def write(directory: Path, title: str, text: str, played: Played) -> None:
    """Write the tables, and Figs. 14 to 17."""
    write_text(directory, title, text, played)
    for number, exhibit in simulated_figures(played).items():
        path = directory / f"tang-figure-{number}.png"
        draw(exhibit, path)
        exhibit.write_csv(path.with_suffix(".csv"))


def _mean(gains: NDArray[np.float64]) -> str:
    """Of the months in which anybody waited."""
    known = gains[np.isfinite(gains)]
    return f"{known.mean():+.1f}" if len(known) else "-"


def _percent(gain: float) -> str:
    """Of one month, if anybody waited in it."""
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

STUDY = Study(
    title="Adjusted requests under WFP and FCFS, regular and selective (Tang et al. 2013)",
    takes=Takes.DIRECTORY,
    logs=tuple(LOGS.values()),
    runs=runs,
    play=MonthSimulation.play,
    report=report,
    records=records,
    write=write,
    exhibits=EXHIBITS,
)
