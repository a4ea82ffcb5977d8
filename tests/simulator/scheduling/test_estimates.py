"""What a simulated scheduler is told of its jobs."""

import numpy as np
import pytest
from workloads import Given, starts_of, workload_of

from predictors.base import USUAL
from simulator.replay.method_spec import MethodSpec
from simulator.replay.predictions_file import PredictionsFileError
from simulator.replay.trace_replay import InProcess
from simulator.scheduling.estimates import Estimates, predictions_of
from simulator.scheduling.forecast import QUANTILE_GRID, quantile_at
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.traces.completions import completions

JOBS = [(0, 1, 10, 20), (1, 1, 10, 30), (2, 1, 10, 40)]


def test_predictions_are_cut_to_seconds_and_to_the_request_which_stands_where_there_is_none():
    estimates = Estimates("file:x", predictions={1: 5.7, 2: 99.0})
    told = estimates.beforehand(workload_of(JOBS, 4))
    assert told.tolist() == [5, 30, 40]


def test_a_file_of_several_methods_is_asked_for_one_and_a_file_of_one_needs_no_name(tmp_path):
    heads, one = "job_id\tmethod\tpredicted\n", "7\tknn\t60\n"
    (tmp_path / "one.tsv").write_text(heads + one)
    (tmp_path / "two.tsv").write_text(heads + one + "7\tlast-two\t90\n")
    assert predictions_of(f"{tmp_path}/one.tsv") == {7: 60.0}
    assert predictions_of(f"{tmp_path}/two.tsv#last-two") == {7: 90.0}


def test_a_quote_that_is_never_closed_is_refused_with_its_line(tmp_path):
    file = tmp_path / "torn.csv"
    file.write_text('job_id,method,predicted\n7,knn,60\n"8' + ",knn,60\n" * 20_000)
    with pytest.raises(PredictionsFileError, match="line 3: no prediction"):
        predictions_of(str(file))


def test_what_is_known_of_jobs_beforehand_is_at_most_their_requests():
    told = Estimates("k", known=Given([25, 25, 25]).beforehand).beforehand(workload_of(JOBS, 4))
    assert told.tolist() == [20, 25, 25]


def test_exact_estimates_are_the_runtimes():
    told = Estimates.named("exact").beforehand(workload_of(JOBS, 4))
    assert told.tolist() == [10, 10, 10]


def test_a_ladder_has_twenty_levels_that_stand_for_a_twentieth_each():
    assert len(QUANTILE_GRID) == 20
    assert (QUANTILE_GRID[0], QUANTILE_GRID[-1]) == (pytest.approx(0.025), pytest.approx(0.975))
    runtimes = [float(step) for step in range(20)]
    places = (0.0, 0.0499, 0.0501, 0.9501, 0.9999)
    assert [quantile_at(runtimes, place) for place in places] == [0.0, 0.0, 1.0, 19.0, 19.0]


class OneByOne(InProcess):
    """Is asked job by job."""


@pytest.mark.parametrize("kind", [InProcess, OneByOne])
def test_a_log_that_begins_before_second_zero_is_estimated_as_any_other(kind):
    rows = [(40 * number, 1, 30 + number, 100) for number in range(6)]
    schedules = []
    for shift in (0, -5000):
        workload = workload_of([(submit + shift, *rest) for submit, *rest in rows], 1)
        named = Estimates.named("last-two").player
        estimates = Estimates("last-two", kind({"last-two": named.predictors["last-two"]}))
        schedules.append(simulate(workload, Semantics(), estimates))
    assert schedules[0].estimate.tolist() == schedules[1].estimate.tolist()
    assert (schedules[0].estimate[2:] < 100).all()
    assert schedules[0].start.tolist() == schedules[1].start.tolist()
    assert 0 <= schedules[0].seconds < 1000


def test_starts_do_not_depend_on_when_second_zero_is():
    shifted = [(submit - 77, *rest) for submit, *rest in JOBS]
    assert np.diff(starts_of(shifted, 1)).tolist() == np.diff(starts_of(JOBS, 1)).tolist()


@pytest.mark.parametrize(
    ("policy", "order", "field"),
    [
        ("slurm", "fcfs", "upper"),
        ("pbs", "response-ratio", "upper"),
        ("slurm", "sjf", "planned"),
        ("easy", "fcfs", "planned"),
    ],
)
def test_a_twin_plans_with_upper_ends_of_intervals_and_a_papers_policy_with_predictions(
    policy, order, field
):
    rows = [(9000 * number, 1, 300 + 97 * (number % 23), 8000) for number in range(400)]
    semantics = Semantics(policy=policy, order=order)
    estimates = Estimates.named("attention")
    schedule = simulate(workload_of(rows, 1), semantics, estimates)
    predictor = MethodSpec.parse("attention").predictor()
    wanted = []
    for run in completions(workload_of(rows, 1).trace):
        answer = predictor.ask(run.submission, USUAL)
        upper = answer.interval.upper if answer.interval else answer.predicted_walltime
        found = {"upper": max(upper, answer.predicted_walltime)}
        wanted.append(int(found.get(field, answer.predicted_walltime)))
        predictor.observe(run)
    assert schedule.estimate.tolist() == wanted
    assert len(set(wanted)) > 10
