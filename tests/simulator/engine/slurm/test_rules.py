"""Schedules of the twin of Slurm that can be worked out on paper, one for each rule.

A job is (submission, nodes, run time, limit) and perhaps a user. With a pause of 30 s and cycles
that take no time, the backfill scheduler's cycles begin at 30, 60, 90, … while jobs wait.
"""

import pytest
from slurm_workloads import rules
from workloads import schedule_of, starts_of, workload_of

from simulator.engine.slurm.node_sets import members_of
from simulator.scheduling.semantics import Semantics, SemanticsError
from simulator.scheduling.simulate import initial_state, run
from simulator.scheduling.slurm_rules import LoggedTimes, SlurmRules, SlurmRulesError


def starts(jobs, nodes, *, order="fcfs", estimates=None, **given):
    return starts_of(
        jobs, nodes, policy="slurm", order=order, estimates=estimates, slurm=rules(**given)
    )


HOLE = [
    (0, 1, 600, 600),  # on one of two nodes
    (1, 2, 600, 600),  # waits for both
    (2, 1, 300, 300),  # fits beside the first
]


def test_a_job_starts_at_its_submission_if_nobody_waits():
    assert starts([(0, 1, 600, 600), (7, 1, 60, 60)], 2) == [0, 7]


def test_a_job_behind_a_waiting_one_starts_in_a_cycle_of_the_backfill_scheduler():
    assert starts(HOLE, 2) == [0, 600, 30]
    assert starts_of(HOLE, 2, policy="easy") == [0, 600, 2]


def test_a_cycle_begins_one_interval_after_the_end_of_the_last():
    jobs = [*HOLE[:2], (31, 1, 300, 300)]
    assert starts(jobs, 2) == [0, 600, 60]
    assert starts(jobs, 2, bf_interval=45) == [0, 600, 45]
    assert starts(jobs, 2, cycle_time=7.0) == [0, 600, 67]
    # One job is tested in the cycle at 30.
    assert starts(jobs, 2, test_time=5.0) == [0, 600, 65]


def test_after_an_idle_time_the_first_change_begins_a_cycle():
    jobs = [(100, 1, 600, 600), (135, 2, 600, 600), (135, 1, 300, 300)]
    assert starts(jobs, 2) == [100, 700, 135]


def test_the_main_scheduler_stops_at_the_first_job_that_cannot_start():
    jobs = [
        (0, 2, 100, 120),
        (1, 1, 180, 180),  # starts when both nodes are free
        (2, 2, 60, 60),  # does not fit beside it
        (3, 1, 30, 60),  # would fit: it starts in the cycle at 120
    ]
    assert starts(jobs, 2) == [0, 100, 280, 120]


def test_a_plan_is_a_set_of_nodes():
    jobs = [
        (0, 1, 300, 300),  # node 0
        (0, 1, 3600, 3600),  # node 1
        (0, 1, 300, 300),  # node 2
        (1, 3, 600, 600),  # is planned on nodes 2 to 4, a stretch that fits, from 300 on
        (2, 1, 600, 600),  # one of four processors would be left at 300, but it is node 0
    ]
    assert starts(jobs, 5) == [0, 0, 0, 300, 300]
    assert starts_of(jobs, 5, policy="easy") == [0, 0, 0, 300, 2]


def test_the_window_of_ends_doubles_and_jumps_over_the_earliest_start():
    jobs = [
        (0, 1, 5, 60),  # node 0, which is free afterwards
        (0, 1, 3600, 3600),
        (0, 1, 1200, 1200),  # node 2: not enough for the first of the waiting jobs
        (0, 1, 1500, 1500),  # node 3: would be enough, together with node 0
        (0, 1, 1680, 1680),  # node 4: within the window that has doubled to eight minutes
        (6, 3, 600, 600),  # is planned on nodes 2 to 4 from 1680 on
        (7, 1, 7200, 7200),  # so that node 0 is left
    ]
    assert starts(jobs, 5) == [0, 0, 0, 0, 0, 1680, 30]
    # With steps of a minute the window ends before 1680: nodes 0, 2 and 3 from 1500 on.
    assert starts(jobs, 5, bf_window_linear=60)[-1] > 30


def held(jobs, nodes):
    """The nodes of the jobs that run when the last job is submitted."""
    semantics = Semantics(policy="slurm", slurm=rules())
    state = initial_state(workload_of(jobs, nodes), semantics)
    state.jobs["estimate"] = state.jobs["request"]
    state.clock["pause_at"] = len(jobs) - 1
    run(state)
    places = state.by_end[: state.clock["running"][0]]
    return {int(state.runs["job"][p]): members_of(state.run_sets[p]) for p in places}


