"""Documents of jobcomp/elasticsearch: each trap of the real ones by name."""

import json
from pathlib import Path

import pytest

from predictors.jobs import Status
from service.adapters.jobcomp import completion_of
from service.adapters.runs import Reason, SkippedError
from service.adapters.slurm_fields import status_of

DATA = Path(__file__).parents[2] / "data" / "slurm" / "jobcomp.jsonl"
CASES = {
    case["case"]: case["document"] for case in map(json.loads, DATA.read_text("utf-8").splitlines())
}


def report(case, **kwargs):
    return completion_of(json.dumps(CASES[case]).encode(), **kwargs)


def run(case):
    return report(case).completion


def reason(case):
    with pytest.raises(SkippedError) as skipped:
        report(case)
    return skipped.value.reason


def test_a_document_becomes_the_run_it_reports():
    completion = run("ordinary")
    submission = completion.submission
    assert (submission.cluster, submission.job_id, submission.user) == ("hill", "901", "carol")
    assert (submission.group, submission.project, submission.queue) == ("chem", "zeolite", "batch")
    assert submission.application == "relax"
    assert submission.requested_walltime == 3600
    assert submission.requested_processors == 8
    assert submission.requested_memory == 16000 * 1024 / 8
    assert (completion.runtime, completion.status) == (600, Status.COMPLETED)


def test_times_without_a_zone_are_utc():
    completion = run("ordinary")
    assert completion.submission.submit_time == 1927857600
    assert completion.start_time == 1927857906
    assert completion.end_time == 1927858506


def test_without_accounting_the_cluster_is_the_default_or_the_one_of_the_url():
    assert run("no accounting").submission.cluster == "default"
    assert report("no accounting", cluster="hill").completion.submission.cluster == "hill"
    assert report("ordinary", cluster="dale").completion.submission.cluster == "dale"


def test_a_job_without_a_limit_is_skipped():
    assert reason("unlimited") is Reason.NO_LIMIT


def test_a_job_cancelled_before_its_start_is_skipped():
    assert reason("cancelled before start") is Reason.NEVER_RAN


def test_a_requeued_job_is_two_runs_under_one_id():
    first, second = run("requeued, first run"), run("requeued, second run")
    assert first.submission.job_id == second.submission.job_id
    assert first.start_time != second.start_time
    assert (first.status, first.runtime) == (Status.PREEMPTED, 40)
    assert second.status is Status.COMPLETED


def test_a_timeout_may_have_run_longer_than_its_limit():
    completion = run("over its limit")
    assert completion.status is Status.TIMEOUT
    assert completion.runtime > completion.submission.requested_walltime
    assert completion.usage == 1.0


def test_every_array_task_has_its_own_job_id():
    assert run("array task").submission.job_id == "907"
    assert run("last array task").submission.job_id == "900"


def test_a_component_of_a_het_job_is_a_run_of_its_own():
    assert run("het component").submission.job_id == "908"


def test_names_keep_their_separators_and_letters():
    assert run("separators in the name").submission.application == 'a|b, "c" ünï_ğ'


def test_of_several_partitions_the_first_is_the_queue():
    assert run("list of partitions").submission.queue == "batch"


def test_processors_are_the_ones_asked_for_not_the_whole_node():
    assert run("whole node for half the cores").submission.requested_processors == 8


def test_without_a_list_of_what_was_asked_for_all_processors_count():
    document = {**CASES["ordinary"], "tres_req": None, "total_cpus": 12}
    submission = completion_of(json.dumps(document).encode()).completion.submission
    assert (submission.requested_processors, submission.requested_memory) == (12, None)


def test_the_admin_comment_names_the_prediction():
    assert report("26.05 with nulls and comment").prediction_id == "0b7c-42"
    assert report("ordinary").prediction_id is None


@pytest.mark.parametrize("case", CASES)
def test_the_job_script_goes_nowhere(case):
    try:
        told = repr(report(case))
    except SkippedError as skipped:
        told = repr(skipped)
    assert "SECRET" not in told


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"[" * 5000])
def test_what_is_no_document_is_skipped(body):
    with pytest.raises(SkippedError) as skipped:
        completion_of(body)
    assert skipped.value.reason is Reason.MALFORMED


def test_the_run_of_a_job_with_any_bytes_for_a_name_counts():
    body = json.dumps(CASES["ordinary"] | {"job_name": "BYTES"}).encode()
    submission = completion_of(body.replace(b"BYTES", b"\xff\xfe")).completion.submission
    assert submission.application == "\ufffd\ufffd", "Slurm would send it again for ever"


@pytest.mark.parametrize("state", [" ", [" "], ["", "\t"]])
def test_a_state_without_a_word_is_unknown(state):
    document = CASES["ordinary"] | {"state": state}
    assert completion_of(json.dumps(document).encode()).completion.status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("@start", "Unknown", Reason.UNKNOWN_START),
        ("@end", None, Reason.UNKNOWN_END),
        ("@end", "2031-02-03T04:15", Reason.UNKNOWN_END),
        ("@submit", "2031-13-03T04:00:00", Reason.UNKNOWN_SUBMIT),
        ("@end", "2031-02-03T04:00:00", Reason.ENDS_BEFORE_START),
        ("jobid", None, Reason.NO_JOB_ID),
        ("time_limit", 4294967295, Reason.NO_LIMIT),
        ("time_limit", 0, Reason.NO_LIMIT),
        ("time_limit", -60, Reason.NO_LIMIT),
        ("state", "RUNNING", Reason.NOT_ENDED),
        ("state", "RESIZING", Reason.NOT_ENDED),
        ("total_nodes", "many", Reason.NEVER_RAN),
    ],
)
def test_a_document_that_tells_of_no_run_says_why(field, value, expected):
    document = {**CASES["ordinary"], field: value}
    with pytest.raises(SkippedError) as skipped:
        completion_of(json.dumps(document).encode())
    assert skipped.value.reason is expected


def test_of_a_list_of_states_words_count_and_nothing_else():
    assert status_of(["", 5, None, "FAILED"]) is Status.FAILED
    assert status_of("CANCELLED by 2002") is Status.CANCELLED
    assert status_of([]) is Status.UNKNOWN


def test_an_unheard_of_state_is_unknown():
    document = {**CASES["ordinary"], "state": "TELEPORTED"}
    assert completion_of(json.dumps(document).encode()).completion.status is Status.UNKNOWN


@pytest.mark.parametrize("elapsed", [0, 1, 599, 600])
def test_an_elapsed_time_between_none_and_all_of_the_span_is_the_runtime(elapsed):
    document = {**CASES["ordinary"], "elapsed": elapsed}
    assert completion_of(json.dumps(document).encode()).completion.runtime == elapsed


def test_an_elapsed_time_that_cannot_be_true_gives_way_to_end_minus_start():
    document = {**CASES["ordinary"], "elapsed": 86400}
    assert completion_of(json.dumps(document).encode()).completion.runtime == 600


def test_a_clock_that_jumped_back_makes_no_negative_wait():
    document = {**CASES["ordinary"], "@submit": "2031-02-03T04:09:00"}
    completion = completion_of(json.dumps(document).encode()).completion
    assert completion.submission.submit_time == completion.start_time


def test_hostile_names_are_made_harmless():
    document = {**CASES["ordinary"], "job_name": "a\x00b\nc\x1b[31m" + "x" * 1000}
    name = completion_of(json.dumps(document).encode()).completion.submission.application
    assert name.startswith("a?b?c?[31mxxx")
    assert len(name) == 255
