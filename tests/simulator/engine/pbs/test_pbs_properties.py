"""Invariants of the schedules of the twin of PBS."""

from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slurm_workloads import JOBS, NODES
from workloads import schedule_of

from simulator.scheduling.pbs_formula import AGED_FORMULA, ratio_formula
from simulator.scheduling.pbs_rules import PbsLimit, PbsQueue, PbsRules
from simulator.scheduling.ratio_rules import RatioRules
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmPartition

CLUSTERS = [
    SlurmCluster(
        groups=groups,
        partitions=(SlurmPartition(name="q", ranges=((0, nodes),), exclusive=exclusive),),
    )
    for groups, nodes in ((((NODES, 1, 1),), NODES), (((4, 8, 1), (5, 1, 1)), 9))
    for exclusive in (True, False)
]

RULES = st.builds(
    PbsRules,
    scheduler_iteration=st.sampled_from([30, 600]),
    strict_ordering=st.booleans(),
    backfill_depth=st.sampled_from([0, 1, 3]),
    opt_backfill_fuzzy=st.sampled_from([0, 60, 600]),
    job_sort_formula=st.sampled_from(["", "-walltime", "eligible_time / walltime"]),
    exit_time=st.sampled_from([0, 2]),
    cycle_time=st.sampled_from([0.0, 5.0]),
    queues=st.just((PbsQueue(name="q"),)),
    cluster=st.sampled_from([None, *CLUSTERS]),
)


def ending(schedule, rules):
    """Times at which the processors of jobs are free again."""
    return schedule.end + rules.exit_time


@examples(150)
@given(jobs=JOBS, rules=RULES, data=st.data())
def test_every_job_starts_once_after_its_submission_on_free_nodes(jobs, rules, data):
    parts = st.lists(st.floats(0.05, 1.0), min_size=len(jobs), max_size=len(jobs))
    requests = [job[3] for job in jobs]
    estimates = data.draw(
        st.none() | parts.map(lambda each: np.maximum(1, np.multiply(each, requests).astype(int)))
    )
    schedule = schedule_of(jobs, NODES, policy="pbs", pbs=rules, estimates=estimates)
    assert (schedule.wait >= 0).all()
    times = np.concatenate([ending(schedule, rules), schedule.start])
    processors = schedule.workload.processors
    changes = np.concatenate([-processors, processors])
    assert np.cumsum(changes[np.lexsort((changes, times))]).max() <= NODES


@examples(100)
@given(jobs=JOBS, most=st.integers(1, 3))
def test_no_user_runs_more_jobs_than_the_limit(jobs, most):
    limit = PbsLimit(entity="u", resource="jobs", most=most)
    schedule = schedule_of(jobs, NODES, policy="pbs", pbs=PbsRules(limits=(limit,)))
    for user in {job[4] for job in jobs}:
        own = schedule.workload.trace.user == user
        times = np.concatenate([schedule.end[own], schedule.start[own]])
        changes = np.repeat([-1, 1], own.sum())
        assert np.cumsum(changes[np.lexsort((changes, times))]).max() <= most


@examples(100)
@given(jobs=JOBS, depth=st.sampled_from([1, 5]))
def test_the_head_of_the_queue_is_not_delayed_where_walltimes_are_exact(jobs, depth):
    exact = [(submit, nodes, limit, limit, user) for submit, nodes, _, limit, user in jobs]
    rules = {"policy": "pbs", "pbs": PbsRules(backfill_depth=depth, opt_backfill_fuzzy=0)}
    schedule = schedule_of(exact, NODES, **rules)
    # Without backfilling each job starts when all before it have started and it fits.
    strict = schedule_of(exact, NODES, policy="pbs", pbs=PbsRules(backfill_depth=0))
    first = np.flatnonzero(strict.wait > 0)
    if len(first):
        assert schedule.start[first[0]] <= strict.start[first[0]]


FORMULAS = {"sjf-aging": AGED_FORMULA, "response-ratio": ratio_formula(RatioRules())}
WAITED = RatioRules(longest_wait=400)
"""Rules under which a job goes first after 300 s, as long as none has waited longer by the day."""


@pytest.mark.parametrize("order", FORMULAS)
@examples(100)
@given(jobs=JOBS, data=st.data())
def test_the_formula_that_a_site_sets_is_the_order_that_a_backtest_plays(order, jobs, data):
    parts = data.draw(st.lists(st.floats(0.05, 1.0), min_size=len(jobs), max_size=len(jobs)))
    estimates = [max(60, int(part * job[3])) for part, job in zip(parts, jobs, strict=True)]
    by_site = PbsRules(job_sort_formula=FORMULAS[order])
    played = schedule_of(jobs, NODES, policy="pbs", order=order, estimates=estimates)
    set_by_site = schedule_of(jobs, NODES, policy="pbs", pbs=by_site, estimates=estimates)
    assert played.start.tolist() == set_by_site.start.tolist()


@examples(100)
@given(jobs=JOBS)
def test_the_formula_lets_a_job_go_first_that_has_waited_for_long(jobs):
    by_site = PbsRules(job_sort_formula=ratio_formula(WAITED, 300))
    played = schedule_of(jobs, NODES, policy="pbs", order="response-ratio", ratio=WAITED)
    set_by_site = schedule_of(jobs, NODES, policy="pbs", pbs=by_site)
    assert played.start.tolist() == set_by_site.start.tolist()


def test_a_long_job_that_is_overdue_goes_before_a_short_one():
    jobs = [(0, 2, 350, 350), (1, 2, 100, 40_000), (40, 2, 60, 600)]
    for rules, starts in ((WAITED, [0, 350, 450]), (RatioRules(), [0, 410, 350])):
        first_after = 300 if rules is WAITED else None
        by_site = PbsRules(job_sort_formula=ratio_formula(rules, first_after))
        for given_rules in ({"order": "response-ratio", "ratio": rules}, {"pbs": by_site}):
            assert schedule_of(jobs, 2, policy="pbs", **given_rules).start.tolist() == starts


def test_the_documentation_shows_this_formula():
    page = Path(__file__).parents[4] / "docs" / "pbs.md"
    formula = ratio_formula(RatioRules())
    assert f'job_sort_formula = "{formula}"' in page.read_text("utf-8")
    without = RatioRules(overdue_share=0.0)
    card = Semantics.adjusted("order", policy="pbs", ratio=without).card()
    assert card["Order"].endswith(f"job_sort_formula = {formula}")
    played = Semantics.adjusted("order", policy="pbs").card()["Order"]
    assert ratio_formula(RatioRules(), "FIRST_AFTER") in played
    assert "FIRST_AFTER 75% of the longest wait of the last quarter, renewed each day" in played
    aged = Semantics.adjusted("aged-order", policy="pbs").card()
    assert aged["Order"].endswith(f"job_sort_formula = {AGED_FORMULA}")


@pytest.mark.parametrize("order", ["sjf", "sjf-aging", "response-ratio"])
def test_an_order_by_length_takes_the_place_of_the_formula(order):
    jobs = [(0, 2, 100, 100), (1, 2, 60, 900), (2, 2, 60, 300)]
    rules = PbsRules(job_sort_formula="walltime")
    found = schedule_of(jobs, 2, policy="pbs", pbs=rules, order=order)
    assert found.start.tolist() == [0, 160, 100]
