"""Tang et al. 2013: adjusted requests under WFP and FCFS, for all jobs or not for running ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.comparison import Outcome
from simulator.measures import slowdown, start_priority, weighted_wait
from simulator.semantics import Semantics
from simulator.studies.runs import Results, Run, Study
from simulator.tables import text_table

LOG = "ANL-Intrepid-2009-1.swf.gz"

PERCENTILES = (95, 85, 70)

MONTH = 365.25 * 86400 / 12
"""Seconds."""

PAPER: Mapping[str, Mapping[int, tuple[str, str, str]]] = {
    "wfp, regular": {95: ("15", "-", "-"), 85: ("15", "16", "19"), 70: ("-", "-", "-")},
    "wfp, selective": {95: ("-", "-", "-"), 85: ("22", "22", "28"), 70: ("-", "-", "-")},
    "fcfs, regular": {95: ("2", "-", "-"), 85: ("-", "-", "-"), 70: ("-", "-8", "-")},
    "fcfs, selective": {95: ("-", "-", "-"), 85: ("20", "22", "15"), 70: ("20", "20", "-")},
}
"""Gains in percent that the text names (section 6.2, Figs. 14 to 17); the others are pictures."""

NOTES = """\
Gains in percent over the unadjusted requests under the same order: wait, slowdown and weighted
wait (Eq 4), averages of the log's months, as the paper's; positive is better. The paper's log is
another one, July 2010 to June 2011; published are only January to September 2009, and without
projects, so that the triple key is user and walltime here. The paper's simulator allocates
partitions of the Blue Gene and starts each month anew; ours counts processors and plays the log
in one piece. As in the paper, selective adjustment gains more than regular, and FCFS gains with
selective adjustment in nearly every month. Unlike there, WFP loses with regular adjustment, and
the weighted wait, which Eq 5 lets a few wide jobs decide, gets worse: on this log underestimates
of running jobs cost more than the better order gains.
"""

HEADS = ("order, adjustment", "percentile", "wait", "slowdown", "weighted", "paper", "outlived")


def runs(logs: Path, limit: int | None) -> Sequence[Run]:
    """Two orders x (no adjustment, and two adjustments x three percentiles)."""
    return [
        Run(
            trace=str(logs / LOG),
            semantics=Semantics.adjusted(adjustment, policy="easy", order=order),
            estimates=estimates,
            limit=limit,
            group=f"{order}, {adjustment}",
        )
        for order in ("wfp", "fcfs")
        for adjustment in ("regular", "selective")
        for estimates in ("requested", *map(_method, PERCENTILES))
    ]


def report(results: Results) -> str:
    """Gains over all, then month by month."""
    overall, monthly = [], []
    for group in results.groups():
        outcomes = results.of(group)
        base = _by_month(outcomes["requested"])
        for percentile in PERCENTILES:
            each = outcomes[_method(percentile)]
            gains = 100 * (1 - _by_month(each) / base)
            overall.append(
                (
                    group,
                    f"p{percentile}",
                    *(_mean(gain) for gain in gains),
                    " / ".join(PAPER[group][percentile]),
                    f"{each.measures.corrected:.1%}",
                )
            )
            monthly.append((group, f"p{percentile}", *(f"{gain:+.0f}" for gain in gains[0])))
    months = [f"m{month}" for month in range(1, len(monthly[0]) - 1)]
    return "\n".join(
        [
            text_table(HEADS, overall),
            "Gain in wait by month, in percent:\n",
            text_table(("order, adjustment", "percentile", *months), monthly),
            NOTES,
        ]
    )


def _by_month(each: Outcome) -> NDArray[np.float64]:
    """Wait, slowdown and weighted wait, a row each, by month of submission."""
    schedule = each.schedule
    submit, wait = schedule.workload.submit, schedule.wait
    slow = slowdown(wait, schedule.workload.runtime)
    priority = start_priority(schedule)
    months = ((submit - submit.min()) // MONTH).astype(int)
    chosen = [months == month for month in range(int(months.max()) + 1)]
    rows = [
        [float(wait[month].mean()) for month in chosen if month.any()],
        [float(slow[month].mean()) for month in chosen if month.any()],
        [weighted_wait(wait[month], priority[month]) for month in chosen if month.any()],
    ]
    return np.where(np.array(rows) > 0, rows, np.nan)


def _mean(gains: NDArray[np.float64]) -> str:
    """Of the months in which anybody waited."""
    known = gains[np.isfinite(gains)]
    return f"{known.mean():+.1f}" if len(known) else "-"


def _method(percentile: int) -> str:
    return f"percentile:percentile={percentile}"


STUDY = Study(
    "Adjusted requests under WFP and FCFS, regular and selective (Tang et al. 2013)",
    (LOG,),
    runs,
    report,
)