STRETCHES = [
    (0, 3, 10, 60),  # nodes 0 to 2
    (0, 1, 900, 900),
    (0, 2, 10, 60),  # nodes 4 and 5
    (0, 1, 900, 900),
    (0, 33, 10, 60),  # nodes 7 to 39, in two words
]


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [
        (1, [4]),  # of the smallest stretch that is enough
        (2, [4, 5]),
        (3, [0, 1, 2]),
        (4, [7, 8, 9, 10]),
        (34, [4, *range(7, 40)]),  # the largest, and the rest again by best fit
    ],
)
def test_nodes_are_a_best_fit_of_consecutive_ones(wanted, nodes):
    jobs = [*STRETCHES, (20, wanted, 60, 60), (21, 1, 60, 60)]
    assert held(jobs, 40)[5] == nodes


def test_a_job_that_would_start_after_the_window_has_no_reservation():
    jobs = [*HOLE[:2], (2, 1, 3600, 3600)]
    assert starts(jobs, 2) == [0, 600, 1200]
    assert starts(jobs, 2, bf_window=300) == [0, 3630, 30]


def test_a_cycle_tests_so_many_jobs_and_no_more():
    assert starts(HOLE, 2, bf_max_job_test=1) == [0, 600, 1200]


def test_a_cycle_looks_at_so_many_jobs_of_a_user_or_a_partition():
    jobs = [(0, 1, 600, 600, 3), (1, 2, 600, 600, 1), (2, 1, 300, 300, 1), (3, 1, 240, 240, 2)]
    assert starts(jobs, 2) == [0, 600, 30, 330]
    assert starts(jobs, 2, bf_max_job_user=1) == [0, 600, 1200, 30]
    assert starts(jobs, 2, bf_max_job_part=1) == [0, 600, 1200, 1200]


def test_a_cycle_starts_so_many_jobs():
    jobs = [(0, 1, 600, 600), (1, 3, 600, 600), (2, 1, 300, 300), (3, 1, 300, 300)]
    assert starts(jobs, 3) == [0, 600, 30, 30]
    assert starts(jobs, 3, bf_max_job_start=1) == [0, 600, 30, 60]


def test_a_full_table_of_reservations_ends_the_cycle():
    assert starts(HOLE, 2, bf_node_space_size=2) == [0, 600, 30]
    jobs = [*HOLE[:2], (2, 2, 600, 600), (3, 1, 300, 300)]
    assert starts(jobs, 2)[3] == 30
    assert starts(jobs, 2, bf_node_space_size=2)[3] == 1800


def test_reservations_begin_at_whole_steps_of_the_resolution():
    jobs = [(10, 1, 660, 660), (65, 2, 600, 600), (65, 1, 600, 600)]
    # The last would end at 665, before the first one does at 670; but its nodes are held from 660.
    assert starts(jobs, 2) == [10, 670, 1270]
    assert starts(jobs, 2, bf_resolution=1) == [10, 670, 65]


def test_limits_are_whole_minutes():
    jobs = [(0, 1, 600, 610), (1, 2, 600, 600), (2, 1, 600, 600)]
    # A limit of 610 s is 11 minutes: the last job ends at 630, before 660.
    assert starts(jobs, 2, bf_resolution=1) == [0, 630, 30]


def test_nodes_are_not_used_before_their_epilogs_are_over():
    jobs = [(0, 2, 100, 120), (1, 2, 60, 60)]
    assert starts(jobs, 2, epilog=10) == [0, 110]
    # A job that could start on a node that completes is planned for the next second.
    jobs = [(0, 1, 29, 60), (0, 1, 600, 600), (1, 2, 60, 60), (2, 1, 60, 60)]
    assert starts(jobs, 2, epilog=2)[3] == 60


def test_times_of_a_log_take_the_place_of_epilog_and_cycle_time():
    jobs = [(0, 2, 100, 120), (1, 1, 60, 60), (1, 2, 60, 60)]
    logged = LoggedTimes(cycles=(), epilogs=(20, 3, 3), first_epilogs=(65, 3, 3))
    # The second job has the second node from 120 to 183, the third has both.
    assert starts(jobs, 2, logged=logged) == [0, 120, 183]
    jobs = [*HOLE[:2], (31, 1, 300, 300)]
    none = {"epilogs": (0, 0, 0), "first_epilogs": (0, 0, 0)}
    logged = LoggedTimes(cycles=(12_000, 41_000), **none)
    assert starts(jobs, 2, logged=logged) == [0, 600, 41]
    # After the last cycle of the log the next one begins after bf_interval.
    logged = LoggedTimes(cycles=(12_000,), **none)
    assert starts(jobs, 2, logged=logged) == [0, 600, 42]


BEYOND_LIMIT = [
    (0, 1, 1000, 600),  # runs on beyond its limit
    (1, 2, 600, 600),  # waits for its node
    (601, 1, 200, 240),
]


def starts_beyond_limit(**given):
    return starts_of(BEYOND_LIMIT, 2, policy="slurm", overrun="keep", slurm=rules(**given))


