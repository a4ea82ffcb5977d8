"""The sums of costs behind the choice of auto, worked out by hand."""

import numpy as np
import pytest
from runs import ended

from predictors.candidates import gains_in
from predictors.memory.choice import (
    KNOWN,
    MOST_OF_USER,
    NO_GAINS,
    PRIOR,
    STRANGERS,
    gains_of_strangers,
    gains_of_user,
    no_sums,
    note_weights,
    slide_costs,
    with_room,
    write_costs,
)
from predictors.memory.columns import COST, FAMILIARITY, FIRST, SECOND, THIRD, WEIGHT
from predictors.memory.job_table import JobTable


def sums(runs, cost, *differences):
    """Sums in their units: parts of a run, and parts of a second."""
    seconds = (cost, *differences, 0, 0)
    return np.array([runs * 1024, *(16 * each for each in seconds)], np.int64)


def test_one_run_does_not_outweigh_the_cluster_and_four_do():
    """The example of docs/auto.md: request by costs of 60 s, and of 240 s more."""
    cluster = sums(1_000, 50_000, 0, 0, -10_000)
    gains = [gains_of_user(sums(n, 60 * n, 0, 0, 240 * n), cluster)[2] for n in (0, 1, 3, 4)]
    expected = (1_000 * -0.2 + 100 * 0.3) / 1_100
    assert gains == pytest.approx([(4 * n + 100 * expected) / (n + 100) for n in (0, 1, 3, 4)])
    assert gains[2] < 0 < gains[3]


def test_a_prior_of_a_hundred_runs_fades_as_runs_end():
    nobody = sums(0, 0, 0, 0, 0)
    cluster = [sums(runs, runs * 100, 0, runs * 20, 0) for runs in (0, 100, 300, 900)]
    gains = [gains_of_user(nobody, each)[1] for each in cluster]
    assert gains == pytest.approx([0.1, (0.1 + 0.2) / 2, (10 + 60) / 400, (10 + 180) / 1_000])


def test_before_any_run_has_ended_more_weight_on_the_request_is_taken_to_cost_more():
    nobody = sums(0, 0, 0, 0, 0)
    assert gains_of_user(nobody, nobody) == PRIOR
    assert 0.0 == PRIOR[3] == PRIOR[4] < PRIOR[0] < PRIOR[1] < PRIOR[2]


def test_a_user_who_has_no_place_in_the_sums_yet_gets_what_the_cluster_gets():
    found = no_sums(users=1)
    assert gains_in((1, 70), found) == PRIOR
    found.cluster[KNOWN][:] = sums(100, 1_000, 100, 0, 0)
    assert gains_in((1, 70), found)[0] == pytest.approx((PRIOR[0] + 0.1) / 2)


def test_strangers_are_answered_as_before_until_a_hundred_of_them_have_ended():
    assert gains_of_strangers(sums(99, 99, -50, 0, 0)) == NO_GAINS
    assert gains_of_strangers(sums(100, 1_000, -500, 100, 0)) == (-0.5, 0.1, 0.0, 0.0, 0.0)


def table_of(*runs):
    """A table of runs whose costs are 10 s for the first candidate, and 1, 2 and 3 s more."""
    table = JobTable(1_000, has_costs=True)
    for run in runs:
        table.add(run)
    numbers = table.columns[0]
    for row in range(len(runs)):
        write_costs(numbers, row, (10.0, 11.0, 12.0, 13.0, 14.0, 15.0), 1_000.0)
    numbers[FAMILIARITY, : len(runs)] = 1.0
    return table


def run(end, user="ann", *, waited=0.0, application="a.out"):
    return ended(end, 10.0, waited=waited, request=100.0, user=user, application=application)


def test_a_run_of_a_burst_counts_one_over_the_root_of_its_number():
    # Four like jobs submitted at once, one with another name, and one eleven minutes later.
    times = (10.0, 20.0, 30.0, 40.0)
    burst = [run(100.0 + each, waited=90.0 + each) for each in times]
    table = table_of(
        *burst, run(150.0, waited=140.0, application="b.out"), run(800.0, waited=119.0)
    )
    note_weights(table.columns, (0, 0, 6), 1_000)
    weights = table.columns[0][WEIGHT, :6]
    assert weights == pytest.approx([1, 2**-0.5, 3**-0.5, 0.5, 1, 1])


def slid(table, before, after, found=None):
    found = with_room(found or no_sums(), table.users)
    slide_costs(found.users, found.cluster, table.columns, before, after)
    return found


def test_sums_slide_and_are_those_of_the_window_wherever_it_began():
    table = table_of(*(run(float(end), f"u{end % 7}") for end in range(50)))
    numbers = table.columns[0]
    numbers[WEIGHT, :50] = np.random.default_rng(0).uniform(0.1, 1, 50)
    numbers[COST, :50] = np.random.default_rng(1).uniform(1, 100, 50)
    anew = slid(table, (0, 0), (20, 45))
    moved = slid(table, (5, 30), (20, 45), slid(table, (0, 0), (5, 30)))
    for one, other in zip(anew, moved, strict=True):
        assert (one == other).all()
    weights = np.rint(numbers[WEIGHT, 20:45] * 1024).sum()
    assert anew.cluster[KNOWN][0] == weights


def test_no_user_counts_for_more_than_a_bounded_number_of_runs_of_the_cluster():
    runs = [run(float(end), "flood") for end in range(600)]
    table = table_of(*runs, *(run(1_000.0 + end, f"u{end}") for end in range(10)))
    numbers = table.columns[0]
    numbers[WEIGHT, :610] = 1.0
    numbers[[FIRST, SECOND, THIRD], :600] = -5.0
    found = slid(table, (0, 0), (0, 610))
    assert found.cluster[KNOWN][0] == (MOST_OF_USER + 10) * 1024
    assert found.cluster[KNOWN][2] == 16 * (MOST_OF_USER * -5 + 10 * 1)


def test_runs_of_strangers_have_sums_of_their_own_and_runs_without_costs_none():
    table = table_of(*(run(float(end)) for end in range(4)))
    numbers = table.columns[0]
    numbers[WEIGHT, :4] = 1.0
    numbers[FAMILIARITY, :2] = 0.0
    numbers[COST, 3] = np.nan
    found = slid(table, (0, 0), (0, 4))
    assert found.cluster[KNOWN].tolist() == [1024, 160, 16, 32, 48, 64, 80]
    assert (found.cluster[STRANGERS] == 2 * found.cluster[KNOWN]).all()


def test_a_difference_counts_up_to_a_bound():
    table = table_of(run(10.0))
    numbers = table.columns[0]
    write_costs(numbers, 0, (1_000.0, 0.0, 5_000.0, 1_010.0, 1_000.0, 1_000.0), 20.0)
    assert numbers[[COST, FIRST, SECOND, THIRD], 0].tolist() == [1_000.0, -20.0, 20.0, 10.0]
