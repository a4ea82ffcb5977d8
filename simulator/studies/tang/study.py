"""Tang et al. 2013: adjusted requests under WFP and FCFS, for all jobs or not for running ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.reports.comparison import Outcome
from simulator.reports.tables import text_table
from simulator.scheduling.measures import slowdown, start_priority, weighted_wait
from simulator.scheduling.semantics import Semantics
from simulator.studies.simulations import Results, Run, scheduling_study

LOGS = {
    "Intrepid": "ANL-Intrepid-2009-1.swf.gz",
    "Theta": "ALCF-Theta-2023.swf.gz",
}
"""The paper's machine, and a later one of the same centre under the same resource manager."""

SOURCES = {
    **{f"p{percent}": f"percentile:percentile={percent}" for percent in (95, 85, 70)},
    "exact": "exact",
}
"""Estimates by the names of the table."""

MONTH = 365.25 * 86400 / 12
"""Seconds."""

PAPER: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "wfp, regular": {"p95": ("15", "-", "-"), "p85": ("15", "16", "19"), "p70": ("-", "-", "-")},
    "wfp, selective": {"p95": ("-", "-", "-"), "p85": ("22", "22", "28"), "p70": ("-", "-", "-")},
    "fcfs, regular": {"p95": ("2", "-", "-"), "p85": ("-", "-", "-"), "p70": ("-", "-8", "-")},
    "fcfs, selective": {
        "p95": ("-", "-", "-"),
        "p85": ("20", "22", "15"),
        "p70": ("20", "20", "-"),
    },
}
"""Gains in percent that the text names (section 6.2, Figs. 14 to 17); the others are pictures."""

PAPER_LOG = "Intrepid"
NO_FIGURES = ("-", "-", "-")

NOTES = """\
Gains in percent over the unadjusted requests under the same order: wait, slowdown and weighted
wait (Eq 4), averages of the log's months, as the paper's; positive is better. exact is what
perfect estimates would gain. The paper's log of Intrepid is another one, July 2010 to June 2011;
published are only January to September 2009, and without projects, so that the triple key is user
and walltime here. The paper's simulator allocates partitions of the Blue Gene and starts each month
anew; ours counts processors and plays the log in one piece.

As in the paper, selective adjustment gains more than regular: it does for every percentile, order
and log in the wait. FCFS gains with it in nearly every month, by up to 16 % on Intrepid and 6 % on
Theta. Unlike there, WFP gains nothing from regular adjustment, and the weighted wait gets worse.
Two things are behind that, on Intrepid. There is little to gain: in regular use even exact run
times save 7 % of all waiting under WFP and 3 % under FCFS in the log as a whole, while one job in
ten outlives the 85th percentile and holds up those that were planned behind it. And the weight is
in few hands: under WFP ten jobs of 68,936, of most of the machine, hold half of all weight (P grows
with the cube of the wait, and with the size), and it is the widest jobs, above 32,768 processors,
that wait longer (17,690 s with requests, 19,014 s with selective p85) while those up to 8,192 wait
about 10 % less: requests for running jobs leave wider windows before the head of the queue, into
which the narrow jobs are backfilled.
"""

HEADS = ("log, order, adjustment", "estimates", "wait", "slowdown", "weighted", "paper", "outlived")


def runs(logs: Path, limit: int | None) -> Sequence[Run]:
    """Two logs x two orders x two adjustments x (requests, three percentiles, exact)."""
    return [
        Run(
            trace=str(logs / log),
            semantics=Semantics.adjusted(adjustment, policy="easy", order=order),
            estimates=estimates,
            limit=limit,
            group=f"{name}, {order}, {adjustment}",
        )
        for name, log in LOGS.items()
        for order in ("wfp", "fcfs")
        for adjustment in ("regular", "selective")
        for estimates in ("requested", *SOURCES.values())
    ]


def report(results: Results) -> str:
    """Gains over all, then month by month."""
    overall = []
    monthly: dict[str, list[tuple[str, ...]]] = {name: [] for name in LOGS}
    for group in results.groups():
        outcomes = results.of(group)
        base = _by_month(outcomes["requested"])
        log, rules = group.split(", ", 1)
        for label, estimates in SOURCES.items():
            each = outcomes[estimates]
            gains = 100 * (1 - _by_month(each) / base)
            paper = PAPER[rules].get(label, NO_FIGURES) if log == PAPER_LOG else NO_FIGURES
            overall.append(
                (
                    group,
                    label,
                    *(_mean(gain) for gain in gains),
                    " / ".join(paper),
                    f"{each.measures.corrected:.1%}",
                )
            )
            monthly[log].append((group, label, *(_percent(gain) for gain in gains[0])))
    parts = [text_table(HEADS, overall)]
    for log, lines in monthly.items():
        months = [f"m{month}" for month in range(1, len(lines[0]) - 1)]
        parts += [
            f"Gain in wait by month, in percent, {log}:\n",
            text_table((*HEADS[:2], *months), lines),
        ]
    return "\n".join([*parts, NOTES])


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


def _percent(gain: float) -> str:
    """Of one month, if anybody waited in it."""
    return f"{gain:+.0f}" if np.isfinite(gain) else "-"


STUDY = scheduling_study(
    "Adjusted requests under WFP and FCFS, regular and selective (Tang et al. 2013)",
    tuple(LOGS.values()),
    runs,
    report,
)
