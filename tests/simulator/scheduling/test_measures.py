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


def test_a_wide_job_weighs_more_under_wfp():
    jobs = [(0, 4, 10, 10), (1, 2, 5, 20), (2, 1, 5, 20)]  # the last two wait 9 and 8 s
    weights = [(9 / 20) ** 3 * 2, (8 / 20) ** 3 * 1]
    wfp = measure(schedule_of(jobs, 4, order="wfp"))
    assert wfp.weighted_wait == pytest.approx((9 * weights[0] + 8 * weights[1]) / sum(weights))


def test_a_second_is_enough_to_be_used():
    assert measure(schedule_of([(5, 1, 1, 1)], 2)).utilisation == 1 / 2


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


def test_a_turnaround_begins_with_the_submission():
    jobs = [(0, 1, 5, 20), (2, 1, 10, 10)]  # the second is promised to end at 30 and ends at 15
    found = measure(schedule_of(jobs, 1, policy="conservative"))
    assert found.turnaround_deviation == pytest.approx((300 + 100 * (28 - 13) / 13) / 2)


def test_nodes_that_were_known_a_second_before_the_start_were_known_before():
    jobs = [(0, 1, 30, 30), (0, 1, 10, 50), (1, 1, 1, 1), (2, 1, 5, 5)]
    schedule = schedule_of(jobs, 2, policy="fcfs-pinned")
    assert (schedule.start - schedule.nodes_since).tolist() == [0, 0, 0, 1]
    assert measure(schedule).node_notice_share == 1 / 4


def test_no_jobs_have_measures_too():
    found = measure(schedule_of([], 4, policy="conservative"))
    assert (found.wait, found.utilisation, found.makespan) == (0, 0, 0)


def test_waits_are_weighted_also_where_all_priorities_are_below_one():
    assert measures.weighted_wait(np.array([4.0, 8.0]), np.array([0.75, 0.25])) == 5
    assert measures.weighted_wait(np.array([4.0, 8.0]), np.array([1e-9, 1e-9])) == 6
    assert measures.weighted_wait(np.array([4.0, 8.0]), np.array([1e300, 1e300])) == 6


def test_a_log_that_begins_late_spans_its_own_time_only():
    late = [(submit + 1000, *rest) for submit, *rest in JOBS]
    found = measure(schedule_of(late, 2, policy="easy"))
    assert found.makespan == 30
    assert found.utilisation == pytest.approx(41 / 60)


def test_only_policies_that_plan_have_what_was_planned():
    easy = measure(schedule_of(JOBS, 2, policy="easy"))
    assert easy.planned_into_gap is None
    assert easy.median_wait_error is easy.turnaround_deviation is easy.node_notice_share is None
    jobs = [(0, 4, 10, 100), (0, 4, 10, 50), (1, 6, 5, 5), (2, 2, 20, 20)]
    planned = measure(schedule_of(jobs, 8, policy="conservative"))
    assert planned.planned_into_gap == 1 / 4
    assert planned.backfilled == 0
    nothing = measure(schedule_of([], 4, policy="conservative"))
    assert (nothing.median_wait, nothing.planned_into_gap, nothing.corrected) == (0, 0, 0)


def test_who_outlived_an_estimate_once_was_corrected():
    found = measure(schedule_of(JOBS, 2, estimates=[6, 1, 20], policy="easy"))
    assert found.corrected == pytest.approx(1 / 3)


def test_processors_idle_while_jobs_wait_are_counted():
    submit, start, end = np.array([0, 1, 8]), np.array([0, 4, 9]), np.array([6, 8, 10])
    processors = np.array([3, 1, 5])
    # The second waits from 1 to 4 beside two idle processors, the third from 8 to 9 beside five.
    idle = measures.idle_while_waiting(submit, start, end, processors, 5)
    assert idle == (4 - 1) * 2 + (9 - 8) * 5
    nobody = measures.idle_while_waiting(submit, submit, end, processors, 9)
    assert nobody == 0
