"""Schedules small enough to draw: time to the right, processors upwards."""

import numpy as np
import pytest
from workloads import schedule_of, starts_of, workload_of

from simulator.engine.loop import DONE
from simulator.engine.policies import POLICIES, run
from simulator.scheduling.ratio_rules import RatioError, RatioRules
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import empty_machine

# A job is (submit, processors, run time, request).

BLOCKED_HEAD = [
    (0, 2, 10, 10),  # runs at once
    (1, 4, 5, 5),  # the head, waits for all four processors
    (2, 2, 8, 8),  # ends at 10, when the head is to start
    (3, 2, 9, 9),  # would end after that
]


def test_without_backfilling_nobody_passes_the_head():
    assert starts_of(BLOCKED_HEAD, 4, policy="fcfs") == [0, 10, 15, 15]


def test_easy_fills_in_what_ends_by_the_shadow_time():
    schedule = schedule_of(BLOCKED_HEAD, 4, policy="easy")
    assert schedule.start.tolist() == [0, 10, 2, 15]
    assert schedule.backfilled.tolist() == [False, False, True, False]


def test_easy_fills_in_beside_the_head_what_fits_into_the_extra_processors():
    jobs = [
        (0, 3, 10, 10),
        (1, 3, 5, 5),  # the head: from 10 on one processor is extra
        (2, 1, 50, 50),  # takes the extra one
        (3, 1, 50, 50),  # no extra one is left, and nothing is free
    ]
    assert starts_of(jobs, 4, policy="easy") == [0, 10, 2, 15]


def test_easy_tries_candidates_in_the_order_of_the_queue_and_sjbf_the_shortest_first():
    jobs = [
        (0, 3, 10, 10),
        (1, 4, 5, 5),  # the head
        (2, 1, 8, 8),
        (2, 1, 4, 4),
    ]
    assert starts_of(jobs, 4, policy="easy") == [0, 10, 2, 15]
    assert starts_of(jobs, 4, policy="easy-sjbf") == [0, 10, 15, 2]


def test_a_second_reservation_protects_the_second_blocked_job():
    jobs = [
        (0, 3, 10, 10),
        (1, 4, 5, 5),  # first blocked: 10
        (1, 3, 5, 5),  # second blocked: 15
        (2, 2, 20, 20),  # too wide for now
        (3, 1, 7, 7),  # ends in time for both
        (4, 1, 30, 30),
    ]
    assert starts_of(jobs, 4, policy="easy", depth=2) == [0, 10, 15, 20, 3, 15]
    jobs[2] = (1, 4, 5, 5)
    # Beside one reservation at 10 only, the last job would have had to wait as well.
    assert starts_of(jobs, 4, policy="easy", depth=2) == [0, 10, 15, 20, 3, 20]


# Of six processors four are busy until 10 and two until 4, as requested; the two end at 2.
EARLY_END = [
    (0, 4, 10, 10),
    (0, 2, 2, 4),
    (1, 4, 5, 5),  # planned at 10
    (1, 2, 9, 9),  # planned at 4
    (1, 4, 2, 2),  # planned at 15: behind both
]


def test_conservative_plans_every_job_at_its_earliest_slot():
    schedule = schedule_of([(0, 4, 10, 10), (0, 2, 4, 4), *EARLY_END[2:]], 6, policy="conservative")
    assert schedule.promise.tolist() == [0, 0, 10, 4, 15]
    assert schedule.start.tolist() == [0, 0, 10, 4, 15]


@pytest.mark.parametrize("compression", ["start-order", "keep", "replan"])
def test_conservative_closes_the_gap_of_an_early_end(compression):
    schedule = schedule_of(EARLY_END, 6, policy="conservative", compression=compression)
    assert schedule.promise.tolist() == [0, 0, 10, 4, 15]
    assert schedule.start.tolist() == [0, 0, 10, 2, 15]


# Three processors: one busy until 10, two until 20 as requested, but these are free at 5.
TWO_WAYS = [
    (0, 1, 10, 10),
    (0, 2, 5, 20),
    (1, 2, 10, 10),  # planned at 20
    (2, 1, 15, 15),  # planned at 10
]


