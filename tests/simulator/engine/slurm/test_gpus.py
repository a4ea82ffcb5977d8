"""Schedules with GPUs as a count, worked out on paper.

A job is (submission, CPUs, run time, limit, nodes, GPUs on each of them). Cycles are as in
``test_rules.py``.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_workloads import rules
from workloads import Given, log_of

from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmPartition
from simulator.scheduling.workload import WorkloadError, prepare


def site(*nodes, exclusive=False, **given):
    """Rules of a cluster whose nodes are (CPUs, GPUs)."""
    partition = SlurmPartition(name="1", ranges=((0, len(nodes)),), exclusive=exclusive)
    cluster = SlurmCluster(
        groups=tuple((1, cpus, 1) for cpus, _ in nodes),
        gpus=tuple(gpus for _, gpus in nodes),
        partitions=(partition,),
    )
    return rules(cluster=cluster, **given)


def schedule(jobs, rules_):
    log = log_of([job[:4] for job in jobs], rules_.cluster.cpus)
    columns = np.array([job[4:] for job in jobs]).T
    log = replace(log, nodes=columns[0], gpus=columns[1])
    return simulate(prepare(log), Semantics(policy="slurm", slurm=rules_), Given(None))


def starts(jobs, rules_):
    return schedule(jobs, rules_).start.tolist()


def test_a_node_with_too_few_free_gpus_takes_no_job_that_wants_them():
    jobs = [
        (0, 2, 600, 600, 1, 1),
        (1, 2, 600, 600, 1, 1),
        (2, 2, 600, 600, 1, 1),  # four CPUs are free, but no GPU
        (3, 2, 300, 300, 1, 0),  # needs none, and ends before the third is planned to start
    ]
    assert starts(jobs, site((8, 2))) == [0, 3, 600, 30]
    assert starts(jobs, site((8, 3))) == [0, 3, 3, 3]


def test_a_job_takes_the_node_that_has_gpus_though_another_fits_it_better():
    jobs = [
        (0, 2, 600, 600, 1, 1),  # on node 1
        (1, 4, 600, 600, 1, 0),  # on node 1, too
        (2, 2, 600, 600, 1, 1),  # node 1 has no GPU left
    ]
    assert starts(jobs, site((2, 0), (8, 1))) == [0, 3, 600]


def test_a_job_on_several_nodes_has_equal_gpus_on_each():
    jobs = [
        (0, 4, 600, 600, 2, 2),  # two CPUs and two GPUs on each of nodes 0 and 2
        (1, 3, 600, 600, 1, 0),  # on node 1, which alone has three CPUs
        (2, 1, 300, 300, 1, 1),
    ]
    assert starts(jobs, site((4, 2), (4, 0), (4, 2))) == [0, 3, 600]
    # Four GPUs on one node are not two on each of two.
    with pytest.raises(WorkloadError, match=r"Job 1 has 2 nodes with 2 CPUs and 2 GPUs .* 1 such"):
        starts(jobs, site((4, 4), (4, 0), (4, 1)))


def test_a_job_with_fewer_cpus_than_nodes_has_a_cpu_on_each():
    jobs = [(0, 1, 600, 600, 2, 1), (1, 1, 600, 600, 1, 1), (2, 1, 600, 600, 1, 0)]
    assert starts(jobs, site((1, 1), (1, 1))) == [0, 3, 600]  # it counts as on one node
    jobs = [(0, 3, 600, 600, 2, 1), (1, 1, 600, 600, 1, 0), (2, 1, 600, 600, 1, 0)]
    assert starts(jobs, site((2, 1), (2, 1))) == [0, 3, 600]  # two CPUs and one


def test_whole_nodes_are_taken_with_all_their_gpus():
    jobs = [(0, 2, 600, 600, 1, 1), (1, 2, 600, 600, 1, 1)]
    assert starts(jobs, site((8, 4))) == [0, 3]
    assert starts(jobs, site((8, 4), exclusive=True)) == [0, 600]


def test_a_plan_waits_for_the_end_that_frees_a_gpu():
    jobs = [
        (0, 1, 300, 300, 1, 0),  # holds no GPU
        (1, 1, 900, 900, 1, 2),
        (2, 1, 60, 60, 1, 1),  # is planned for 903, not for 300
        (3, 1, 800, 840, 1, 0),  # ends before
        (4, 1, 900, 900, 1, 0),  # would not, from the cycle at 30 on
    ]
    assert starts(jobs, site((8, 2))) == [0, 3, 903, 30, 903]


def test_gpus_of_a_cluster_do_nothing_where_the_log_says_nothing_of_gpus():
    log = log_of([(0, 2, 600, 600), (1, 2, 600, 600)], 8)
    semantics = Semantics(policy="slurm", slurm=site((8, 1)))
    played = simulate(prepare(log), semantics, Given(None))
    assert played.start.tolist() == [0, 3]
    assert "the log does not say which jobs had" in played.card()["Not modelled"]
    known = schedule([(0, 2, 600, 600, 1, 1)], site((8, 1)))
    assert known.card()["Not modelled"] == "nothing of the configuration"


NODES = ((4, 2), (4, 0), (6, 4), (6, 4), (8, 1))

JOBS = st.lists(
    st.tuples(
        st.integers(0, 2000),
        st.integers(1, 6),
        st.integers(1, 900),
        st.integers(1, 20).map(lambda minutes: 60 * minutes),
        st.integers(1, 2),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=30,
).map(sorted)


@given(jobs=JOBS, epilog=st.sampled_from([0, 40]))
def test_no_more_gpus_are_held_than_there_are_and_cycles_may_be_skipped(jobs, epilog):
    # Four GPUs are on two nodes, of which a job of two nodes has at least a half each.
    played = schedule(jobs, site(*NODES, epilog=epilog))
    other = schedule(jobs, site(*NODES, epilog=epilog, skips_cycles=False))
    assert played.start.tolist() == other.start.tolist()
    trace = played.workload.trace
    nodes = np.minimum(trace.nodes, played.workload.processors)
    for held, most in ((trace.gpus * nodes, 11), (np.where(trace.gpus > 2, nodes, 0), 2)):
        times = np.concatenate([played.end, played.start])
        changes = np.concatenate([-held, held])
        assert np.cumsum(changes[np.lexsort((changes, times))]).max() <= most
