"""Schedules of the twin of PBS that can be worked out on paper, one for each rule.

A job is (submission, nodes, run time, walltime), and perhaps user, group and queue.
"""

import pytest
from workloads import starts_of

from simulator.scheduling.pbs_formula import FormulaError
from simulator.scheduling.pbs_rules import PbsLimit, PbsQueue, PbsRules, PbsRulesError
from simulator.scheduling.semantics import SemanticsError
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmPartition


def starts(jobs, nodes, *, order="fcfs", estimates=None, **given):
    rules = PbsRules(**given)
    return starts_of(jobs, nodes, policy="pbs", order=order, estimates=estimates, pbs=rules)


HOLE = [
    (0, 1, 600, 600),  # on one of two nodes
    (1, 2, 600, 600),  # waits for both
    (2, 1, 300, 300),  # fits beside the first
]
LONG = [*HOLE[:2], (2, 1, 3600, 3600)]  # does not end before the second is planned


def test_a_cycle_begins_with_a_submission_and_with_an_end():
    assert starts(HOLE, 2) == [0, 600, 2]
    assert starts(LONG, 2) == [0, 600, 1200]


def test_a_job_that_ends_is_known_to_have_ended_after_the_exit_time():
    assert starts([(0, 2, 600, 600), (1, 2, 60, 60)], 2, exit_time=7) == [0, 607]


def test_a_cycle_is_late_while_the_scheduler_is_in_another():
    assert starts([*HOLE[:1], (3, 1, 60, 60)], 2, cycle_time=10.0) == [0, 10]
    # One job was looked at in the first cycle.
    assert starts([*HOLE[:1], (3, 1, 60, 60)], 2, test_time=8.0) == [0, 8]


def test_without_strict_ordering_every_job_starts_that_fits():
    assert starts(LONG, 2, strict_ordering=False) == [0, 3602, 2]


def test_without_top_jobs_nobody_passes_the_head_of_the_queue():
    assert starts(HOLE, 2, backfill_depth=0) == [0, 600, 1200]


def test_so_many_top_jobs_are_planned():
    jobs = [
        (0, 2, 600, 600),  # nodes 0 and 1
        (1, 2, 600, 600),  # is planned there from 600 on
        (2, 3, 600, 600),  # is planned from 1200 on, if it is a top job
        (3, 1, 3600, 3600),  # then has no node
    ]
    assert starts(jobs, 3) == [0, 600, 3603, 3]
    assert starts(jobs, 3, backfill_depth=2) == [0, 600, 1200, 1800]


def test_ends_within_a_step_count_together_in_a_plan():
    jobs = [
        (0, 1, 600, 600),  # node 0
        (0, 1, 630, 630),  # node 1
        (1, 2, 600, 600),
        (2, 1, 3600, 3600),
    ]
    # The third is planned at 630 on nodes 0 and 1, and node 2 is left.
    assert starts(jobs, 3) == [0, 0, 630, 2]
    # It is planned at 600 on nodes 0 and 2.
    assert starts(jobs, 3, opt_backfill_fuzzy=0) == [0, 0, 600, 630]


def test_a_job_takes_nodes_first_that_a_top_job_takes_later():
    jobs = [
        (0, 2, 600, 600),  # nodes 0 and 1
        (1, 3, 600, 600),  # is planned on nodes 0 to 2 from 600 on
        (2, 1, 300, 300),  # node 2, so that node 3 is left
        (3, 1, 3600, 3600),
    ]
    assert starts(jobs, 4) == [0, 600, 2, 3]


@pytest.mark.parametrize(("walltime", "start"), [(598, 2), (599, 1200)])
def test_a_job_starts_where_it_ends_before_the_top_job_starts(walltime, start):
    assert starts([*HOLE[:2], (2, 1, 60, walltime)], 2) == [0, 600, start]


OUTLIVED = [(0, 1, 3000, 3600), (1, 2, 600, 600), (300, 1, 310, 310)]
AS_PREDICTED = [600, 600, 310]


def test_the_scheduler_plans_with_soft_walltimes_and_prolongs_them_by_their_length():
    # At 700 the first is expected to end at 1200: the third would end before.
    found = starts(OUTLIVED, 2, estimates=AS_PREDICTED, scheduler_iteration=100)
    assert found == [0, 3000, 700]
    # At 900 it would end after 1200, at 1500 after 1800, and so on.
    assert starts(OUTLIVED, 2, estimates=AS_PREDICTED) == [0, 3000, 3600]


