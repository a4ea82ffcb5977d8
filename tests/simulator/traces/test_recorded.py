"""Recorded runs as a trace, and back."""

import tracemalloc

import numpy as np
import pytest
from synth import SyntheticLog, synthesise

from predictors.jobs import Completion, Status, Submission
from simulator.traces.completions import (
    LoggedRuns,
    RunColumns,
    completions,
    submitted_at,
    trace_of,
)
from simulator.traces.trace import SWF_FIELDS


def test_the_runs_of_a_trace_make_the_same_trace_again():
    trace = synthesise(SyntheticLog(jobs=200, seed=4))
    recorded = trace_of(list(completions(trace)))
    again, users = recorded.trace, recorded.users
    named = {"user", "group", "executable", "queue"}
    waits = {"wait"}  # unknown in the first, none in the second
    for name in set(SWF_FIELDS) - named - waits - {"submit"}:
        assert (getattr(again, name) == getattr(trace, name)).all(), name
    assert (again.submit + again.unix_start == trace.submit + trace.unix_start).all()
    assert (again.wait == 0).all()
    names = np.array([users[number] for number in again.user.tolist()])
    assert (names == trace.user.astype(str)).all()


def test_runs_are_sorted_and_numbered_and_what_is_not_known_is_minus_one():
    def run(user, submit, status):
        submission = Submission(requested_walltime=60, submit_time=submit, user=user)
        return Completion(
            submission=submission, start_time=150, end_time=160, runtime=10, status=status
        )

    runs = [run("b", None, Status.UNKNOWN), run(None, 100, Status.TIMEOUT)]
    recorded = trace_of(runs)
    trace, users = recorded.trace, recorded.users
    assert trace.job.tolist() == [1, 2]
    assert trace.submit.tolist() == [0, 50]
    assert trace.wait.tolist() == [50, 0]
    assert trace.user.tolist() == [-1, 1]
    assert users == {1: "b"}
    assert trace.status.tolist() == [0, -1]
    assert trace.processors.tolist() == [-1, -1]
    assert trace.unix_start == 100
    assert trace.max_processors is None


def test_no_runs_are_an_empty_trace():
    recorded = trace_of([])
    trace, users = recorded.trace, recorded.users
    assert (len(trace), users) == (0, {})


@pytest.mark.parametrize(
    ("eligible_time", "submit"), [(None, 100), (90, 100), (140, 140), (170, 150)]
)
def test_a_job_with_a_begin_time_is_submitted_then_at_the_latest_at_its_start(
    eligible_time, submit
):
    submission = Submission(requested_walltime=60, submit_time=100)
    run = Completion(submission=submission, start_time=150, end_time=160, runtime=10)
    assert submitted_at(run, eligible_time).submission.submit_time == submit


def test_names_are_numbered_in_the_order_of_submissions_whatever_the_order_of_records():
    def run(user, submit):
        submission = Submission(requested_walltime=60, submit_time=submit, user=user)
        return Completion(submission=submission, start_time=900, end_time=910, runtime=10)

    records = [run("c", 300), run("a", 100), run(None, 50), run("b", 200), run("a", 400)]
    recorded = trace_of(records)
    assert recorded.trace.user.tolist() == [-1, 1, 2, 3, 1]
    assert recorded.users == {1: "a", 2: "b", 3: "c"}


def test_recorded_runs_take_a_tenth_of_their_memory():
    runs = list(completions(synthesise(SyntheticLog(jobs=5000, seed=4))))
    tracemalloc.start()
    columns = RunColumns()
    for each in runs:
        columns.append(each)
    held, _ = tracemalloc.get_traced_memory()
    columns.recorded()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 150 * len(runs)
    assert peak < 400 * len(runs)


def test_runs_of_a_log_are_read_at_any_place_in_little_memory(monkeypatch):
    monkeypatch.setattr("simulator.traces.completions.SMALL_BLOCK", 7)
    monkeypatch.setattr("simulator.traces.completions.KEPT_BLOCKS", 2)
    trace = synthesise(SyntheticLog(jobs=40, seed=4))
    expected = list(completions(trace, cluster="hill"))
    runs = LoggedRuns(trace, "hill")
    places = [39, 0, 20, -1, 6, 7, 33, 0]
    assert [runs[place] for place in places] == [expected[place] for place in places]
    assert (list(runs), len(runs), list(runs[3:30])) == (expected, 40, expected[3:30])
    with pytest.raises(IndexError):
        runs[40]
