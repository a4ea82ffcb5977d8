"""Accounting records of PBS and Torque: each trap by name."""

from datetime import timedelta, timezone
from operator import attrgetter
from pathlib import Path

import pytest

from predictors.jobs import Status
from service.adapters.pbs import completion_of, read_accounting, start_of
from service.adapters.runs import Reason, SkippedError

LINES = (Path(__file__).parents[2] / "data" / "pbs" / "accounting.txt").read_text().splitlines()


def records(kind, job):
    return [line for line in LINES if f";{kind};{job}.hill;" in line]


def report(job, kind="E", **kwargs):
    (line,) = records(kind, job)
    return completion_of(line, **kwargs)


def reason(line):
    with pytest.raises(SkippedError) as skipped:
        completion_of(line)
    return skipped.value.reason


def test_an_e_record_becomes_the_run_it_tells_of():
    found = report("901", cluster="hill")
    submission = found.completion.submission
    assert (submission.cluster, submission.job_id) == ("hill", "901.hill")
    assert (submission.user, submission.group, submission.queue) == ("carol", "chem", "batch")
    assert submission.application == "relax"
    assert submission.requested_processors == 8
    assert submission.requested_memory == 2 * 1024 * 1024
    assert submission.submit_time == 1927857600
    assert (found.completion.start_time, found.completion.end_time) == (1927857906, 1927858506)
    assert (found.completion.runtime, found.completion.status) == (600, Status.COMPLETED)
    assert found.prediction_id == "0b7c-42"


@pytest.mark.parametrize(
    ("job", "fact", "expected"),
    [
        ("901", "submission.requested_walltime", 3600),  # never the soft one
        ("901", "submission.project", "zeolite"),  # the account: no project was named
        ("902", "submission.project", "silica"),
        ("902", "submission.queue", "batch"),  # behind a quoted value with separators
        ("905[3]", "submission.job_id", "905[3].hill"),
        ("906", "status", Status.TIMEOUT),
        ("907", "status", Status.CANCELLED),
        ("908", "submission.requested_processors", 9),  # Torque counts cores in nodes
        ("908", "runtime", 600),  # and writes short times
    ],
)
def test_each_trap_of_a_record_is_read_as_it_is_meant(job, fact, expected):
    assert attrgetter(fact)(report(job).completion) == expected


@pytest.mark.parametrize(
    ("kind", "job", "expected"),
    [
        ("E", "903", Reason.NO_LIMIT),
        ("E", "905[]", Reason.ARRAY),
        ("E", "910", Reason.UNKNOWN_START),  # deleted before
        ("Q", "901", Reason.OTHER_RECORD),
        ("S", "901", Reason.OTHER_RECORD),
    ],
)
def test_a_record_that_tells_of_no_run_says_why(kind, job, expected):
    (line,) = records(kind, job)
    assert reason(line) is expected


def test_a_rerun_job_is_two_runs_and_the_first_ends_when_its_record_was_written():
    first, second = report("904", "R"), report("904")
    assert first.completion.status is Status.PREEMPTED
    assert first.completion.end_time == 1927858506
    assert second.completion.start_time == 1927858600
    west = timezone(timedelta(hours=-5))
    assert report("904", "R", zone=west).completion.end_time == 1927858506 + 5 * 3600


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("0", Status.COMPLETED),
        ("2", Status.FAILED),
        ("-25", Status.FAILED),
        ("-26", Status.OUT_OF_MEMORY),
        ("-27", Status.OUT_OF_MEMORY),
        ("-28", Status.FAILED),
        ("-29", Status.TIMEOUT),
        ("137", Status.CANCELLED),
        ("143", Status.CANCELLED),
        ("265", Status.CANCELLED),
        ("271", Status.CANCELLED),
        ("266", Status.FAILED),
        ("none", Status.UNKNOWN),
    ],
)
def test_each_exit_code_has_its_status(code, status):
    (line,) = records("E", "901")
    changed = line.replace("Exit_status=0", f"Exit_status={code}")
    assert completion_of(changed).completion.status is status


@pytest.mark.parametrize(
    ("mark", "ids"),
    [
        ("new-1", ("new-1", None)),
        ("new-1.old-1", ("new-1", "old-1")),
        ("new-1.old-1.older", (None, None)),
        ("x;wtp=1", (None, None)),
        ("a" * 65, (None, None)),
        ("a" * 64 + "." + "b" * 65, (None, None)),
        ("", (None, None)),
        ('"quoted text"', (None, None)),
    ],
)
def test_the_mark_of_the_hook_names_the_prediction_and_the_one_it_replaced(mark, ids):
    (line,) = records("E", "901")
    found = completion_of(line.replace("0b7c-42", mark))
    assert (found.prediction_id, found.replaced_id) == ids


