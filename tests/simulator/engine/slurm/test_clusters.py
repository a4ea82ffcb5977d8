"""Schedules on clusters of several partitions, of shared nodes, and under priorities and limits.

A job is (submission, CPUs, run time, limit, user, account, partition). Cycles are as in
``test_rules.py``.
"""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_workloads import JOBS, NODES, rules
from workloads import schedule_of, starts_of

from simulator.scheduling.semantics import Semantics, SemanticsError
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmPartition


def schedule(jobs, site):
    size = site.cluster.cpus if site.cluster else 2
    return schedule_of(jobs, size, policy="slurm", slurm=site)


def starts(jobs, site):
    return schedule(jobs, site).start.tolist()


def in_queue(number, *jobs):
    """Jobs of one user in one partition."""
    return [(*job, 1, 1, number) for job in jobs]


def cluster(*partitions, nodes=4, cpus=1):
    found = [
        SlurmPartition(name=name, ranges=(nodes_,), exclusive=True, tier=tier, job_factor=tier)
        for name, nodes_, tier in partitions
    ]
    return SlurmCluster(groups=((nodes, cpus, 1),), partitions=tuple(found))


def test_a_blocked_partition_blocks_no_partition_on_other_nodes():
    apart = cluster(("1", (0, 2), 1), ("2", (2, 4), 1))
    shared = cluster(("1", (0, 3), 1), ("2", (2, 4), 1))
    jobs = [
        *in_queue(1, (0, 2, 600, 600), (1, 2, 60, 60)),
        *in_queue(2, (2, 2, 900, 900)),
    ]
    assert starts(jobs, rules(cluster=apart)) == [0, 600, 3]
    # Node 2 is in both partitions: the first job of the queue has precedence. In the cycle at 30
    # it is planned on nodes 0 and 1, so that nodes 2 and 3 are left.
    assert starts(jobs, rules(cluster=shared)) == [0, 600, 30]


def test_the_partition_of_the_higher_tier_is_served_first():
    jobs = [*in_queue(1, (0, 4, 600, 600), (1, 4, 60, 60)), *in_queue(2, (2, 4, 60, 60))]
    same = cluster(("1", (0, 4), 1), ("2", (0, 4), 1))
    higher = cluster(("1", (0, 4), 1), ("2", (0, 4), 2))
    assert starts(jobs, rules(cluster=same)) == [0, 600, 660]
    assert starts(jobs, rules(cluster=higher)) == [0, 660, 600]


def test_jobs_of_an_unknown_partition_are_in_the_default_one():
    both = cluster(("1", (0, 2), 1), ("2", (2, 4), 1))
    jobs = [*in_queue(7, (0, 2, 60, 60)), *in_queue(1, (1, 2, 60, 60))]
    assert starts(jobs, rules(cluster=both)) == [0, 60]


def shared_nodes(*groups):
    nodes = sum(group[0] for group in groups)
    partition = SlurmPartition(name="1", ranges=((0, nodes),))
    return SlurmCluster(groups=groups, partitions=(partition,))


def test_jobs_share_the_cpus_of_a_node():
    site = rules(cluster=shared_nodes((2, 4, 1)))
    jobs = in_queue(1, (0, 3, 600, 600), (1, 3, 600, 600), (2, 2, 600, 600), (3, 1, 600, 600))
    # The third takes the CPUs that are left on two nodes; then none is free.
    assert starts(jobs, site) == [0, 3, 3, 600]


def test_a_job_takes_the_node_with_the_fewest_cpus_that_are_enough():
    site = rules(cluster=shared_nodes((1, 8, 1), (1, 4, 1)))
    jobs = in_queue(1, (0, 4, 600, 600), (1, 8, 600, 600))
    assert starts(jobs, site) == [0, 3]  # on the small node, so that the large one is left whole


def test_nodes_of_lower_weight_are_taken_first():
    jobs = [*in_queue(1, (0, 3, 600, 600)), *in_queue(2, (1, 4, 600, 600))]
    partitions = (
        SlurmPartition(name="1", ranges=((0, 2),)),
        SlurmPartition(name="2", ranges=((1, 2),)),  # the small node alone
    )
    for weight, start in ((1, 600), (5, 3)):
        groups = ((1, 8, 1), (1, 4, weight))
        site = rules(cluster=SlurmCluster(groups=groups, partitions=partitions))
        assert starts(jobs, site) == [0, start]


def test_a_reservation_holds_whole_nodes_though_jobs_share_them():
    site = rules(cluster=shared_nodes((2, 2, 1)))
    jobs = in_queue(
        1,
        (0, 3, 600, 600),  # leaves one CPU
        (1, 2, 600, 600),  # is planned on node 0 from 600 on
        (2, 1, 900, 900),  # fits on the free CPU of node 1, which nobody is planned on
        (3, 1, 900, 900),
    )
    assert starts(jobs, site)[:3] == [0, 600, 30]


