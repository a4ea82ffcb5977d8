import numpy as np
import pytest
from workloads import schedule_of

from simulator.scheduling import measures
from simulator.scheduling.measures import measure

# Two processors: the first job holds both until 10, the second waits 9 s and runs 1 s, the third
# waits for 8 s, runs beside it and ends at 30.
JOBS = [(0, 2, 10, 10), (1, 1, 1, 2), (2, 1, 20, 40)]


def test_the_measures_of_a_schedule_that_can_be_drawn():
    found = measure(schedule_of(JOBS, 2, policy="easy"))
    assert found.jobs == 3
    assert found.wait == pytest.approx((0 + 9 + 8) / 3)
    assert found.median_wait == 8
    assert found.response == pytest.approx((10 + 10 + 28) / 3)
    assert found.slowdown == pytest.approx((1 + 10 + 1.4) / 3)
    assert found.bounded_slowdown == pytest.approx((1 + 1 + 1.4) / 3)
    assert found.weighted_wait == pytest.approx((9 * 9 + 8 * 8) / 17)
    assert found.backfilled == 0
    assert found.makespan == 30
    assert found.utilisation == pytest.approx((2 * 10 + 1 + 20) / (2 * 30))
    assert found.corrected == 0
    assert found.wait_error is None
    assert found.node_notice is None


def test_slowdown_is_bounded_for_short_jobs():
    wait, runtime = np.array([90, 90, 0]), np.array([1, 30, 1])
    assert measures.bounded_slowdown(wait, runtime).tolist() == [9.1, 4.0, 1.0]
    assert measures.slowdown(wait, runtime).tolist() == [91.0, 4.0, 1.0]


def test_waits_are_weighted_by_the_priority_of_the_order():
    wfp = measure(schedule_of(JOBS, 2, order="wfp"))
    weights = [0, (9 / 2) ** 3 * 1, (8 / 40) ** 3 * 1]
    assert wfp.weighted_wait == pytest.approx((9 * weights[1] + 8 * weights[2]) / sum(weights))
    psp = measure(schedule_of(JOBS, 2, order="psp"))
    assert psp.weighted_wait == pytest.approx(17 / 3)  # all users are in one group
    aging = measure(schedule_of(JOBS, 2, order="psp-aging"))
    assert aging.weighted_wait == pytest.approx(17 / 3)  # nobody waits for a step
    assert measures.weighted_wait(np.array([5.0]), np.array([0.0])) == 0


def test_what_was_promised_at_arrival_is_compared_with_what_came():
    jobs = [(0, 1, 5, 20), (0, 1, 10, 10)]  # the second is promised 20 and starts at 5
    found = measure(schedule_of(jobs, 1, policy="conservative"))
    assert found.wait_error == (0 + 15) / 2
    assert found.median_wait_error == 7.5
    # promised to end at 20 and 30, ended at 5 and 15
    assert found.turnaround_deviation == pytest.approx((300 + 100) / 2)


def test_t_node_is_how_long_before_the_start_the_nodes_were_last_decided():
    jobs = [(0, 1, 30, 30), (0, 1, 10, 50), (1, 1, 5, 5), (2, 1, 5, 5)]
    schedule = schedule_of(jobs, 2, policy="fcfs-pinned")
    # The third goes to the other node at 10, the fourth stays behind it on the first one's.
    assert schedule.start.tolist() == [0, 0, 10, 15]
    found = measure(schedule)
    notices = (schedule.start - schedule.nodes_since).tolist()
    assert notices == [0, 0, 0, 5]
    assert found.node_notice == 5 / 4
    assert found.node_notice_share == 1 / 4


def test_no_jobs_have_measures_too():
    found = measure(schedule_of([], 4, policy="conservative"))
    assert (found.wait, found.utilisation, found.makespan) == (0, 0, 0)


def test_waits_are_weighted_also_where_all_priorities_are_below_one():
    assert measures.weighted_wait(np.array([4.0, 8.0]), np.array([0.75, 0.25])) == 5
    assert measures.weighted_wait(np.array([4.0, 8.0]), np.array([1e-9, 1e-9])) == 6