def test_by_planned_starts_who_was_to_start_first_is_planned_first():
    starts = starts_of(TWO_WAYS, 3, policy="conservative", compression="start-order")
    assert starts == [0, 0, 10, 5]


@pytest.mark.parametrize("compression", ["replan", "keep"])
def test_in_the_order_of_the_queue_who_came_first_is_planned_first(compression):
    starts = starts_of(TWO_WAYS, 3, policy="conservative", compression=compression)
    assert starts == [0, 0, 5, 10]


def test_an_outlived_estimate_moves_the_plan():
    jobs = [(0, 4, 10, 20), (1, 4, 5, 5)]
    # The first is estimated at 4 s, then at 8 s, then at 16 s; it ends at 10.
    schedule = schedule_of(jobs, 4, estimates=[4, 5], policy="conservative")
    assert schedule.promise.tolist() == [0, 4]
    assert schedule.start.tolist() == [0, 10]
    assert schedule.corrections.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("correction", "corrections"), [("double", 3), ("request", 1), ("tsafrir", 2)]
)
def test_an_outlived_estimate_is_corrected_again_and_again(correction, corrections):
    # Estimated at 100 s, runs 600 s of 1,000 s: 200, 400, 800; 1,000; 160, 400, 1,000.
    jobs = [(0, 1, 390 if correction == "tsafrir" else 600, 1000)]
    schedule = schedule_of(jobs, 1, estimates=[100], correction=correction)
    assert schedule.corrections.tolist() == [corrections]


def test_a_corrected_estimate_opens_the_backfill_window():
    jobs = [
        (0, 2, 20, 20),  # estimated at 5 s, then 10 s, then 20 s
        (1, 3, 5, 5),  # the head: its shadow time is 5, then 10, then 20
        (2, 1, 6, 6),  # fits before 10 only once the estimate has been corrected
    ]
    assert starts_of(jobs, 3, estimates=[5, 5, 5], policy="easy") == [0, 20, 5]


def test_in_sequence_nobody_is_asked_after_a_correction_alone():
    jobs = [(0, 2, 20, 20), (1, 3, 5, 5), (2, 1, 6, 6)]
    starts = starts_of(jobs, 3, estimates=[5, 5, 5], policy="easy", events="sequential")
    assert starts == [0, 20, 25]


def test_the_request_counts_for_running_jobs_under_selective_adjustment():
    jobs = [
        (0, 2, 20, 20),  # estimated at 5 s
        (1, 3, 5, 5),  # the head: its shadow time is 5 by the estimate, 20 by the request
        (2, 1, 6, 6),
    ]
    starts = starts_of(jobs, 3, estimates=[5, 5, 6], policy="easy", estimated_running=False)
    assert starts == [0, 20, 2]


def test_shortest_first_goes_by_estimates_or_by_requests():
    jobs = [(0, 1, 10, 10), (1, 1, 5, 9), (2, 1, 5, 8)]
    assert starts_of(jobs, 1, estimates=[10, 5, 7], order="sjf") == [0, 10, 15]
    requests = starts_of(jobs, 1, estimates=[10, 5, 7], order="sjf", estimated_order=False)
    assert requests == [0, 15, 10]


H = 3600
TWO_LENGTHS = [
    (0, 1, 5 * H, 5 * H),
    (1, 1, 2 * H, 2 * H),  # at 5 h: (5 + 4) / 2 = 4.5
    (4 * H, 1, H, H),  # at 5 h: (1 + 4) / 1 = 5
    (4 * H, 1, 60, 60),  # counts as 10 minutes: 30
]


@pytest.mark.parametrize("policy", ["easy", "pbs", "slurm"])
def test_the_ratio_of_wait_and_length_decides(policy):
    found = starts_of(TWO_LENGTHS, 1, policy=policy, order="response-ratio")
    first = found[3]
    assert 5 * H <= first <= 5 * H + 60
    assert found[2] - first == pytest.approx(60, abs=60)
    assert found[1] - found[2] == pytest.approx(H, abs=60)


