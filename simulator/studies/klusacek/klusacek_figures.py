"""The figures of Klusáček & Soysal 2020 that tables print and sentences speak of.

They are as precise as they are printed, so that no sentence says something else than its table.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from simulator.reports.comparison import Outcome
from simulator.scheduling.measures import node_notice, wait_error
from simulator.studies.simulations import Results


class ScheduleFigures(NamedTuple):
    """A log under conservative backfilling.

    Attributes:
        log: its name.
        estimates: of the scheduler.
        passed: percent of the jobs that were started past a waiting one.
        in_gap: percent that were planned at arrival before a waiting one's planned start.
        wait: mean, in seconds.
        no_wait: percent that started at once.
        long_wait: percent that waited for more than 4 h.
        error: mean error of the wait predicted at arrival, in seconds.
        median_error: its median.
        high_error: its 90th percentile.
    """

    log: str
    estimates: str
    passed: float
    in_gap: float
    wait: float
    no_wait: float
    long_wait: float
    error: float
    median_error: float
    high_error: float

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        return (
            f"{self.log}, conservative",
            self.estimates,
            f"{self.passed:.1f}%",
            f"{self.in_gap:.1f}%",
            f"{self.wait:,.0f}",
            f"{self.no_wait:.1f}%",
            f"{self.long_wait:.1f}%",
            f"{self.error:,.0f}",
            f"{self.median_error:,.0f}",
            f"{self.high_error:,.0f}",
        )


class NodeFigures(NamedTuple):
    """The first jobs of a log on named nodes.

    Attributes:
        log: its name.
        span: the jobs that were played, in words.
        hours: of pinning.
        start_kept: a pinned job keeps its planned start too.
        estimates: of the scheduler.
        notice: mean T_node, in seconds.
        median_notice: its median.
        known: percent of the jobs with a T_node above 0.
        known_early: percent above 10 min.
        wait: mean, in seconds.
        median_wait: its median.
    """

    log: str
    span: str
    hours: int
    start_kept: bool
    estimates: str
    notice: float
    median_notice: float
    known: float
    known_early: float
    wait: float
    median_wait: float

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        kept = ", start kept" if self.start_kept else ""
        return (
            f"{self.log}, {self.span}, pinning {self.hours} h{kept}",
            self.estimates,
            f"{self.notice:,.0f}",
            f"{self.median_notice:,.0f}",
            f"{self.known:.1f}%",
            f"{self.known_early:.1f}%",
            f"{self.wait:,.0f}",
            f"{self.median_wait:,.0f}",
        )


class Figures(NamedTuple):
    """The lines of both tables."""

    schedules: list[ScheduleFigures]
    nodes: list[NodeFigures]


def figures_of(results: Results) -> Figures:
    """The figures of what was played, in its order."""
    found = Figures([], [])
    for group, estimates, each in _outcomes(results):
        if each.schedule.semantics.names_nodes:
            found.nodes.append(_on_nodes(group, estimates, each))
        else:
            found.schedules.append(_scheduled(group, estimates, each))
    return found


def _outcomes(results: Results) -> Iterator[tuple[str, str, Outcome]]:
    for group in results.groups():
        for estimates, each in results.of(group).items():
            yield group, estimates, each


def _scheduled(group: str, estimates: str, each: Outcome) -> ScheduleFigures:
    wait = each.schedule.wait
    errors = wait_error(each.schedule.promise, each.schedule.start)
    return ScheduleFigures(
        log=group.split(", ", maxsplit=1)[0],
        estimates=estimates,
        passed=_percent(each.measures.backfilled),
        in_gap=_percent(np.mean(each.schedule.in_gap)),
        wait=_seconds(each.measures.wait),
        no_wait=_percent(np.mean(wait == 0)),
        long_wait=_percent(np.mean(wait > 4 * 3600)),
        error=_seconds(np.mean(errors)),
        median_error=_seconds(np.median(errors)),
        high_error=_seconds(np.quantile(errors, 0.9)),
    )


def _on_nodes(group: str, estimates: str, each: Outcome) -> NodeFigures:
    log, span, *_ = group.split(", ")
    semantics = each.schedule.semantics
    notice = node_notice(each.schedule.nodes_since, each.schedule.start)
    return NodeFigures(
        log=log,
        span=span,
        hours=int(semantics.pinning // 3600),
        start_kept=semantics.pinned == "start" and semantics.pinning > 0,
        estimates=estimates,
        notice=_seconds(np.mean(notice)),
        median_notice=_seconds(np.median(notice)),
        known=_percent(np.mean(notice > 0)),
        known_early=_percent(np.mean(notice > 600)),
        wait=_seconds(each.measures.wait),
        median_wait=_seconds(each.measures.median_wait),
    )


def _percent(share: Any) -> float:
    return float(f"{100 * share:.1f}")


def _seconds(value: Any) -> float:
    return float(f"{value:.0f}")