def test_a_soft_walltime_is_not_below_the_floor():
    jobs = [(0, 1, 50, 600), (1, 2, 60, 600), (2, 1, 30, 55)]
    assert starts(jobs, 2, estimates=[10, 600, 55]) == [0, 50, 2]
    found = starts(jobs, 2, estimates=[10, 600, 55], soft_walltime_floor=10)
    assert found == [0, 50, 110]


def test_a_job_past_its_walltime_is_expected_to_end_at_once():
    jobs = [(0, 1, 600, 300), (1, 2, 60, 60), (400, 1, 150, 150)]
    rules = PbsRules()
    found = starts_of(jobs, 2, policy="pbs", pbs=rules, overrun="keep")
    assert found == [0, 600, 660]


THREE = [(0, 2, 100, 100), (1, 2, 60, 900), (2, 2, 60, 300), (3, 2, 60, 600)]


def test_the_queue_is_in_the_order_of_the_formula():
    assert starts(THREE, 2, job_sort_formula="-walltime") == [0, 220, 100, 160]
    assert starts(THREE, 2, job_sort_formula="ncpus") == [0, 100, 160, 220]
    # Of two jobs the one wins that has waited for the larger part of its walltime.
    jobs = [(0, 2, 100, 100), (10, 2, 60, 900), (90, 2, 60, 60)]
    for formula, expected in (
        ("(eligible_time / walltime) ** 3 * ncpus", [0, 160, 100]),
        ("min(eligible_time, 50) + max(0, 1 - 1)", [0, 100, 160]),
    ):
        assert starts(jobs, 2, job_sort_formula=formula) == expected


def test_a_formula_that_cannot_be_computed_is_zero():
    assert starts(THREE, 2, job_sort_formula="1 / (ncpus - 2)") == [0, 100, 160, 220]
    assert starts(THREE, 2, job_sort_formula="sqrt(-walltime) + log(0)") == [0, 100, 160, 220]


@pytest.mark.parametrize(
    "formula", ["__import__('os')", "walltime if ncpus else 0", "a.b", "1 +", "min()", "'a'"]
)
def test_a_formula_that_the_twin_cannot_read_is_refused(formula):
    with pytest.raises(FormulaError, match="cannot read job_sort_formula"):
        PbsRules(job_sort_formula=formula)


def test_the_shortest_estimate_or_walltime_is_first():
    estimates = [100, 700, 300, 200]
    assert starts(THREE, 2, order="sjf", estimates=estimates) == [0, 220, 160, 100]
    # 4 x 700 s and 4 x 300 s are more than the second that they were submitted later.
    assert starts(THREE, 2, order="sjf-aging", estimates=estimates) == [0, 220, 160, 100]


def queues(*names, nodes=2, cpus=1, exclusive=True, **of_queue):
    """A cluster whose queues share all nodes, each with a priority."""
    partitions = tuple(
        SlurmPartition(name=name, ranges=((0, nodes),), exclusive=exclusive, tier=priority)
        for name, priority in names
    )
    return {
        "cluster": SlurmCluster(groups=((nodes, cpus, 1),), partitions=partitions),
        "queues": tuple(PbsQueue(name=name, **of_queue.get(f"q{name}", {})) for name, _ in names),
    }


def in_queue(number, *jobs):
    return [(*job, 1, 1, number) for job in jobs]


def test_queues_are_served_by_priority_and_then_as_they_are_listed():
    jobs = [*in_queue(1, (0, 2, 600, 600), (1, 2, 60, 60)), *in_queue(2, (2, 2, 60, 60))]
    assert starts(jobs, 2, **queues(("1", 0), ("2", 0))) == [0, 600, 660]
    assert starts(jobs, 2, **queues(("1", 0), ("2", 9))) == [0, 660, 600]
    assert starts(jobs, 2, **queues(("1", 0), ("2", 9)), by_queue=False) == [0, 600, 660]


def test_a_queue_has_top_jobs_of_its_own():
    jobs = [
        *in_queue(1, (0, 1, 600, 600), (1, 2, 600, 600)),
        *in_queue(2, (2, 1, 3600, 3600)),
    ]
    assert starts(jobs, 2, **queues(("1", 0), ("2", 0))) == [0, 600, 1200]
    # No job of the first queue is planned: it waits for what the second leaves.
    alone = queues(("1", 0), ("2", 0), q1={"backfill_depth": 0})
    assert starts(jobs, 2, **alone) == [0, 3602, 2]


