"""Trials of an order on the twin: the order is on where the calendar says so."""

import numpy as np
import pytest
from trial_power import (
    ORDERED,
    Comparison,
    difference,
    switched,
    table_of_quarters,
    waiting_jobs,
)
from workloads import log_of

from simulator.scheduling.estimates import REQUESTED, Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import prepare

DAY = 86400


@pytest.fixture(scope="module")
def workload():
    """Twenty days of more jobs than four processors can run, long and short ones."""
    random = np.random.default_rng(3)
    submits = np.sort(random.integers(0, 20 * DAY, 900))
    runs = random.choice([900, 20_000], 900)
    rows = [(int(s), 1, int(r), int(r) + 600) for s, r in zip(submits, runs, strict=True)]
    return prepare(log_of(rows, 4))


def test_with_all_days_on_or_off_it_is_the_twin_under_one_order(workload):
    lengths = workload.runtime
    always = switched(workload, lengths, np.ones(30, bool))
    known = Estimates(REQUESTED, known=lambda each: each.request, lengths=lambda each: each.runtime)
    assert always.tolist() == simulate(workload, ORDERED, known).start.tolist()
    never = switched(workload, lengths, np.zeros(30, bool))
    by_submission = Semantics(
        policy="slurm", order="fcfs", estimated_backfilling=False, estimated_running=False
    )
    assert (
        never.tolist()
        == simulate(workload, by_submission, Estimates.named(REQUESTED)).start.tolist()
    )
    assert (always - workload.submit).mean() < 0.8 * (never - workload.submit).mean()


def test_waiting_jobs_of_all_days_add_up_to_all_waits(workload):
    starts = switched(workload, workload.runtime, np.arange(30) % 2 == 0)
    found = waiting_jobs(workload, starts, 60)
    begin = workload.submit[0] + 7 * DAY
    waited = np.clip(starts - np.maximum(workload.submit, begin), 0, None).sum()
    assert found.sum() * DAY == pytest.approx(waited)


def test_an_effect_that_is_the_same_every_day_is_found_whatever_the_days_are():
    usual, is_on = np.array([100.0, 400.0, 50.0, 900.0]), np.array([True, False, True, False])
    queue = np.where(is_on, 0.8, 1.0) * (usual + 0.5) - 0.5
    assert difference(queue, is_on, usual) == pytest.approx(np.log(0.8))
    assert difference(queue, is_on) == pytest.approx(np.log(queue[is_on].mean() / 649.5), abs=0.01)


def test_differences_in_q_find_what_a_day_leaves_to_the_next():
    random = np.random.default_rng(1)
    is_on = random.integers(0, 2, 4000).astype(bool)
    before = np.concatenate(([False], is_on[:-1]))
    usual = random.integers(10, 1000, 4000).astype(float)
    queue = (usual + 0.5) * np.where(is_on, 0.9, 1.0) * np.where(before, 0.8, 1.0) - 0.5
    assert difference(queue, is_on, usual) == pytest.approx(np.log(0.9), abs=0.02)
    assert difference(queue, is_on, usual, 2) == pytest.approx(np.log(0.72), abs=0.02)


def test_a_comparison_with_a_quarter_detects_what_is_beyond_its_chance():
    found = [Comparison(-0.5, -0.4, chance) for chance in (0.1, -0.1)] * 20
    row = table_of_quarters({"log": found}).splitlines()[-1].split()
    assert row == ["log", "-39%", "-33%", "0.100", "100%", "50%", "0%"]
