"""Each formula of the paper, worked by hand for one run.

Alone the job takes 100 s and half a CPU; after 40 s it has used 10 of its 50 CPU seconds, and
shares its fullest node with two others that bring the CPUs wanted there to 1.25.
"""

import pytest

from simulator.shared_nodes import pace
from simulator.shared_nodes.cluster import Contention, RunningJob, SharedJob
from simulator.shared_nodes.pace import ESTIMATORS


def predicted(runtime, request=None):
    """The job, with a predicted runtime and perhaps a request."""
    return SharedJob(
        job_id="a",
        tasks=2,
        execution_time=100.0,
        cpu_share=0.5,
        predicted_runtime=runtime,
        requested_walltime=request,
    )


@pytest.fixture
def job():
    return predicted(None)


@pytest.fixture
def run(job):
    return RunningJob(
        job=job, nodes=(0, 1), elapsed=40.0, cpu_time=10.0, contention=Contention(3, 1.25)
    )


def test_proportional_goes_on_as_it_was(run):
    assert pace.proportional(run) == 160.0  # Eq 1: 40 * (50 - 10) / 10


def test_proportional_without_a_past_takes_as_long_as_alone(job):
    assert pace.proportional(RunningJob(job=job, nodes=(0, 1))) == 100.0


def test_alone_the_rest_takes_as_long_as_its_cpu_time_wants(run):
    assert pace.isolated(run) == 80.0  # Eq 2: 100 * (50 - 10) / 50


def test_mpl_multiplies_by_the_tasks_on_the_fullest_node(run):
    assert pace.mpl(run) == 240.0  # Eq 4: 80 * 3


def test_where_too_much_is_wanted_all_get_the_same_part_of_it(run):
    assert pace.feasible_cpu(run) == 0.4  # Eq 6: 0.5 / 1.25


def test_where_less_than_a_cpu_is_wanted_a_task_gets_what_it_wants(run):
    run.contention = Contention(3, 0.8)
    assert pace.feasible_cpu(run) == 0.5
    assert pace.cpu(run) == 80.0


def test_cpu_multiplies_by_wanted_over_feasible(run):
    assert pace.cpu(run) == pytest.approx(100.0)  # Eq 5: 80 * 0.5 / 0.4


def test_hybrid_takes_the_prediction_less_what_has_passed(run, job):
    run.job = predicted(190.0)
    assert pace.hybrid(run) == 150.0
    run.job = job
    assert pace.hybrid(run) == pace.cpu(run)


@pytest.mark.parametrize(("request_", "left"), [(None, 0.0), (35.0, 0.0), (100.0, 20.0)])
def test_an_outlived_prediction_is_doubled_up_to_the_request(run, request_, left):
    run.job = predicted(30.0, request_)
    assert pace.hybrid(run) == left


@pytest.mark.parametrize("name", pace.REMAINING_TIMES)
def test_a_run_that_used_more_than_it_is_known_for_ends_now(run, name):
    run.cpu_time = 51.0
    run.job = predicted(30.0, 40.0)
    assert pace.REMAINING_TIMES[name](run) == 0.0


def test_by_mpl_its_share_is_divided_among_the_tasks(run):
    assert pace.cpu_time_by_mpl(run, 12.0) == 2.0  # Eq 8: 12 * 50 / (3 * 100)


def test_by_cpu_it_uses_the_feasible_fraction(run):
    assert pace.cpu_time_by_cpu(run, 12.0) == pytest.approx(4.8)  # Eq 9: 12 * 0.4


def test_every_combination_has_a_name():
    assert set(ESTIMATORS) == {
        f"{remaining}-{used}"
        for remaining in ("proportional", "mpl", "cpu", "hybrid")
        for used in ("mpl", "cpu")
    }
    assert ESTIMATORS["mpl-cpu"] == (pace.mpl, pace.cpu_time_by_cpu)
