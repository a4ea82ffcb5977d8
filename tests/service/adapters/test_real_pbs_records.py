"""The accounting log of a real OpenPBS, record by record."""

from pathlib import Path

import pytest

from predictors.jobs import Status
from service.adapters.pbs import read_accounting
from service.adapters.runs import Reason, SkippedError

CAPTURED = Path(__file__).parents[2] / "data" / "pbs" / "openpbs-23.06.06" / "accounting.txt"
LINES = CAPTURED.read_text().splitlines(keepends=True)
OUTCOMES = [outcome for _, outcome in read_accounting(LINES, cluster="hill")]


def kind(line):
    return line.split(";")[1]


def job(line):
    return line.split(";")[2]


def told(line, name):
    return line.partition(f" {name}=")[2].split()[0]


def seconds(clock):
    hours, minutes, rest = map(int, clock.split(":"))
    return hours * 3600 + minutes * 60 + rest


PAIRS = list(zip(LINES, OUTCOMES, strict=True))
ENDS = [pair for pair in PAIRS if kind(pair[0]) in "ER" and "[]" not in job(pair[0])]


def test_the_capture_holds_records_of_every_kind():
    assert {kind(line) for line in LINES} == {"Q", "S", "E", "a", "R", "D"}
    assert len(ENDS) == 15


@pytest.mark.parametrize(("line", "run"), ENDS, ids=[f"{kind(x)} {job(x)}" for x, _ in ENDS])
def test_each_end_is_the_run_that_pbs_tells_of(line, run):
    completion, submission = run.completion, run.completion.submission
    assert submission.job_id == job(line)
    assert (submission.user, submission.group, submission.queue) == ("alice", "alice", "workq")
    assert submission.application == told(line, "jobname")
    assert submission.requested_processors == int(told(line, "Resource_List.ncpus"))
    assert submission.submit_time == int(told(line, "ctime"))
    assert completion.start_time == int(told(line, "start"))
    assert completion.end_time == int(told(line, "end"))
    assert submission.requested_walltime == seconds(told(line, "Resource_List.walltime"))
    assert completion.runtime == seconds(told(line, "resources_used.walltime"))
    assert 0 <= completion.end_time - completion.start_time - completion.runtime <= 2
    mark = "Resource_List.walltimed_prediction"
    assert run.prediction_id == (told(line, mark) if mark in line else None)
    assert run.replaced_id is None, "that release did not note it down"


@pytest.mark.parametrize(
    ("application", "statuses"),
    [
        ("dead", [Status.COMPLETED]),
        ("relax", [Status.COMPLETED] * 2),
        ("again", [Status.COMPLETED]),
        ("arr", [Status.COMPLETED] * 3),
        ("limit", [Status.TIMEOUT]),
        ("fail", [Status.FAILED]),
        ("rerun", [Status.COMPLETED]),
        ("qdel", [Status.COMPLETED]),
        ("stf", [Status.COMPLETED]),
        ("torerun", [Status.PREEMPTED, Status.COMPLETED]),
        ("todel", [Status.CANCELLED]),
    ],
)
def test_each_job_ended_as_it_did(application, statuses):
    runs = [run.completion for line, run in ENDS if told(line, "jobname") == application]
    assert [run.status for run in runs] == statuses


def test_a_run_beyond_its_limit_is_longer_than_the_limit():
    (run,) = [run.completion for line, run in ENDS if told(line, "jobname") == "limit"]
    assert (run.submission.requested_walltime, run.runtime) == (10, 26)


def test_the_requeued_job_is_two_runs_that_do_not_overlap():
    first, second = [run.completion for line, run in ENDS if told(line, "jobname") == "torerun"]
    assert first.submission.job_id == second.submission.job_id
    assert (first.runtime, second.runtime) == (4, 12)
    assert first.end_time <= second.start_time


def test_project_account_and_memory_are_read():
    (run,) = [run.completion for line, run in ENDS if told(line, "jobname") == "rerun"]
    assert run.submission.project == "proj1"
    assert run.submission.requested_memory == 200 * 1024


@pytest.mark.parametrize("letter", ["Q", "S", "D", "a"])
def test_records_that_end_no_run_are_of_another_kind_not_damage(letter):
    reasons = {outcome.reason for line, outcome in PAIRS if kind(line) == letter}
    assert reasons == {Reason.OTHER_RECORD}


def test_the_array_as_a_whole_is_no_run():
    (outcome,) = [outcome for line, outcome in PAIRS if kind(line) == "E" and "[]" in job(line)]
    assert isinstance(outcome, SkippedError)
    assert outcome.reason is Reason.ARRAY
