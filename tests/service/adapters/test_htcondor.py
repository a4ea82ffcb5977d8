"""HTCondor's own history, captured from a personal pool of 23.9.6; that job has no limit."""

import json
from datetime import UTC
from pathlib import Path

import pytest

from predictors.jobs import Status
from service.adapters.htcondor import completion_of, read_history
from service.adapters.runs import Reason, SkippedError
from service.cli.formats import FORMATS, format_of

CAPTURED = Path(__file__).parents[2] / "data" / "htcondor" / "condor_history_23.9.json"
(JOB,) = json.loads(CAPTURED.read_bytes())
LIMITED = JOB | {"AllowedExecuteDuration": 600}


def read(**changes):
    return completion_of(json.dumps(LIMITED | changes).encode()).completion


def refusal(**changes):
    with pytest.raises(SkippedError) as refused:
        read(**changes)
    return refused.value.reason


def test_a_captured_job_has_no_limit_and_is_left_out():
    ((place, outcome),) = read_history(CAPTURED.read_bytes())
    assert (place, outcome.reason) == (1, Reason.NO_LIMIT)


def test_a_captured_job_with_a_limit_becomes_a_run():
    run = read()
    asked = run.submission
    assert (asked.job_id, asked.user) == ("alice@submit1#1.1#1795236572", "alice")
    assert (asked.application, asked.queue) == ("sleep", None)
    assert (asked.requested_walltime, asked.requested_processors) == (600, 1)
    assert asked.requested_memory == 100 * 1024
    assert (asked.submit_time, run.start_time) == (1795236572, 1795236577)
    assert (run.end_time, run.runtime, run.status) == (1795236579, 2, Status.COMPLETED)


def test_limits_are_taken_in_the_order_of_who_enforces_them():
    every = {"AllowedExecuteDuration": 1, "AllowedJobDuration": 2, "MaxRuntime": 3}
    taken = []
    for name in every:
        taken.append(read(**every).submission.requested_walltime)
        every[name] = None
    assert taken == [1, 2, 3]


def test_only_the_last_run_of_a_restarted_job_is_told():
    run = read(RemoteWallClockTime=5000.0, NumJobStarts=3)
    assert run.runtime == 2


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (45, Status.CANCELLED),
        (46, Status.TIMEOUT),
        (47, Status.TIMEOUT),
        (48, Status.CANCELLED),
    ],
)
def test_two_codes_of_a_hold_say_that_a_job_went_over_its_limit(code, status):
    assert read(JobStatus=3, LastHoldReasonCode=code).status is status


def test_a_job_that_went_over_its_limit_ended_when_it_was_held():
    run = read(
        JobStatus=3,
        CompletionDate=0,
        EnteredCurrentStatus=1795999999,
        LastRemoteWallClockTime=600.0,
        LastHoldReasonCode=47,
    )
    assert (run.status, run.runtime) == (Status.TIMEOUT, 600)
    assert run.end_time == run.start_time + 600


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"ExitCode": 3}, Status.FAILED),
        ({"ExitBySignal": True, "ExitCode": None}, Status.FAILED),
        ({"JobStatus": 3}, Status.CANCELLED),
    ],
)
def test_ends_are_told_apart(changes, status):
    assert read(**changes).status is status


def test_what_is_no_ended_run_is_left_out():
    assert refusal(JobStatus=2) is Reason.NOT_ENDED
    assert refusal(JobStatus=3, JobCurrentStartDate=None) is Reason.NEVER_RAN
    assert refusal(CompletionDate=0) is Reason.UNKNOWN_END
    assert refusal(GlobalJobId=None) is Reason.NO_JOB_ID


def test_expressions_that_were_never_evaluated_are_unknown():
    run = read(RequestCpus="/Expr(ceiling(Cores))/", RequestMemory="/Expr(2 * Base)/")
    assert run.submission.requested_processors is None
    assert run.submission.requested_memory is None


@pytest.mark.parametrize("body", [b"", b"{}", b"[7]", b"[" * 10000])
def test_what_is_no_history_is_damage(body):
    try:
        reasons = [outcome.reason for _, outcome in read_history(body)]
    except SkippedError as refused:
        reasons = [refused.reason]
    assert reasons == [Reason.MALFORMED]


@pytest.mark.parametrize("name", ["maxruntime", "MaxRunTime", "MAXRUNTIME"])
def test_an_attribute_may_be_written_in_any_case(name):
    ad = json.dumps(JOB | {name: 3600}).encode()
    assert completion_of(ad).completion.submission.requested_walltime == 3600


def test_each_line_may_be_a_job(tmp_path):
    history = tmp_path / "history.jsonl"
    history.write_text(f"{json.dumps(LIMITED)}\n{json.dumps(JOB)}\n{json.dumps(JOB)[:99]}\n")
    found = FORMATS[format_of(str(history), None)](str(history), None, UTC)
    assert (found.count, found.left_out) == (1, {Reason.NO_LIMIT.value: 1})
    assert [reject.line for reject in found.rejected] == [3]


def test_the_import_sees_what_it_is_and_says_what_it_left_out(tmp_path):
    history = tmp_path / "history.json"
    history.write_text(json.dumps([LIMITED, JOB]))
    name = format_of(str(history), None)
    found = FORMATS[name](str(history), "pool", UTC)
    assert (name, found.count) == ("htcondor", 1)
    assert found.left_out == {Reason.NO_LIMIT.value: 1}
    assert [run.submission.cluster for run in found.completions] == ["pool"]
