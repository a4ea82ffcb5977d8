"""Starts told over months in the twin rest on what was known, and are scored by what came."""

from dataclasses import replace

import late_submissions
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


def test_a_future_that_is_the_truth_is_not_told(log):
    case = Case(str(log), 900, "least-cost", 6.0, arrivals=False)
    told, right = told_starts(case), told_starts(case._replace(right=True))
    assert [each.job for each in right] == [each.job for each in told]
    assert [each.start for each in right] != [each.start for each in told]
    assert any(not each.lower <= each.start <= each.upper for each in right)


def test_jobs_that_end_as_the_scheduler_plans_start_later_than_by_medians_and_sooner_than_by_limits(
    log,
):
    case = Case(str(log), 900, "least-cost", 6.0, arrivals=False)
    by_limits, shipped = told_starts(case), told_starts(case._replace(shipped=True))
    assert [each.ours for each in shipped] == [each.ours for each in by_limits]
    medians, careful, limits = (
        np.mean([getattr(each, name) - each.at for each in told])
        for told, name in ((by_limits, "ours"), (shipped, "slurm"), (by_limits, "slurm"))
    )
    assert medians < careful < limits


def test_a_late_submission_moves_few_starts_in_the_order_of_submission(log):
    workload = usable_workload(log, 300)
    moves = {
        order: late_submissions.moves_of(late_submissions.Case(str(log), 300, order, 100))
        for order in ("fcfs", "sjf")
    }
    assert all(each.per_second == pytest.approx(len(workload) / workload.submit[-1], rel=0.01)
               for each in moves.values())  # fmt: skip
    moved = {order: np.mean(each.seconds > 60) for order, each in moves.items()}
    assert moved["fcfs"] < moved["sjf"], "a short request goes before those that wait"


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
        telling = Telling(site, arrivals=arrivals, right=False)
        site.advance(now)
        told.append({job: point for job, point, _ in telling.tell(site.queue(now))})
    assert told[0]
    assert told[0] == told[1]