def test_before_24_11_a_job_past_its_limit_ends_after_kill_wait_and_over_time_limit():
    # In the cycle at 630 the second job is planned for the next second,
    assert starts_beyond_limit(release=2205) == [0, 1000, 1600]
    # or for 930, in the step that begins at 900: the last one ends before that, at 870.
    assert starts_beyond_limit(release=2205, over_time_limit=300) == [0, 1000, 630]
    assert starts_beyond_limit(release=2205, kill_wait=330) == [0, 1000, 630]


def test_since_24_11_a_job_past_its_limit_is_expected_to_end_at_once():
    assert starts_beyond_limit() == [0, 1000, 1600]
    assert starts_beyond_limit(kill_wait=330, over_time_limit=300) == [0, 1000, 1600]


def test_before_25_05_ends_that_give_a_plan_no_nodes_put_it_off():
    jobs = [
        (0, 1, 660, 660),  # node 0
        (0, 1, 3600, 3600),
        (0, 1, 600, 600),  # node 2
        (1, 2, 600, 600),  # is planned on nodes 2 and 3, from 600 on, or from 660 on
        (2, 1, 600, 600),  # would end at 630 on node 3
    ]
    assert starts(jobs, 4) == [0, 0, 0, 600, 660]
    assert starts(jobs, 4, release=2205) == [0, 0, 0, 630, 30]


def test_before_24_11_ends_of_plans_are_rounded_down():
    jobs = [
        (0, 1, 3600, 3600),  # node 0
        (0, 4, 24, 60),
        (1, 5, 600, 600),  # waits for all nodes
        (2, 2, 30, 300),  # starts in the cycle at 30 and is expected to end at 330
        (3, 4, 60, 300),  # is planned behind it: from 360 on, or from the step that begins at 300
        (4, 2, 30, 300),  # would end at 330
    ]
    assert starts(jobs, 5) == [0, 0, 3600, 30, 60, 30]
    assert starts(jobs, 5, release=2205) == [0, 0, 3600, 30, 60, 120]


def test_the_main_scheduler_looks_at_a_submission_some_seconds_after_its_last_look():
    jobs = [(5, 1, 60, 60), (6, 1, 60, 60), (20, 1, 60, 60)]
    assert starts(jobs, 3) == [5, 8, 20]
    assert starts(jobs, 3, batch_sched_delay=9) == [9, 9, 20]


def test_an_event_lets_the_main_scheduler_look_at_the_first_jobs_only():
    jobs = [(0, 2, 100, 120), (1, 1, 60, 60), (2, 1, 60, 60)]
    assert starts(jobs, 2, bf_interval=300) == [0, 100, 100]
    assert starts(jobs, 2, bf_interval=300, default_queue_depth=0) == [0, 100, 120]


SOFT = [
    (0, 1, 3600, 3600),  # is expected to end at 300
    (1, 2, 600, 600),
    (2, 1, 600, 600),  # would end after that
]


def test_a_soft_limit_is_when_a_job_is_expected_to_end():
    assert starts(SOFT, 2) == [0, 3600, 30]
    # Past its soft end a job is expected to take half of the time left: until 1965.
    assert starts(SOFT, 2, estimates=[300, 600, 600]) == [0, 3600, 330]
    assert starts(SOFT, 2, estimates=[300, 600, 600], time_min_as_soft_limit=False) == [0, 3600, 30]


def test_a_waiting_job_is_tried_with_its_soft_limit():
    jobs = [(0, 1, 600, 600), (1, 2, 600, 600), (2, 1, 240, 3600)]
    assert starts(jobs, 2) == [0, 600, 1200]
    assert starts(jobs, 2, estimates=[600, 600, 250]) == [0, 600, 30]


def test_an_outlived_soft_limit_is_counted():
    schedule = schedule_of(SOFT, 2, policy="slurm", slurm=rules(), estimates=[300, 600, 600])
    assert schedule.corrections.tolist() == [1, 0, 0]
    assert schedule.backfilled.tolist() == [False, False, True]


def test_the_shortest_estimate_is_first_where_estimates_order_the_queue():
    jobs = [(0, 2, 100, 120), (1, 2, 600, 600), (2, 2, 60, 300)]
    assert starts(jobs, 2) == [0, 100, 700]
    assert starts(jobs, 2, order="sjf") == [0, 160, 100]
    assert starts(jobs, 2, order="sjf", estimates=[60, 60, 300]) == [0, 100, 700]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": "wfp"}, "not wfp"),
        ({"events": "sequential"}, "sequential"),
    ],
)
def test_what_slurm_does_not_have_is_refused(given, message):
    with pytest.raises(SemanticsError, match=message):
        Semantics(policy="slurm", **given)


def test_impossible_rules_are_refused_by_name():
    with pytest.raises(SlurmRulesError, match="bf_interval"):
        SlurmRules(bf_interval=0)
    with pytest.raises(SlurmRulesError, match="bf_max_job_test"):
        SlurmRules(bf_max_job_test=2_000_000)
