"""Schedules beside advance reservations, worked out on paper.

A job is (submission, nodes, run time, limit) and perhaps user, account and partition. Cycles are as
in ``test_rules.py``. A reservation is for the seconds from 600 to 1200.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_workloads import JOBS, NODES, rules
from workloads import Given, log_of

from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmPartition, SlurmReservation
from simulator.scheduling.workload import WorkloadError, prepare

ZERO = 1_000_000
"""Unix seconds of second 0."""

DAY = 86400


def reserved(first, last, *, begin=600, end=1200, **flags):
    return SlurmReservation(
        name="r", ranges=((first, last + 1),), begin=ZERO + begin, end=ZERO + end, **flags
    )


def site(*reservations, nodes=2, cpus=1, partitions=None, **given):
    """Rules of a cluster of equal nodes, which jobs take whole where they have one CPU."""
    partitions = partitions or {"1": (0, nodes)}
    found = [
        SlurmPartition(name=name, ranges=(range_,), exclusive=cpus == 1)
        for name, range_ in partitions.items()
    ]
    cluster = SlurmCluster(
        groups=((nodes, cpus, 1),), partitions=tuple(found), reservations=reservations
    )
    return rules(cluster=cluster, **given)


def schedule(jobs, rules_, *, start=ZERO, estimates=None):
    log = log_of(jobs, rules_.cluster.cpus)
    log = replace(log, header={**log.header, "UnixStartTime": str(start)})
    return simulate(prepare(log), Semantics(policy="slurm", slurm=rules_), Given(estimates))


def starts(jobs, rules_, **given):
    return schedule(jobs, rules_, **given).start.tolist()


def test_a_job_that_would_run_into_a_reservation_takes_other_nodes_or_waits():
    jobs = [
        (0, 1, 600, 600),  # on node 0
        (1, 1, 900, 900),  # would run into the reservation of node 1
        (2, 1, 300, 300),  # ends before
    ]
    assert starts(jobs, site()) == [0, 3, 600]
    assert starts(jobs, site(reserved(1, 1))) == [0, 600, 30]


def test_a_job_that_a_reservation_keeps_from_starting_blocks_nobody_while_other_nodes_are_idle():
    jobs = [
        (0, 2, 900, 900),  # one node is left for so long
        (1, 1, 300, 900),  # takes it in the main scheduler's next look
        (2, 1, 600, 1500),  # and this one when it is idle again, as the first blocks nobody
    ]
    assert starts(jobs, site(reserved(1, 1))) == [1200, 3, 303]


def test_a_job_that_waits_for_others_beside_a_reservation_blocks_its_partition():
    jobs = [
        (0, 1, 300, 300),  # on node 0
        (1, 2, 900, 900),  # node 0 is taken, too
        (2, 1, 300, 300),  # starts in a cycle of the backfill scheduler
    ]
    assert starts(jobs, site(reserved(1, 1))) == [0, 1200, 30]


def test_maintenance_of_all_nodes_of_a_partition_lets_those_start_that_end_before():
    jobs = [(0, 1, 900, 900), (1, 1, 300, 300), (2, 1, 600, 600)]
    assert starts(jobs, site(reserved(0, 1, maintenance=True))) == [1200, 3, 1200]
    assert starts(jobs, site(reserved(0, 1))) == [1200, 3, 1200]


def test_a_reservation_of_a_partition_closes_it_and_no_other():
    apart = {"1": (0, 2), "2": (1, 4)}
    jobs = [(0, 1, 900, 900, 1, 1, 1), (1, 2, 900, 900, 1, 1, 2)]
    flags = {"nodes": 4, "partitions": apart}
    assert starts(jobs, site(reserved(0, 0, partition="1"), **flags)) == [1200, 3]
    assert starts(jobs, site(reserved(0, 0, all_nodes=True), **flags)) == [1200, 1200]
    assert starts(jobs, site(reserved(0, 0), **flags)) == [0, 3]


def test_a_plan_after_a_reservation_keeps_its_nodes():
    jobs = [
        (0, 1, 3000, 3000),  # on node 0
        (1, 2, 900, 900),  # is planned on nodes 1 and 2 from 1200 on
        (2, 1, 600, 1260),  # would end later on node 1
        (3, 1, 600, 1140),  # ends before
    ]
    assert starts(jobs, site(reserved(2, 2), nodes=3)) == [0, 1200, 2100, 30]


def test_a_daily_reservation_comes_again_and_has_come_before():
    daily = reserved(0, 1, begin=600 - 10 * DAY, end=1200 - 10 * DAY, period=DAY)
    jobs = [(time, 1, 300, 300) for time in (0, 500, DAY + 500, 2 * DAY + 200)]
    assert starts(jobs, site(daily)) == [0, 1200, DAY + 1200, 2 * DAY + 200]
    once = replace(daily, period=0)
    assert starts(jobs, site(once)) == [0, 500, DAY + 500, 2 * DAY + 200]


def test_a_job_that_daily_reservations_leave_no_time_for_is_refused():
    daily = reserved(0, 1, begin=0, end=3600, period=DAY)
    assert starts([(7200, 2, 300, 22 * 3600)], site(daily)) == [7200]
    with pytest.raises(WorkloadError, match=r"2 processors and 24 h never starts"):
        starts([(7200, 2, 300, DAY)], site(daily))


def test_a_job_with_a_soft_limit_may_run_into_a_reservation():
    jobs = [(0, 1, 800, 900)]
    whole = site(reserved(0, 1))
    assert starts(jobs, whole) == [1200]
    # The backfill scheduler tries it with its TimeMin of five minutes.
    assert starts(jobs, whole, estimates=[300]) == [30]


def test_reservations_of_shared_nodes_are_of_whole_nodes():
    jobs = [
        (0, 2, 900, 900),  # on the CPUs of node 0, in each case
        (1, 2, 900, 900),
        (2, 1, 300, 300),
    ]
    assert starts(jobs, site(cpus=2)) == [0, 3, 900]
    assert starts(jobs, site(reserved(1, 1), cpus=2)) == [0, 900, 30]


def test_reservations_do_nothing_where_the_log_has_no_dates():
    played = schedule([(500, 1, 300, 300)], site(reserved(0, 1)), start=0)
    assert played.start.tolist() == [500]
    assert "reservations, as the log has no dates" in played.card()["Not modelled"]
    dated = schedule([(500, 1, 300, 300)], site(reserved(0, 1)))
    assert dated.card()["Not modelled"] == "nothing of the configuration"
    assert "reservations r" in dated.card()["Cluster"]


RESERVATIONS = st.lists(
    st.builds(
        lambda nodes, begin, length, flags: reserved(
            *sorted(nodes), begin=begin, end=begin + length, **flags
        ),
        st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)),
        st.integers(-100, 8000),
        st.integers(1, 4000),
        st.sampled_from([{}, {"maintenance": True}, {"all_nodes": True}, {"partition": "1"}]),
    ),
    max_size=4,
)


@given(jobs=JOBS, reservations=RESERVATIONS, shared=st.booleans(), soft=st.booleans())
def test_cycles_may_be_skipped_beside_reservations(jobs, reservations, shared, soft):
    common = {
        "nodes": NODES, "partitions": {"1": (0, NODES), "2": (3, NODES)},
        "bf_window": 3600, "epilog": 1,
    }  # fmt: skip
    jobs = [(*job[:2], *job[2:4], 1, 1, 1 + job[4] % 2) for job in jobs]
    jobs = [(job[0], min(job[1], NODES - 3), *job[2:]) for job in jobs]
    estimates = [max(60, job[3] // 3) for job in jobs] if soft else None
    found = []
    for skips in (True, False):
        rules_ = site(*reservations, **common, skips_cycles=skips)
        if shared:
            cluster = replace(rules_.cluster, groups=((NODES - 1, 1, 1), (1, 2, 1)))
            rules_ = replace(rules_, cluster=cluster)
        found.append(starts(jobs, rules_, estimates=estimates))
    assert found[0] == found[1]


@given(jobs=JOBS, reservations=RESERVATIONS)
def test_no_job_runs_during_a_reservation_of_all_nodes(jobs, reservations):
    whole = [replace(each, ranges=((0, NODES),), all_nodes=True) for each in reservations]
    played = schedule(jobs, site(*whole, nodes=NODES))
    zero = ZERO + played.workload.origin
    for each in whole:
        during = (played.start < each.end - zero) & (
            played.start + played.workload.request > each.begin - zero
        )
        assert not during.any()