@pytest.mark.parametrize("policy", ["easy", "pbs", "slurm"])
@pytest.mark.parametrize(
    ("numbers", "order"),
    [
        ("14400,600,43200", [3, 2, 1]),
        ("3600,600,43200", [3, 1, 2]),  # at 5 h: (5 + 1) / 2 = 3, (1 + 1) / 1 = 2, 12
        ("14400,7200,43200", [1, 2, 3]),  # all count as 2 h: 4.5, 2.5, 2.5
        ("14400,600,3600", [3, 1, 2]),  # two count as 1 h: 9, 5, 30
    ],
)
def test_offset_and_bounds_of_lengths_decide(policy, numbers, order):
    ratio = RatioRules.of(numbers)
    found = starts_of(TWO_LENGTHS, 1, policy=policy, order="response-ratio", ratio=ratio)
    assert sorted(range(1, 4), key=lambda job: found[job]) == order


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "OFFSET,SHORTEST,LONGEST in seconds"),
        ("14400", "such as 14400,600,43200, not '14400'"),
        ("4h,10m,12h", "not '4h,10m,12h'"),
        ("14400,600,43200,1", "OFFSET,SHORTEST,LONGEST"),
        ("14400, 600,43200", "OFFSET,SHORTEST,LONGEST"),
        ("-1,600,43200", "OFFSET,SHORTEST,LONGEST"),
        ("1.5,600,43200", "OFFSET,SHORTEST,LONGEST"),
        ("\u0661,600,43200", "OFFSET,SHORTEST,LONGEST"),
        ("0,600,43200", "offset of waits is 1 to 1000000000 s, not 0"),
        ("1000000001,600,43200", "offset of waits"),
        ("14400,0,43200", "between 0 s and 43200 s"),
        ("14400,43201,43200", "between 43201 s and 43200 s"),
        ("14400,600,1000000001", "between 600 s and 1000000001 s"),
        (f"14400,600,{'9' * 400}", "Lengths cannot be held"),
    ],
)
def test_impossible_numbers_of_the_ratio_are_refused(text, complaint):
    with pytest.raises(RatioError, match=complaint):
        RatioRules.of(text)


def test_numbers_of_the_ratio_are_an_option_where_they_are_not_the_usual_ones():
    assert RatioRules.of(None) == RatioRules.of("14400,600,43200") == RatioRules()
    assert RatioRules().option == ""
    assert RatioRules.of("3600,60,7200").option == " --ratio 3600,60,7200"


@pytest.mark.parametrize("policy", ["easy", "pbs", "slurm"])
@pytest.mark.parametrize(("longest", "is_first"), [(6 * H, True), (7 * H, False), (0, False)])
def test_a_job_that_has_waited_for_three_quarters_of_the_longest_wait_goes_first(
    policy, longest, is_first
):
    ratio = RatioRules(longest_wait=longest)
    found = starts_of(TWO_LENGTHS, 1, policy=policy, order="response-ratio", ratio=ratio)
    assert (found[1] < found[3] < found[2]) is is_first


def test_waits_of_the_last_quarter_count_and_older_ones_do_not():
    def jobs_of(day):
        begin = 86400 * day
        return [
            (begin, 1, 5 * H, 5 * H),
            (begin + 1, 1, 12 * H, 12 * H),
            (begin + 4 * H, 1, 60, 60),
        ]

    first = [(0, 1, 4 * H, 4 * H), (1, 1, H, H)]  # the second one waits for 4 h
    found = starts_of([*first, *jobs_of(20), *jobs_of(120)], 1, order="response-ratio")
    assert found[3] < found[4], "it has waited for 5 h, more than three quarters of 4 h"
    assert found[7] < found[6]


