"""Figures of reports on schedules, worked out by hand."""

import pytest
from workloads import log_of

from simulator.reports.comparison import outcome
from simulator.reports.schedule_report import utilisation
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import prepare


def test_utilisation_is_the_mean_of_each_hundredth_of_the_time():
    """Two of four processors for 100 s, all four for the next 50 s, and one for the last second."""
    log = log_of([(0, 2, 100, 100), (100, 4, 50, 50), (199, 1, 1, 50)], 4)
    workload = prepare(log)
    played = outcome(workload, Semantics(), lambda: Estimates.named("exact"))
    (panel,) = utilisation([played]).panels
    (series,) = panel.series
    assert len(panel.places) == 100
    assert series.values == pytest.approx([0.5] * 50 + [1.0] * 25 + [0.0] * 24 + [0.125])
