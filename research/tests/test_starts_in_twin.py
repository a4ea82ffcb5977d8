"""Starts told over months in the twin rest on what was known, and are scored by what came."""

from dataclasses import replace

import numpy as np
import pytest
from forecast_scores import coverage_by_promise
from starts_in_twin import BY_LIMITS, Case, Site, Telling, told_starts
from workloads import synthetic

from simulator.scheduling.estimates import EXACT, REQUESTED, Estimates
from simulator.scheduling.semantics import SLURM
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import usable_workload


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("starts") / "a.swf"
    synthetic(path, jobs=1500, seed=3)
    return path


def mean_error(told, source):
    return np.mean([abs(getattr(each, source) - each.start) for each in told])


def test_with_known_runtimes_starts_come_nearer_than_by_limits(log):
    told = told_starts(Case(str(log), None, EXACT, 6.0, arrivals=False))
    assert len(told) > 100
    assert mean_error(told, "ours") < 0.5 * mean_error(told, "slurm")
    assert all(each.lower <= each.ours <= each.upper for each in told)
    assert coverage_by_promise(told).startswith("intervals of 90% held")


@pytest.mark.parametrize("arrivals", [False, True])
def test_what_is_told_does_not_know_what_comes(log, arrivals):
    workload = usable_workload(log)
    now = int(workload.submit[900])
    later = workload.submit > now
    changed = replace(workload, runtime=np.where(later, workload.request, workload.runtime))
    told = []
    for each in (workload, changed):
        schedule = simulate(each, replace(BY_LIMITS, policy=SLURM), Estimates.named(REQUESTED))
        site = Site(each, schedule, "last-two")
        telling = Telling(site, arrivals=arrivals)
        site.advance(now)
        told.append(dict(telling.tell(site.queue(now))))
    assert told[0]
    assert told[0] == told[1]