def changed(old, new, job="901", kind="E"):
    """What is told by a record in which something else is written."""
    (line,) = records(kind, job)
    assert old in line
    return completion_of(line.replace(old, new)).completion


@pytest.mark.parametrize(
    ("written", "processors"),
    [
        ("ncpus=8 Resource_List.nodes=2:ppn=8", 16),
        ("nodes=2:ppn=4+1", 9),
        ("nodes=hosta:ppn=2+3", 5),
        ("nodes=0", 7),
        ("nodes=" + "9" * 30, 7),
        ("nodect=1", 7),
    ],
)
def test_cores_are_counted_or_read_from_the_nodes_then_from_the_slots(written, processors):
    told = changed("Resource_List.ncpus=8", f"Resource_List.{written} total_execution_slots=7")
    assert told.submission.requested_processors == processors


def test_a_job_without_a_time_of_creation_was_submitted_when_it_was_queued():
    (line,) = records("E", "901")
    without = line.replace("ctime=1927857600 qtime=1927857600", "qtime=1927857500")
    assert completion_of(without).completion.submission.submit_time == 1927857500
    both = changed("qtime=1927857600", "qtime=1927857500")
    assert both.submission.submit_time == 1927857600


def test_a_rerun_that_has_an_end_ended_then_whenever_its_record_was_written():
    assert changed("session=4711", "end=1927858000", job="904", kind="R").end_time == 1927858000


@pytest.mark.parametrize(
    ("used", "status"), [("01:00:00", Status.TIMEOUT), ("00:59:59", Status.CANCELLED)]
)
def test_a_job_that_was_killed_when_its_walltime_was_up_ran_into_its_limit(used, status):
    told = changed("resources_used.walltime=00:10:00", f"resources_used.walltime={used}", job="907")
    assert told.status is status


def test_a_record_of_512_kib_is_read_and_a_longer_one_is_not():
    (line,) = records("E", "901")
    longest = line.ljust(2**19)
    assert completion_of(longest).completion.runtime == 600
    assert reason(longest + " ") is Reason.TOO_LARGE


@pytest.mark.parametrize("line", ["x", "a;b", "02/03/2031 04:15:06;EE;1.hill;user=x", ";;;"])
def test_what_is_no_record_is_skipped(line):
    assert reason(line) is Reason.MALFORMED


def test_a_whole_file_is_read_with_line_numbers():
    found = list(read_accounting([*LINES, "", "garbage"]))
    assert [number for number, _ in found] == [*range(1, len(LINES) + 1), len(LINES) + 2]
    assert sum(not isinstance(outcome, SkippedError) for _, outcome in found) == 8


@pytest.mark.parametrize(
    ("says", "processors"),
    [
        ("Resource_List.ncpus=1 Resource_List.nodes=1:ppn=4:avx", 4),  # ncpus is a default
        ("Resource_List.ncpus=16 Resource_List.nodes=2", 16),
        ("Resource_List.nodes=1 Resource_List.procs=24", 24),
        ("Resource_List.nodes=2u-a:ppn=2+2u-b:ppn=2", 4),  # names, not two nodes
        ("Resource_List.neednodes=c1 exec_host=c1/5", 1),
        ("exec_host=c1/0+c1/1+c2/7", 3),
        ("exec_host=c1/0-3,8+c2/4-5", 7),
        ("exec_host=c1/0*8+c2/1*4", 12),
        ("exec_host=c1", 1),
        ("", None),
    ],
)
def test_the_processors_are_the_most_that_a_record_asks_for_or_else_those_given(says, processors):
    record = (
        "02/03/2031 04:15:06;E;1.hill;user=carol ctime=1927857600 start=1927857906 end=1927858506 "
        f"Resource_List.walltime=01:00:00 {says}"
    )
    assert completion_of(record).completion.submission.requested_processors == processors


def test_an_s_record_tells_the_start_of_its_job():
    ended = report("901").completion
    (line,) = records("E", "901")
    begun = line.replace(";E;", ";S;")
    found = start_of(begun)
    assert (found.submission, found.start_time) == (ended.submission, ended.start_time)
    assert start_of(begun, cluster="hill").submission.cluster == "hill"
    (short,) = records("S", "901")  # without a request
    for other in (line, short, "", ";S;", begun.replace("start=1927857906", "start=soon")):
        assert start_of(other) is None
