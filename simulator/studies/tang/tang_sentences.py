"""Says what follows from the gains of Tang et al. 2013, beside what the paper says."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simulator.reports.words import listed, paragraph
from simulator.studies.study import Played
from simulator.studies.tang.tang_log import GAINS
from simulator.studies.tang.tang_simulations import INTREPID, PERCENTILES, Months, MonthSimulation

COMPARED = (*PERCENTILES, "exact")

EXPLAINED = """\
Gains in percent over the unadjusted requests under the same order: wait, slowdown, weighted wait
(Eq 4) with P by the request as Eq 5 has it, and the same with P by the adjusted request, as the
scheduler computes it; averages of the log's months, as the paper's; positive is better. exact is
what perfect estimates would gain. The paper's log of Intrepid is another one, July 2010 to June
2011; published are only January to September 2009, and without projects, so that the triple key is
user and walltime here. The paper's simulator allocates partitions of the Blue Gene; ours counts
processors. The threshold and the minimum of jobs are rules that the paper makes in its sections
4.2.3 and 4.2.5 and does not name in section 6.1: --lower-bound 0 and --min-jobs 1 are without them.
"""

ANEW = "Months begin anew, as in the paper, with estimates from the history as it was logged."
IN_ONE_PIECE = "Each log is played in one piece; in the paper every month begins anew."


class Gains(NamedTuple):
    """Gains of one source of estimates over requests, in percent, as precise as they are printed.

    Attributes:
        group: log, order and adjustment.
        estimates: of the scheduler.
        means: wait, slowdown, weighted wait, and the same by the adjusted score; NaN without waits.
        outlived: percent of the jobs that outlived an estimate.
        months: in the mean wait; NaN for a month without waits.
    """

    group: str
    estimates: str
    means: Sequence[float]
    outlived: float
    months: Sequence[float]

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
        for label in COMPARED
    ]


def _gains(group: str, label: str, months: Months, base: Months) -> Gains:
    gains = months.gains(base)
    with_waits = [row[np.isfinite(row)] for row in gains]
    return Gains(
        group,
        label,
        [round(float(row.mean()), 1) if len(row) else np.nan for row in with_waits],
        round(100 * months.outlived, 1),
        [round(float(gain)) if np.isfinite(gain) else np.nan for gain in gains[0]],
    )


def sentences(run: MonthSimulation, gains: Sequence[Gains]) -> str:
    """Paragraphs about what was played.

    Args:
        run: one of the simulations; its readings are those of all.
        gains: of all.
    """
    logs = dict.fromkeys(each.log for each in gains)
    return (
        "\n\n".join(
            [
                f"{EXPLAINED}{ANEW if run.anew else IN_ONE_PIECE}",
                paragraph(_selective(gains), *(_months(log, gains) for log in logs)),
                *(_of_paper(gains) for _ in [0] if INTREPID in logs),
                *(paragraph(_left(log, gains), _weighted(log, gains)) for log in logs),
            ]
        )
        + "\n"
    )


def _selective(gains: Sequence[Gains]) -> str:
    by_rules = {(each.group, each.estimates): each for each in gains}
    pairs = [
        (each, by_rules[each.group.replace("regular", "selective"), each.estimates])
        for each in gains
        if each.rules.endswith("regular") and each.estimates in PERCENTILES
    ]
    counts = [
        f"{sum(two.means[row] > one.means[row] for one, two in pairs)} in the {measure}"
        for row, measure in enumerate(("wait", "slowdown", "weighted wait"))
    ]
    return (
        "The paper finds that selective adjustment gains more than regular. Of"
        f" {len(pairs)} comparisons (log, order, percentile) it does so in {listed(counts)}."
    )


def _months(log: str, gains: Sequence[Gains]) -> str:
    found = [
        gain
        for each in gains
        if each.log == log and each.rules == "fcfs, selective" and each.estimates in PERCENTILES
        for gain in each.months
        if np.isfinite(gain)
    ]
    better = sum(gain > 0 for gain in found)
    return (
        f"With it FCFS gains wait in {better} of {len(found)} months and percentiles on {log}."
        if found
        else ""
    )


def _of_paper(gains: Sequence[Gains]) -> str:
    """Intrepid's gains beside those that the paper's text has."""
    cells = [
        (ours, paper)
        for each in gains
        if each.log == INTREPID
        for ours, paper in zip(each.means, GAINS[each.rules].get(each.estimates, ()), strict=False)
        if paper is not None and np.isfinite(ours)
    ]
    same = [(ours, paper) for ours, paper in cells if ours * paper > 0]
    half = sum(abs(ours) >= abs(paper) / 2 for ours, paper in same)
    return paragraph(
        f"Of the {len(cells)} gains on Intrepid that the paper's text has, {len(same)} have the"
        f" same sign here, and {half} of these at least half of the size."
    )


def _left(log: str, gains: Sequence[Gains]) -> str:
    """The gain of exact estimates in regular use, and how many jobs outlive p85."""
    exact = [
        f"{each.means[0]:+.1f} % under {each.rules.split(', ')[0].upper()}"
        for each in gains
        if each.log == log and each.estimates == "exact" and each.rules.endswith("regular")
    ]
    [outlived] = {
        each.outlived
        for each in gains
        if (each.log, each.rules, each.estimates) == (log, "wfp, regular", "p85")
    }
    return (
        f"{log}: in regular use exact run times gain {listed(exact)} of the wait, and"
        f" {outlived:.1f} % of the jobs outlive the 85th percentile under WFP."
    )


def _weighted(log: str, gains: Sequence[Gains]) -> str:
    found = [
        each.means[2]
        for each in gains
        if each.log == log and each.estimates in PERCENTILES and np.isfinite(each.means[2])
    ]
    worse = sum(gain < 0 for gain in found)
    said = f"The weighted wait gets worse in {worse} of {len(found)} lines."
    if 2 * worse > len(found):
        said += (
            " P grows with the cube of the wait and with the size, so that few wide jobs can hold"
            " most of its weight, and narrow jobs pass them."
        )
    return said