@pytest.mark.parametrize(
    ("jobs", "processors", "starts"),
    [
        # At 100: (90 / 50)^3 * 1 = 5.8 and (80 / 80)^3 * 4 = 4; squares would be 3.2 and 4.
        ([(0, 4, 100, 100), (10, 1, 50, 50), (20, 4, 80, 80)], 4, [0, 100, 150]),
        # At 100: (97 / 100)^3 * 1 = 0.91 and (50 / 100)^3 * 8 = 1; fourth powers 0.89 and 0.5.
        ([(0, 8, 100, 100), (3, 1, 100, 100), (50, 8, 100, 100)], 8, [0, 200, 100]),
    ],
)
def test_wfp_takes_the_third_power(jobs, processors, starts):
    assert starts_of(jobs, processors, policy="fcfs", order="wfp") == starts


def test_wfp_goes_by_estimates_or_by_requests():
    jobs = [(0, 1, 50, 50), (0, 1, 10, 1000), (0, 1, 20, 20)]
    estimates = [50, 10, 20]  # at 50: (50 / 10)^3 and (50 / 20)^3; (50 / 1000)^3 by the request
    rules = {"policy": "fcfs", "order": "wfp", "estimates": estimates}
    assert starts_of(jobs, 1, **rules) == [0, 50, 60]
    assert starts_of(jobs, 1, estimated_order=False, **rules) == [0, 70, 50]


@pytest.mark.parametrize(
    ("priority", "order", "starts"),
    [
        (13.0, "psp-aging", [0, 600, 610]),
        (14.0, "psp-aging", [0, 610, 600]),
        (13.0, "psp", [0, 610, 600]),
    ],
)
def test_a_job_is_aged_in_steps_of_150_seconds(priority, order, starts):
    """At 600 the second job has waited for four steps: 10 * (1 + 0.3 + 0.06 + 0.006) = 13.66; the
    third one has waited for less than one, and has the priority of its group."""
    workload = workload_of([(0, 1, 600, 600), (0, 1, 10, 1500), (590, 1, 10, 150)], 1)
    state = empty_machine(workload, Semantics(policy="fcfs", order=order))
    state.jobs["estimate"] = workload.request
    state.jobs["priority"] = [99.0, 10.0, priority]
    while run(state) != DONE:
        pass
    assert state.jobs["start"].tolist() == starts


def test_a_pinned_job_starts_as_soon_as_its_own_nodes_are_free():
    jobs = [
        (0, 2, 10, 100),  # nodes 0 and 1, expected to end at 100, ends at 10
        (0, 1, 90, 90),  # node 2
        (0, 1, 60, 200),  # node 3
        (5, 3, 20, 20),  # planned on 0, 1 and 2 at 100; at 60 nodes 0, 1 and 3 are free
    ]
    pinned = schedule_of(jobs, 4, policy="fcfs-pinned", pinning=100)
    assert pinned.start.tolist() == [0, 0, 0, 90]
    assert (pinned.start - pinned.nodes_since).tolist() == [0, 0, 0, 85]
    free = schedule_of(jobs, 4, policy="fcfs-pinned", pinning=0)
    assert free.start.tolist() == [0, 0, 0, 60]


def test_a_pinned_job_waits_for_its_planned_start_too_if_that_is_the_rule():
    jobs = [
        (0, 2, 10, 100),  # nodes 0 and 1, expected to end at 100, ends at 10
        (0, 1, 90, 90),  # node 2
        (0, 1, 200, 200),  # node 3
        (5, 3, 20, 20),  # planned on 0, 1 and 2 at 100; they are free from 90 on
    ]
    rules = {"policy": "fcfs-pinned", "pinning": 100, "pinned": "start"}
    pinned = schedule_of(jobs, 4, **rules)
    assert pinned.start.tolist() == [0, 0, 0, 100]
    assert (pinned.start - pinned.nodes_since).tolist() == [0, 0, 0, 95]


def test_a_job_planned_into_a_gap_need_not_pass_anybody():
    jobs = [
        (0, 4, 10, 100),
        (0, 4, 10, 50),
        (1, 6, 5, 5),  # planned at 100
        (2, 2, 20, 20),  # planned at 50, before it; at 10 everything is free and both start
    ]
    schedule = schedule_of(jobs, 8, policy="conservative")
    assert schedule.promise.tolist() == [0, 0, 100, 50]
    assert schedule.start.tolist() == [0, 0, 10, 10]
    assert schedule.in_gap.tolist() == [False, False, False, True]
    assert not schedule.backfilled.any()