MULTIFACTOR = {"priority_type": "priority/multifactor", "priority_calc_period": 300}


def test_a_long_wait_makes_up_for_a_small_job():
    jobs = [
        (0, 2, 600, 600, 1, 1, 1),
        (1, 1, 600, 600, 1, 1, 1),
        (2, 2, 600, 600, 1, 1, 1),
    ]
    size = {**MULTIFACTOR, "priority_weight_job_size": 1000}
    assert starts(jobs, rules(**size)) == [0, 1200, 600]
    assert starts(jobs, rules(**size, priority_favor_small=True)) == [0, 600, 1200]


def test_age_counts_until_its_maximum():
    jobs = [
        (0, 2, 1200, 1200, 1, 1, 1),
        (1, 1, 600, 600, 1, 1, 1),  # waits for 599 s at the computation at 600
        (590, 2, 600, 600, 1, 1, 1),  # waits for 10 s, and is larger by half of 500
    ]
    weights = {**MULTIFACTOR, "priority_weight_job_size": 500, "priority_weight_age": 1000}
    assert starts(jobs, rules(**weights, priority_max_age=600)) == [0, 1200, 1800]
    assert starts(jobs, rules(**weights, priority_max_age=60)) == [0, 1800, 1200]


def test_who_has_used_less_is_served_first():
    fair = {**MULTIFACTOR, "priority_weight_fair_share": 1000}
    jobs = [
        (0, 2, 900, 900, 1, 1, 1),
        (1, 2, 60, 60, 1, 1, 1),
        (2, 2, 60, 60, 2, 1, 1),
    ]
    assert starts(jobs, rules(**MULTIFACTOR)) == [0, 900, 960]
    assert starts(jobs, rules(**fair)) == [0, 960, 900]


def test_a_site_factor_counts_beside_the_other_factors():
    fair = rules(**MULTIFACTOR, priority_weight_fair_share=1000)
    jobs = [
        (0, 2, 900, 900, 1, 1, 1),
        (1, 2, 60, 60, 1, 1, 1),  # short, of a user who has used the cluster
        (2, 2, 7200, 7200, 2, 1, 1),  # stands back by a third of the largest factor
    ]
    order = {"order": "sjf-aging", "slurm": fair}
    by_length = partial(starts_of, jobs, 2, policy="slurm", **order)
    assert by_length(site_factor=1000) == [0, 8100, 900]
    assert by_length(site_factor=4000) == [0, 900, 960]
    assert by_length() == [0, 8100, 900], "nothing, where age has no weight"


def test_accounts_come_before_users():
    fair = {**MULTIFACTOR, "priority_weight_fair_share": 1000}
    jobs = [
        (0, 2, 900, 900, 1, 1, 1),  # account 1 has used the cluster
        (1, 2, 60, 60, 2, 1, 1),  # user 2 has not, but is in that account
        (2, 2, 60, 60, 3, 2, 1),
    ]
    assert starts(jobs, rules(**fair)) == [0, 960, 900]


def test_usage_decays():
    fair = {**MULTIFACTOR, "priority_weight_fair_share": 1000}
    jobs = [
        (0, 2, 600, 600, 1, 1, 1),  # long ago
        (90_000, 2, 300, 300, 2, 2, 1),
        (90_400, 2, 900, 900, 3, 3, 1),
        (90_401, 2, 60, 60, 2, 2, 1),
        (90_402, 2, 60, 60, 1, 1, 1),
    ]
    kept = starts(jobs, rules(**fair, priority_decay_half_life=0))
    decayed = starts(jobs, rules(**fair, priority_decay_half_life=3600))
    assert kept[3:] == [91_300, 91_360]
    assert decayed[3:] == [91_360, 91_300]


def test_limits_hold_jobs_of_users_and_accounts_back_and_nobody_else():
    jobs = [
        (0, 1, 600, 600, 1, 1, 1),
        (1, 1, 600, 600, 1, 1, 1),
        (2, 1, 600, 600, 2, 1, 1),
    ]
    assert starts(jobs, rules()) == [0, 3, 600]
    assert starts(jobs, rules(max_jobs_per_user=1)) == [0, 600, 3]
    assert starts(jobs, rules(max_cpus_per_user=1)) == [0, 600, 3]
    assert starts(jobs, rules(max_jobs_per_account=1)) == [0, 600, 1200]
    assert starts(jobs, rules(max_cpus_per_account=1)) == [0, 600, 1200]