def test_the_limit_of_a_user_is_that_of_the_server_or_of_a_queue():
    jobs = [(0, 1, 600, 600, 1), (1, 1, 600, 600, 1), (2, 1, 600, 600, 2)]
    one = PbsLimit(entity="u", resource="jobs", most=1)
    assert starts(jobs, 2) == [0, 1, 600]
    assert starts(jobs, 2, limits=(one,)) == [0, 600, 2]
    of_queue = queues(("1", 0), q1={"limits": (one,)})
    assert starts([(*job, 1, 1) for job in jobs], 2, **of_queue) == [0, 600, 2]


def test_a_job_that_a_limit_holds_is_a_top_job_and_is_planned_at_the_end_of_the_other():
    one = PbsLimit(entity="u", resource="jobs", most=1)
    jobs = [
        (0, 1, 600, 600, 1),
        (1, 2, 600, 600, 1),  # may not start before 600, and is planned on both nodes
        (2, 1, 900, 900, 2),
    ]
    assert starts(jobs, 2, limits=(one,)) == [0, 600, 1200]


def test_limits_count_processors_groups_and_everybody():
    jobs = [(0, 2, 600, 600, 1, 1), (1, 2, 600, 600, 2, 1), (2, 1, 600, 600, 3, 2)]
    assert starts(jobs, 5) == [0, 1, 2]
    for entity, expected in (("u", [0, 1, 2]), ("g", [0, 600, 2]), ("o", [0, 600, 2])):
        most = PbsLimit(entity=entity, resource="ncpus", most=3)
        assert starts(jobs, 5, limits=(most,)) == expected, entity


def test_a_backfilled_job_keeps_the_limit_free_for_the_top_job():
    one = PbsLimit(entity="u", resource="jobs", most=1)
    jobs = [
        (0, 2, 600, 600, 2),
        (1, 2, 600, 600, 1),  # is planned from 600 on
        (2, 1, 900, 900, 1),  # would still run then, on the third node
        (3, 1, 900, 900, 3),
    ]
    assert starts(jobs, 3, limits=(one,)) == [0, 600, 1200, 3]
    assert starts(jobs, 3) == [0, 600, 2, 902]


def test_jobs_share_the_cpus_of_nodes_in_their_order():
    site = queues(("1", 0), cpus=4, exclusive=False)
    jobs = in_queue(1, (0, 3, 600, 600), (1, 3, 600, 600), (2, 2, 600, 600), (3, 1, 600, 600))
    # The third wants two CPUs of one node: it is planned at 600, and the fourth fits beside.
    assert starts(jobs, 8, **site) == [0, 1, 600, 3]


def test_a_job_that_no_node_holds_takes_cpus_of_several():
    site = queues(("1", 0), cpus=4, exclusive=False)
    jobs = in_queue(1, (0, 3, 600, 600), (1, 5, 600, 600), (2, 1, 600, 600))
    assert starts(jobs, 8, **site) == [0, 1, 600]


def test_cpus_beside_a_top_job_are_left_to_longer_jobs():
    site = queues(("1", 0), nodes=1, cpus=4, exclusive=False)
    jobs = in_queue(
        1,
        (0, 3, 600, 600),
        (1, 3, 600, 600),  # is planned from 600 on
        (2, 1, 3600, 3600),  # takes the fourth CPU
        (3, 1, 300, 300),  # has none
    )
    assert starts(jobs, 4, **site) == [0, 600, 2, 1200]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scheduler_iteration": 0}, "scheduler_iteration must be between 1"),
        ({"backfill_depth": 100_000}, "backfill_depth must be between 0"),
        ({"queues": (PbsQueue(name="q", backfill_depth=-1),)}, "backfill_depth of q"),
        ({"limits": (PbsLimit(entity="u", resource="jobs", most=0),)}, "max_run"),
    ],
)
def test_impossible_rules_are_refused(given, message):
    with pytest.raises(PbsRulesError, match=message):
        PbsRules(**given)


@pytest.mark.parametrize("given", [{"order": "wfp"}, {"events": "sequential"}])
def test_what_pbs_does_not_have_is_refused(given):
    with pytest.raises(SemanticsError, match="pbs"):
        starts_of(HOLE, 2, policy="pbs", **given)
