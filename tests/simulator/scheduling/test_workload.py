import io

import numpy as np
import pytest
from workloads import log_of, workload_of

from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import WorkloadError, first_jobs, prepare
from simulator.traces.shake import Spread, shaken
from simulator.traces.swf import read_swf


def test_what_no_scheduler_can_run_is_left_out_and_counted():
    log = log_of(
        [
            (0, 1, 10, 20),
            (1, 1, 0, 20),  # no run time
            (2, 1, -1, 20),  # never ran
            (3, 1, 10, -1),  # no request
            (4, 1, 10, 400 * 86400),  # an unlimited one
            (5, -1, 10, 20),  # no processors
            (6, 9, 10, 20),  # larger than the machine
            (7, 1, 30, 20),  # beyond its request
        ],
        8,
    )
    workload = prepare(log)
    assert workload.trace.job.tolist() == [1, 8]
    assert {rule: jobs for rule, jobs in workload.counts.items() if jobs} == {
        "zero-run": 1,
        "never-ran": 1,
        "no-request": 1,
        "unlimited-request": 1,
        "no-processors": 1,
        "too-wide": 1,
        "beyond-request (kill)": 1,
    }


@pytest.mark.parametrize("size", [0, 2**30 + 1, 10**20])
def test_a_machine_of_no_or_of_endlessly_many_processors_is_refused(size):
    log = log_of([(0, 1, 10, 20)], 8)
    with pytest.raises(WorkloadError, match="MaxProcs"):
        prepare(log, processors=size)


def test_more_nodes_than_can_be_named_are_refused():
    log = log_of([(0, 1, 10, 20)], 2**30)
    with pytest.raises(WorkloadError, match="--cores-per-node"):
        simulate(prepare(log), Semantics(policy="fcfs-pinned"), Estimates.named("exact"))
    assert len(simulate(prepare(log), Semantics(), Estimates.named("exact")).start) == 1


def test_of_a_log_without_lines_nobody_asks_how_large_its_machine_was():
    assert len(prepare(first_jobs(read_swf(io.BytesIO(b"")), 3))) == 0


def test_a_limit_counts_the_jobs_that_can_be_simulated():
    log = log_of([(0, 1, 10, 20), (1, 1, 0, 20), (2, 9, 10, 20), (3, 1, 10, 20), (4, 1, 9, 9)], 8)
    workload = prepare(first_jobs(log, 2))
    assert workload.trace.job.tolist() == [1, 4]
    assert workload.counts["zero-run"] == workload.counts["too-wide"] == 1
    assert len(prepare(first_jobs(log, 9))) == len(prepare(log)) == 3
    wider = first_jobs(log, 2, processors=9)
    assert prepare(wider, processors=9).trace.job.tolist() == [1, 3]


def test_a_job_takes_what_was_allocated_or_what_was_requested_if_only_that_is_known():
    lines = (
        b"; MaxProcs: 8\n1 0 -1 9 3 -1 -1 -1 9 -1 1 1 1 1 1 1 -1 -1\n"
        b"2 0 -1 9 -1 -1 -1 5 9 -1 1 1 1 1 1 1 -1 -1\n"
    )
    assert prepare(read_swf(io.BytesIO(lines))).processors.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("overrun", "runtime", "request_"), [("kill", 20, 20), ("keep", 30, 20), ("swap", 20, 30)]
)
def test_a_run_beyond_its_request_is_treated_as_chosen(overrun, runtime, request_):
    workload = workload_of([(0, 1, 30, 20)], 8, overrun=overrun)
    assert workload.runtime.tolist() == [runtime]
    assert workload.request.tolist() == [request_]
    assert workload.trace.run.tolist() == [runtime]


def test_jobs_are_sorted_by_submission_then_number_and_that_is_counted():
    workload = workload_of([(5, 1, 1, 1), (3, 2, 1, 1), (5, 3, 1, 1), (3, 4, 1, 1)], 8)
    assert workload.trace.job.tolist() == [2, 4, 1, 3]
    assert workload.counts["late-submission (sorted)"] == 2


