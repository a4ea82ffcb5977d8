"""The comparison of orders over parts of logs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from ladder import FAIR
from order_fair_share import RULES, effect_of, finer, passed_on, shares_of_pairs, weekly_shares
from order_weeks import SETS, Part, change, longest_ratio, waits_of_classes, worst_class
from workloads import log_of, schedule_of

from simulator.scheduling.estimates import REQUESTED, Estimates
from simulator.scheduling.simulate import initial_state, simulate
from simulator.scheduling.workload import prepare


def part(log: str, first: float, second: float) -> Part:
    waits = {"one": first, "other": second}
    return Part(log, waits=waits, slowdowns=waits, longest=waits, areas=waits)


@pytest.mark.parametrize("played", SETS)
def test_every_comparison_is_of_orders_that_are_played(played):
    orders, pairs = SETS[played]
    names = {order.name for order in orders}
    assert len(names) == len(orders)
    assert {name for pair in pairs for name in pair} <= names


def test_a_part_counts_as_much_as_another_and_chance_widens_the_interval():
    equal = [part("a", 499, 999)] * 50
    assert change(equal, "waits", ("one", "other")) == pytest.approx((-0.5, -0.5, -0.5))
    mixed = [part("a", 499, 999), part("a", 999, 499)] * 50
    mean, low, high = change(mixed, "waits", ("one", "other"))
    assert mean == pytest.approx(0)
    assert -0.2 < low < 0 < high < 0.2
    assert math.log1p(high) == pytest.approx(1.96 * math.log(2) / 10, rel=0.1)


def test_longest_waits_of_a_log_are_compared():
    assert longest_ratio(("one", "other"), [part("a", 10, 20), part("a", 30, 5)]) == 1.5


def test_the_class_whose_wait_grows_most_is_found_over_the_parts_of_a_log():
    def part_of(wide: int, hours: int) -> Part:
        jobs = [(0, 4, 600, 1200), (0, wide, 600, 3600 * hours), (0, 4, 600, 3600 * hours)]
        schedules = {
            "submission": schedule_of(jobs, 4, policy="fcfs"),
            "ratio mean": schedule_of(jobs, 4, policy="fcfs"),
        }
        start = schedules["ratio mean"].start + np.array([0, 1200, 0])
        schedules["ratio mean"] = replace(schedules["ratio mean"], start=start)
        return part("a", 1, 1)._replace(classes=dict(waits_of_classes(schedules)))

    label, share, today, ordered = worst_class("ratio mean", [part_of(2, 20), part_of(2, 20)])
    assert (label, share) == ("asking for 12 to 24 h", pytest.approx(2 / 3))
    assert ordered - today == pytest.approx(600), "one of two jobs waits 1,200 s longer"
    assert worst_class("ratio mean", [part_of(1, 20)])[:2] == ("size 1", pytest.approx(1 / 3))


def test_shares_of_processor_time_are_those_of_weeks():
    week = 7 * 86400
    jobs = [(0, 1, week // 2, week), (0, 1, 2 * week, 2 * week), (0, 1, 60, 60), (0, 1, 60, 60)]
    schedule = schedule_of(jobs, 4, policy="fcfs")
    users = {"user": np.arange(4), "group": np.zeros(4, np.int64)}
    trace = replace(schedule.workload.trace, **users)
    schedule = replace(schedule, workload=replace(schedule.workload, trace=trace))
    shares = weekly_shares(schedule)
    assert shares[:2].sum(axis=1) == pytest.approx(1)
    assert shares[0, :2] == pytest.approx([1 / 3, 2 / 3], abs=1e-3)
    assert shares[1].tolist() == [0, 1, 0, 0]
    late, later = (replace(schedule, start=schedule.start + each) for each in (60, 120))
    effect = effect_of(later, late)
    assert (effect.wait, effect.longest) == (1, 2)
    assert max(effect.weekly, effect.whole) < 0.1, "a minute of a week"


def test_pairs_of_jobs_that_wait_together_are_weighted_by_the_difference_of_their_runtimes():
    day = 86400
    # One runs; the others wait at 6 h: pairs of 8 h and 2 h (6), 8 h and 1 h (7), 2 h and 1 h (1).
    hours = [(0, 24), (60, 8), (120, 2), (180, 1)]
    jobs = [(submit, 4, 3600 * run, day) for submit, run in hours]
    schedule = schedule_of(jobs, 4, policy="fcfs")
    parties = {"user": np.array([1, 1, 1, 2]), "group": np.array([1, 2, 3, 4])}
    trace = replace(schedule.workload.trace, **parties)
    schedule = replace(schedule, workload=replace(schedule.workload, trace=trace))
    # At 6, 12 and 18 h; at 24 h the second one has begun, and 2 h and 1 h wait, at 30 h likewise.
    assert shares_of_pairs(schedule).tolist() == pytest.approx([6 * 3 / (14 * 3 + 2), 0])


@pytest.fixture
def beside_fair_share():
    """Jobs of two users behind a long one, and the rules of fair share."""
    hour = 3600
    jobs = [(0, 4, 9 * hour, 9 * hour, 9), (60, 4, 5 * hour, 6 * hour, 1)]
    jobs += [(120, 4, 4 * hour, 6 * hour, 2), (180, 4, hour, 6 * hour, 1)]
    jobs += [(240, 4, hour, 6 * hour, 2), (600, 1, hour, hour, 9)]
    return prepare(log_of(jobs, 4)), replace(RULES, slurm=finer(FAIR))


def test_within_users_a_short_job_takes_the_priority_of_a_long_one_of_its_user(beside_fair_share):
    workload, rules = beside_fair_share
    users = workload.trace.user
    alone = simulate(workload, rules, Estimates.named(REQUESTED))
    start = passed_on(initial_state(workload, rules), workload, users, workload.runtime)
    for user, (long, short) in {1: (1, 3), 2: (2, 4)}.items():
        assert alone.start[long] < alone.start[short], user
        assert start[short] < start[long], user
    assert set(users[np.argsort(alone.start)[1:3]]) == set(users[np.argsort(start)[1:3]]) == {1, 2}


def test_within_users_jobs_of_equal_lengths_keep_their_order(beside_fair_share):
    workload, rules = beside_fair_share
    alone = simulate(workload, rules, Estimates.named(REQUESTED))
    state = initial_state(workload, rules)
    start = passed_on(state, workload, workload.trace.user, np.full(len(workload), 600))
    assert start.tolist() == alone.start.tolist()