def test_a_job_that_passes_another_need_not_have_been_planned_into_a_gap():
    jobs = [
        (0, 6, 100, 100),
        (0, 2, 5, 100),
        (1, 8, 5, 5),  # planned at 100
        (2, 2, 90, 90),  # planned at 105; at 5 there is room for it until 95
    ]
    schedule = schedule_of(jobs, 8, policy="conservative")
    assert schedule.promise.tolist() == [0, 0, 100, 105]
    assert schedule.start.tolist() == [0, 0, 100, 5]
    assert schedule.backfilled.tolist() == [False, False, False, True]
    assert not schedule.in_gap.any()


def test_a_job_whose_nodes_are_late_for_longer_than_pinning_is_planned_anew():
    jobs = [
        (0, 1, 30, 40),  # node 0, estimated at 10 s, then 20 s
        (0, 1, 14, 14),  # node 1
        (1, 1, 5, 5),  # planned on node 0 at 10: at 10 it would have to wait until 20
        (2, 1, 5, 5),  # pinned to node 1 at 14: at 10 that is 4 s away
    ]
    estimates = np.array([10, 14, 5, 5])
    schedule = schedule_of(jobs, 2, estimates=estimates, policy="fcfs-pinned", pinning=5)
    assert schedule.start.tolist() == [0, 0, 19, 14]
    assert schedule.nodes_since.tolist() == [0, 0, 10, 2]


def test_a_job_takes_whole_nodes():
    jobs = [(0, 5, 10, 10), (0, 3, 5, 5), (0, 4, 5, 5)]  # 2 nodes, 1 node, 1 node
    assert starts_of(jobs, 12, cores=4, policy="fcfs") == [0, 0, 5]


def test_a_job_beyond_its_request_has_its_estimate_doubled_if_it_is_kept():
    jobs = [(0, 1, 25, 10), (1, 1, 5, 5)]
    kept = schedule_of(jobs, 1, overrun="keep")
    assert kept.start.tolist() == [0, 25]
    assert kept.corrections.tolist() == [2, 0]  # 10 s, 20 s, 40 s
    assert starts_of(jobs, 1, overrun="kill") == [0, 10]
    assert starts_of(jobs, 1, overrun="swap") == [0, 10]


def test_jobs_due_in_one_second_start_in_the_order_in_which_they_were_planned():
    """The third is planned at 20, behind the second, and moves to 10 when that ends early; the
    fourth has been planned at 10 from the beginning."""
    jobs = [(0, 1, 10, 10), (0, 2, 10, 20), (1, 2, 5, 5), (2, 1, 5, 5)]
    workload = workload_of(jobs, 3)
    state = empty_machine(workload, Semantics(policy="conservative"))
    state.jobs["estimate"] = workload.request
    while run(state) != DONE:
        pass
    assert state.jobs["start"].tolist() == [0, 0, 10, 10]
    assert state.jobs["serial"].argsort().tolist() == [0, 1, 3, 2]


@pytest.mark.parametrize("sequential", [True, False])
def test_a_simulation_whose_estimates_are_all_known_ends_in_one_call(sequential):
    workload = workload_of([(0, 1, 10, 10), (1, 1, 10, 10), (30, 1, 5, 5)], 1)
    rules = Semantics(policy="fcfs", events="sequential" if sequential else "batch")
    state = empty_machine(workload, rules)
    state.jobs["estimate"] = workload.request
    assert run(state) == DONE
    assert state.jobs["start"].tolist() == [0, 10, 30]


def test_no_two_loops_share_the_name_of_a_part():
    """Machine code of different processes is linked by name: one would run in place of another."""
    loops = {policy.run for policy in POLICIES.values()}
    parts = [getattr(loop, "py_func", loop).__globals__["_play"] for loop in loops]
    names = {getattr(part, "py_func", part).__qualname__ for part in parts}
    assert len(names) == len(loops)