def test_every_job_that_stands_after_a_later_submission_is_counted():
    workload = workload_of([(9, 1, 1, 1), (3, 2, 1, 1), (4, 3, 1, 1), (9, 4, 1, 1)], 8)
    assert workload.counts["late-submission (sorted)"] == 2


def test_the_user_may_say_how_large_the_machine_is():
    log = log_of([(0, 6, 1, 1), (0, 4, 1, 1)], 8)
    assert len(prepare(log, processors=5)) == 1
    with pytest.raises(WorkloadError, match="--processors"):
        prepare(read_swf(io.BytesIO(b"1 0 -1 1 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1")))
    with pytest.raises(WorkloadError, match="1 to 1,073,741,824 processors, not 0"):
        prepare(log, processors=0)
    with pytest.raises(WorkloadError, match="cores_per_node"):
        prepare(log, cores_per_node=9)
    with pytest.raises(WorkloadError, match="there are kill, keep, swap"):
        prepare(log, overrun="ignore")


def test_fractions_of_a_second_are_cut_from_submissions_and_rounded_up_in_durations():
    line = b"; MaxProcs: 4\n1 2.7 -1 0.3 1 -1 -1 1 9.5 -1 1 1 1 1 1 1 -1 -1"
    workload = prepare(read_swf(io.BytesIO(line)))
    assert (workload.submit[0], workload.runtime[0], workload.request[0]) == (2, 1, 10)


def test_submissions_before_second_zero_are_data():
    workload = workload_of([(-7, 1, 1, 1), (-2, 1, 1, 1)], 8)
    assert workload.origin == -7
    assert workload.submit.tolist() == [0, 5]


def test_whole_nodes_are_counted():
    workload = workload_of([(0, 5, 1, 1), (0, 1, 1, 1)], 13, cores_per_node=4)
    assert workload.processors_of_machine == 3
    assert workload.processors.tolist() == [2, 1]


def test_a_log_without_jobs_is_a_workload_without_jobs():
    assert len(workload_of([], 4)) == 0


def test_shaking_moves_every_submission_a_little_and_repeatably():
    log = log_of([(1000 + 10 * number, 1, 1, 1) for number in range(500)], 8)
    first, again, other = (shaken(log, 60, seed).submit for seed in (1, 1, 2))
    moves = first - log.submit
    assert (first == again).all()
    assert (first != other).any()
    assert (moves.min(), moves.max()) == (-60, 60)
    assert abs(moves.mean()) < 10
    assert shaken(log_of([(5, 1, 1, 1)] * 50, 8), 60, 0).submit.min() == 0


def test_ranges_that_meet_are_noise():
    one, other = Spread.of([1.0, 2.0, 3.0]), Spread.of([2.5, 4.0])
    assert (one.mean, one.least, one.greatest) == (2.0, 1.0, 3.0)
    assert one.overlaps(other)
    assert other.overlaps(one)
    assert not one.overlaps(Spread.of([3.5]))
    assert np.isclose(other.mean, 3.25)


def test_what_ends_at_its_request_or_comes_in_the_same_second_is_in_order():
    workload = workload_of([(5, 1, 20, 20), (5, 1, 1, 2)], 1)
    assert workload.counts["beyond-request (kill)"] == 0
    assert workload.counts["late-submission (sorted)"] == 0
    assert workload.origin == 0
    assert workload.submit.tolist() == [5, 5]


def test_a_machine_may_be_one_node_or_one_processor():
    log = log_of([(0, 1, 1, 1)], 8)
    assert prepare(log, cores_per_node=8).processors_of_machine == 1
    assert prepare(log, processors=1).processors_of_machine == 1
    with pytest.raises(WorkloadError, match="cores_per_node must be between 1 and 8, not 0"):
        prepare(log, cores_per_node=0)


def test_a_limit_that_no_log_reaches_leaves_it_whole():
    log = log_of([(0, 1, 10, 20), (3, 1, 10, 20), (4, 1, 0, 9)], 8)
    assert prepare(first_jobs(log, 2)).counts["zero-run"] == 1
    assert prepare(first_jobs(log, 1)).counts["zero-run"] == 0
    assert len(first_jobs(log, None)) == 3