def test_a_long_cycle_stops_at_a_change_unless_it_is_to_go_on():
    jobs = [
        (0, 1, 600, 600, 1, 1, 1),
        (1, 2, 600, 600, 1, 1, 1),
        (2, 2, 600, 600, 1, 1, 1),
        (3, 1, 300, 300, 1, 1, 1),
        (32, 2, 60, 60, 1, 1, 1),  # is submitted while the first cycle runs
    ]
    slow = {"test_time": 1.5}
    assert starts(jobs, rules(**slow))[3] > 30
    assert starts(jobs, rules(**slow, bf_continue=True))[3] == 30
    assert starts(jobs, rules(**slow, bf_continue=True, bf_max_time=3))[3] > 30


@given(jobs=JOBS, epilog=st.sampled_from([0, 40]))
def test_nodes_of_one_cpu_are_chosen_alike_by_both_ways_of_choosing(jobs, epilog):
    whole = SlurmPartition(name="all", ranges=((0, NODES),), exclusive=True)
    other = SlurmPartition(name="other", ranges=((0, NODES),))  # makes nodes looked at one by one
    queued = [(submit, size, run, limit, user, 1, 1) for submit, size, run, limit, user in jobs]

    def played(*partitions):
        site = SlurmCluster(groups=((NODES, 1, 1),), partitions=partitions)
        return starts(queued, rules(cluster=site, epilog=epilog))

    assert played(whole) == played(whole, other)


SHARED = SlurmCluster(
    groups=((2, 4, 1), (3, 8, 2), (1, 5, 1)),
    partitions=(
        SlurmPartition(name="1", ranges=((0, 6),)),
        SlurmPartition(name="2", ranges=((1, 4),), tier=2),
        SlurmPartition(name="3", ranges=((2, 6),), exclusive=True),
    ),
)

QUEUED = st.lists(
    st.tuples(
        st.integers(0, 2000),
        st.integers(1, 20),
        st.integers(1, 900),
        st.integers(1, 20).map(lambda minutes: 60 * minutes),
        st.integers(1, 3),
        st.integers(1, 2),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=30,
).map(sorted)


@given(jobs=QUEUED, fair=st.integers(0, 1000), most=st.sampled_from([0, 20]))
def test_cycles_may_be_skipped_on_any_cluster(jobs, fair, most):
    site = {
        **MULTIFACTOR,
        "priority_weight_age": 500,
        "priority_weight_fair_share": fair,
        "max_cpus_per_user": most,
        "cluster": SHARED,
    }
    skipping = starts(jobs, rules(**site))
    assert skipping == starts(jobs, rules(**site, skips_cycles=False))
    assert all(start >= job[0] for start, job in zip(skipping, jobs, strict=True))


def test_jobs_of_one_second_start_by_priority_not_by_submission():
    both = cluster(("1", (0, 4), 1), ("2", (0, 4), 10))
    site = rules(cluster=both, **MULTIFACTOR, priority_weight_partition=1000)
    jobs = [*in_queue(1, (5, 3, 600, 600)), *in_queue(2, (5, 3, 60, 60))]
    assert starts(jobs, site) == [65, 5]


ACCURATE, CARELESS, BLOCKER = 1, 2, 3


def by_accuracy(*waiting):
    """Two users with a run each, a job on the whole cluster until 1000, and jobs that wait."""
    known = [(0, 1, 60, 60, ACCURATE, 1, 1), (0, 1, 60, 6000, CARELESS, 1, 1)]
    jobs = [*known, (100, 2, 900, 900, BLOCKER, 1, 1), *waiting]
    return {
        order: starts_of(jobs, 2, policy="slurm", order=order, slurm=rules())[2:]
        for order in ("fcfs", "psp-aging")
    }


def test_site_factors_by_accuracy_put_users_who_ask_well_first():
    found = by_accuracy((101, 2, 600, 6000, CARELESS, 1, 1), (102, 2, 600, 6000, ACCURATE, 1, 1))
    assert found == {"fcfs": [100, 1000, 1600], "psp-aging": [100, 1600, 1000]}


def test_site_factors_by_accuracy_rise_while_a_short_job_waits():
    # After five steps of 150 s priority 1 of a request of 60 s is 17,482: step 70 of a hundred;
    # that of an accurate user, whose request is 6,000 s, is 55: step 29.
    found = by_accuracy((101, 2, 60, 60, CARELESS, 1, 1), (102, 2, 600, 6000, ACCURATE, 1, 1))
    assert found["psp-aging"] == [100, 1000, 1060]


def test_site_factors_by_accuracy_are_those_of_the_updater_and_stand_on_the_card():
    made = schedule_of([(0, 1, 60, 60)], 2, policy="slurm", order="psp-aging", slurm=rules())
    assert "as a SiteFactor of up to 10,000" in made.card()["Order"]
    with pytest.raises(SemanticsError, match="Under pbs the order is fcfs, sjf, sjf-aging"):
        Semantics(policy="pbs", order="psp-aging")
