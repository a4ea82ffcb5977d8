"""Documents of jobcomp/elasticsearch: each trap of the real ones by name."""

import json
from operator import attrgetter
from pathlib import Path

import pytest

from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError
from service.adapters.slurm_fields import status_of
from service.adapters.slurm_json import jobcomp_completion, jobcomp_start

DATA = Path(__file__).parents[2] / "data" / "slurm" / "jobcomp.jsonl"
CASES = {
    case["case"]: case["document"] for case in map(json.loads, DATA.read_text("utf-8").splitlines())
}


def report(case, **kwargs):
    return jobcomp_completion(json.dumps(CASES[case]).encode(), **kwargs)


def run(case):
    return report(case).completion


def changed(**fields):
    """An ordinary document, some of its fields changed."""
    return json.dumps({**CASES["ordinary"], **fields}).encode()


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


@pytest.mark.parametrize(
    ("case", "fact", "expected"),
    [
        ("ordinary", "completion.submission.submit_time", 1927857600),  # UTC without saying so
        ("ordinary", "completion.start_time", 1927857906),
        ("ordinary", "completion.end_time", 1927858506),
        ("ordinary", "prediction_id", None),
        ("26.05 with nulls and comment", "prediction_id", "0b7c-42"),
        ("array task", "completion.submission.job_id", "907"),
        ("last array task", "completion.submission.job_id", "900"),
        ("het component", "completion.submission.job_id", "908"),
        ("separators in the name", "completion.submission.application", 'a|b, "c" ünï_ğ'),
        ("list of partitions", "completion.submission.queue", "batch"),
        ("whole node for half the cores", "completion.submission.requested_processors", 64),
    ],
)
def test_each_trap_of_a_document_is_read_as_it_is_meant(case, fact, expected):
    assert attrgetter(fact)(report(case)) == expected


@pytest.mark.parametrize(
    ("fields", "fact", "expected"),
    [
        ({"tres_req": None, "total_cpus": 12}, "submission.requested_processors", 12),
        ({"tres_req": None, "total_cpus": 12}, "submission.requested_memory", None),
        ({"state": " "}, "status", Status.UNKNOWN),
        ({"state": [" "]}, "status", Status.UNKNOWN),
        ({"state": ["", "\t"]}, "status", Status.UNKNOWN),
        *(({"elapsed": seconds}, "runtime", seconds) for seconds in (60, 599, 600)),
        *(({"elapsed": seconds}, "runtime", 600) for seconds in (0, 1)),  # no suspension
        ({"elapsed": 86400}, "runtime", 600),  # more than from start to end
        ({"@submit": "2031-02-03T04:09:00"}, "submission.submit_time", 1927857906),  # its start
    ],
)
def test_a_field_that_is_odd_is_read_with_the_others(fields, fact, expected):
    assert attrgetter(fact)(jobcomp_completion(changed(**fields)).completion) == expected


@pytest.mark.parametrize(
    ("case", "reason"),
    [("unlimited", Reason.NO_LIMIT), ("cancelled before start", Reason.NEVER_RAN)],
)
def test_a_job_that_was_no_run_is_skipped(case, reason):
    with pytest.raises(SkippedError) as skipped:
        report(case)
    assert skipped.value.reason is reason


def test_without_accounting_the_cluster_is_the_default_or_the_one_of_the_url():
    assert run("no accounting").submission.cluster == "default"
    assert report("no accounting", cluster="hill").completion.submission.cluster == "hill"
    assert report("ordinary", cluster="dale").completion.submission.cluster == "dale"


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
        jobcomp_completion(body)
    assert skipped.value.reason is Reason.MALFORMED


def test_the_run_of_a_job_with_any_bytes_for_a_name_counts():
    submission = jobcomp_completion(
        changed(job_name="BYTES").replace(b"BYTES", b"\xff\xfe")
    ).completion.submission
    assert submission.application == "\ufffd\ufffd", "Slurm would send it again for ever"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("@start", "Unknown", Reason.UNKNOWN_START),
        ("@end", None, Reason.UNKNOWN_END),
        ("@end", "2031-02-03T04:15", Reason.NO_TIME),
        ("@submit", "2031-13-03T04:00:00", Reason.NO_TIME),
        ("@end", "2031-02-03T04:00:00", Reason.ENDS_BEFORE_START),
        ("jobid", None, Reason.NO_JOB_ID),
        ("time_limit", 4294967295, Reason.NO_LIMIT),
        ("time_limit", 0, Reason.NO_LIMIT),
        ("time_limit", -60, Reason.NO_LIMIT),
        ("state", "RUNNING", Reason.NOT_ENDED),
        ("state", "RESIZING", Reason.NOT_ENDED),
        ("total_nodes", "many", Reason.NEVER_RAN),
        ("state", "TELEPORTED", Reason.UNKNOWN_STATE),
        ("state", ["TELEPORTED", "BEAMED"], Reason.UNKNOWN_STATE),
    ],
)
def test_a_document_that_tells_of_no_run_says_why(field, value, expected):
    with pytest.raises(SkippedError) as skipped:
        jobcomp_completion(changed(**{field: value}))
    assert skipped.value.reason is expected


def test_of_a_list_of_states_words_count_and_nothing_else():
    assert status_of(["", 5, None, "FAILED"]) is Status.FAILED
    assert status_of("CANCELLED by 2002") is Status.CANCELLED
    assert status_of([]) is Status.UNKNOWN
    assert status_of(["TELEPORTED", "COMPLETED"]) is Status.COMPLETED


def test_hostile_names_are_made_harmless():
    body = changed(job_name="a\x00b\nc\x1b[31m" + "x" * 1000)
    name = jobcomp_completion(body).completion.submission.application
    assert name.startswith("a?b?c?[31mxxx")
    assert len(name) == 255


def test_a_document_about_a_job_that_runs_tells_its_start():
    found = jobcomp_start(changed(state="RUNNING", **{"@end": "Unknown"}))
    assert (found.submission, found.start_time) == (
        run("ordinary").submission,
        run("ordinary").start_time,
    )
    assert jobcomp_start(changed()) is None
    assert jobcomp_start(b"{") is None
    assert jobcomp_start(changed(state="RUNNING", **{"@start": "Unknown"})) is None
