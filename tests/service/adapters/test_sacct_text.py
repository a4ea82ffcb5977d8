"""Rows of sacct: each trap of the real ones by name."""

import re
from datetime import UTC, timedelta, timezone
from operator import attrgetter
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError
from service.adapters.sacct_text import completion_of, read_sacct

DATA = Path(__file__).parents[2] / "data" / "slurm"
NAMED = (DATA / "sacct.txt").read_text("utf-8").splitlines(keepends=True)
HEADER, ORDINARY = (line.replace("\x1f", "|") for line in NAMED[:2])


def outcomes(lines, **kwargs):
    return [outcome for _, outcome in read_sacct(lines, **kwargs)]


def only(*rows, **kwargs):
    (outcome,) = outcomes([HEADER, *rows], **kwargs)
    return outcome.reason if isinstance(outcome, SkippedError) else outcome


def rows():
    """Rows with their line breaks: one of them goes on in the next line."""
    lines = iter(NAMED[1:])
    return [line if line.count("\x1f") == 25 else line + next(lines) for line in lines]


def of(job_id):
    told = [row for row in rows() if row.startswith(f"{job_id}\x1f")]
    found = [getattr(each, "reason", each) for each in outcomes([NAMED[0], *told])]
    assert found
    return found[0] if len(found) == 1 else found


def test_a_row_becomes_the_run_it_tells_of():
    report = of("901")
    submission = report.completion.submission
    assert (submission.cluster, submission.user, submission.group) == ("hill", "carol", "chem")
    assert (submission.project, submission.queue) == ("zeolite", "batch")
    assert submission.application == "relax"
    assert submission.requested_walltime == 3600
    assert submission.requested_processors == 8
    assert submission.requested_memory == 16000 * 1024 / 8
    assert report.completion.runtime == 600
    assert report.completion.status is Status.COMPLETED
    assert report.prediction_id == "0b7c-42"


@pytest.mark.parametrize(
    ("start", "end", "elapsed"),
    [
        ("2030-10-27T01:30:00", "2030-10-27T02:30:00", 7200),  # its end is in the second hour
        ("2030-10-27T02:50:00", "2030-10-27T02:20:00", 1800),  # it ends before it starts
        ("2030-10-27T01:30:00", "2030-10-27T02:30:00", 3600),  # in the first one
        ("2030-10-27T02:50:00", "2030-10-27T03:10:00", 4800),
    ],
)
def test_in_the_hour_that_comes_twice_in_autumn_a_run_lasts_as_long_as_its_row_says(
    start, end, elapsed
):
    header = "JobIDRaw|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|State\n"
    row = f"7|carol|2030-10-26T20:00:00|{start}|{end}|{elapsed}|600|COMPLETED\n"
    ((_, outcome),) = read_sacct([header, row], zone=ZoneInfo("Europe/Berlin"))
    run = outcome.completion
    assert (run.runtime, run.end_time - run.start_time) == (elapsed, elapsed)


def test_times_are_read_in_the_zone_that_sacct_ran_in():
    utc = only(ORDINARY).completion
    east = only(ORDINARY, zone=timezone(timedelta(hours=3))).completion
    assert utc.start_time == 1927857906
    assert east.start_time == utc.start_time - 3 * 3600


def test_unix_seconds_and_the_safe_separator_give_the_same_runs():
    safe = ORDINARY.replace("2031-02-03T04:00:00", "1927857600")
    safe = safe.replace("2031-02-03T04:05:06", "1927857906")
    safe = safe.replace("2031-02-03T04:15:06", "1927858506")
    lines = [line.replace("|", "\x1f") for line in (HEADER, safe)]
    assert outcomes(lines, zone=timezone(timedelta(hours=3))) == [only(ORDINARY)]


@pytest.mark.parametrize("name", ["a|b", "|" * 12], ids=["one", "many"])
def test_a_row_is_left_out_whose_values_hold_the_separator(name):
    before, left_out, after = outcomes(
        [HEADER, ORDINARY, ORDINARY.replace("relax", name), ORDINARY]
    )
    assert left_out.reason is Reason.AMBIGUOUS
    assert before == after == only(ORDINARY)


@pytest.mark.parametrize(
    ("job_id", "fact", "expected"),
    [
        ("902", "completion.submission.application", "a|b, `c`"),
        ("902", "prediction_id", "0b7c-42"),
        ("903", "completion.submission.requested_walltime", 3600),  # as typed, later extended
        ("916", "completion.submission.requested_walltime", 1800),
        ("906", "completion.status", Status.CANCELLED),  # by somebody
        ("910", "completion.submission.job_id", "910"),  # a task of an array
        ("911", "completion.submission.job_id", "911"),  # a component of a het job
        ("912", "completion.runtime", 687),  # longer than its limit
        ("912", "completion.usage", 1.0),
        ("913", "completion.submission.requested_memory", 2000 * 1024),  # for each core
        ("914", "completion.submission.requested_memory", 16000 * 1024 / 8),  # for each node
        ("918", "completion.runtime", 500),  # without the time suspended
    ],
)
def test_each_trap_of_a_row_is_read_as_it_is_meant(job_id, fact, expected):
    assert attrgetter(fact)(of(job_id)) == expected


@pytest.mark.parametrize(
    ("job_id", "reason"),
    [
        ("904", Reason.NO_LIMIT),
        ("905", Reason.NO_LIMIT),
        ("907", Reason.UNKNOWN_END),
        ("908", Reason.NEVER_RAN),
        ("912.batch", Reason.STEP),  # where -X was forgotten
        ("917", Reason.ENDS_BEFORE_START),
    ],
)
def test_a_row_that_tells_of_no_run_says_why(job_id, reason):
    assert of(job_id) is reason


def test_a_requeued_job_is_two_runs():
    first, second = of("909")
    assert first.completion.status is Status.PREEMPTED
    assert first.completion.runtime == 40
    assert second.completion.status is Status.COMPLETED
    assert first.completion.start_time < second.completion.start_time


def test_a_command_with_a_line_break_is_one_row():
    assert of("915").completion.submission.application == "relax"
    assert len(outcomes(NAMED)) == len(NAMED) - 2


def test_rows_are_numbered_as_in_the_file():
    numbers = [number for number, _ in read_sacct(NAMED)]
    assert numbers[:3] == [2, 3, 4]
    assert numbers[-1] == len(NAMED)


def test_a_line_may_break_before_the_last_column():
    whole, _, last = ORDINARY.rpartition("|")
    assert only(f"{whole}\n", f"|{last}") == only(ORDINARY)


def cells(**changes):
    """One row by its columns."""
    names = HEADER.strip().lower().split("|")
    row = dict(zip(names, ORDINARY.rstrip("\n").split("|"), strict=True)) | changes
    return completion_of(row, zone=UTC).completion


@pytest.mark.parametrize(
    ("changes", "processors"),
    [
        ({"reqcpus": "4", "reqtres": "cpu=8", "ncpus": "16"}, 16),
        ({"reqcpus": "4", "reqtres": "cpu=8", "ncpus": "", "alloctres": ""}, 4),
        ({"reqcpus": "", "reqtres": "cpu=8", "ncpus": "", "alloctres": ""}, 8),
        ({"reqcpus": "", "reqtres": "", "ncpus": "16"}, 16),
        ({"reqcpus": "", "reqtres": "", "ncpus": "", "alloccpus": "4"}, 4),
        ({"reqcpus": "", "reqtres": "", "ncpus": "", "alloctres": "billing=9,cpu=8"}, 8),
    ],
)
def test_the_processors_are_those_given_or_else_those_asked_for(changes, processors):
    assert cells(**changes).submission.requested_processors == processors


@pytest.mark.parametrize(
    ("nodes", "reqmem", "kibibytes"),
    [
        ({"reqnodes": "2", "nnodes": "4"}, "4Gn", 2 * 4 * 1024**2 / 8),
        ({"reqnodes": "", "nnodes": "4"}, "4Gn", 4 * 4 * 1024**2 / 8),
        ({"reqnodes": "", "nnodes": ""}, "4Gn", None),
        ({}, "0n", None),
        ({}, "500", 500 * 1024 / 8),
    ],
)
def test_memory_for_each_node_counts_the_nodes_asked_for(nodes, reqmem, kibibytes):
    asked = cells(reqtres="cpu=8", reqmem=reqmem, **nodes).submission
    assert asked.requested_memory == kibibytes


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "PENDING"},
        {"nodelist": "None assigned"},
        {"alloctres": "", "elapsedraw": "0"},
    ],
)
def test_a_row_of_a_job_that_waited_is_no_run(changes):
    with pytest.raises(SkippedError, match="never ran"):
        cells(**changes)


@pytest.mark.parametrize("changes", [{"alloctres": ""}, {"elapsedraw": "0"}])
def test_a_row_that_lacks_one_sign_of_a_run_is_one(changes):
    assert cells(**changes).start_time == 1927857906


def test_the_export_for_xdmod_needs_no_header():
    first, second, third = outcomes(
        (DATA / "xdmod.txt").read_text("utf-8").splitlines(keepends=True)
    )
    assert first.completion.submission.requested_walltime == 3600
    assert first.completion.runtime == 600
    assert first.completion.submission.requested_memory == 16000 * 1024 / 8
    assert second.completion.submission.application == "a|b"
    assert second.completion.submission.requested_walltime == 26 * 3600 + 180
    assert third.reason is Reason.NO_LIMIT


XDMOD_ROW = (
    "{id}|{id}|hill|batch|normal|zeolite|chem|3100|carol|3001|2031-02-03T04:00:00"
    "|2031-02-03T04:00:00|2031-02-03T04:05:06|2031-02-03T04:15:06|00:10:00|0:0|COMPLETED|1|8|8"
    "|16000Mn|cpu=8,mem=16000M,node=1|billing=8,cpu=8,node=1|01:00:00|c1|{name}\n"
)
"""As Open XDMoD reads it today: as many columns as once, but others."""


def test_the_export_for_xdmod_of_today_has_other_columns_than_that_of_old():
    first, second = outcomes(
        [XDMOD_ROW.format(id=8, name="relax"), XDMOD_ROW.format(id=9, name="a|b")]
    )
    run = first.completion
    assert (run.submission.user, run.submission.group) == ("carol", "chem")
    assert (run.submission.project, run.submission.queue) == ("zeolite", "batch")
    assert (run.submission.submit_time, run.start_time) == (1927857600, 1927857906)
    assert (run.runtime, run.status) == (600, Status.COMPLETED)
    assert second.completion.submission.application == "a|b"


def test_a_row_that_nothing_names_is_read_only_where_it_looks_like_the_export():
    row = XDMOD_ROW.format(id=8, name="relax").replace("|normal|", "|normal|more|").split("|")
    (outcome,) = outcomes(["|".join(row[:-1]) + "\n"])
    assert outcome.reason is Reason.MALFORMED


LATE = "User|JobID|JobName|Submit|Start|End|Timelimit|State|NCPUS\n"
LATE_ROW = (
    "carol|7|relax|2031-02-03T04:00:00|2031-02-03T04:05:06|2031-02-03T04:15:06"
    "|01:00:00|COMPLETED|8\n"
)
LATE_STEP = LATE_ROW.replace("carol|7|relax", "|7.batch|batch")


@pytest.mark.parametrize(("header", "row"), [(HEADER, ORDINARY), (LATE, LATE_ROW)])
@pytest.mark.parametrize("odd", ["cut in the middle", "slurm: something odd\n"])
def test_a_line_that_is_no_row_or_is_cut_spoils_no_other(header, row, odd):
    odd = row[:30] + "\n" if odd == "cut in the middle" else odd
    before, malformed, after = outcomes([header, row, odd, row])
    assert malformed.reason is Reason.MALFORMED
    assert re.fullmatch(r"\d+ columns? instead of \d+", str(malformed))
    assert [before] == [after] == outcomes([header, row])
    assert outcomes([header, row, odd])[-1].reason is Reason.MALFORMED, "the file may end there"


def test_the_number_of_the_job_may_be_in_any_column():
    run, step = outcomes([LATE, LATE_ROW, LATE_STEP])
    assert (run.completion.submission.job_id, run.completion.submission.user) == ("7", "carol")
    assert run.completion.runtime == 600
    assert step.reason is Reason.STEP


@pytest.mark.parametrize("separator", [",", ";", "^", "\t"])
def test_the_line_of_names_shows_the_separator(separator):
    lines = [line.replace("|", separator) for line in (LATE, LATE_ROW)]
    assert outcomes(lines) == outcomes([LATE, LATE_ROW])


def test_files_put_together_name_their_columns_again():
    assert len(outcomes([LATE, LATE_ROW, LATE, LATE_ROW])) == 2
    other = LATE.replace("User|JobID", "JobID|User")
    assert [found.reason for found in outcomes([LATE, other])] == [Reason.MALFORMED]


@pytest.mark.parametrize("column", ["Submit", "Start", "End", "Timelimit"])
def test_a_file_that_lacks_a_column_is_refused_as_a_whole(column):
    with pytest.raises(SkippedError, match="a column is missing"):
        outcomes([LATE.replace(f"|{column}|", "|Comment|"), LATE_ROW])


def test_a_file_that_names_no_columns_is_refused_as_a_whole():
    with pytest.raises(SkippedError, match="a column is missing"):
        outcomes([LATE_ROW, LATE_ROW])


def test_a_job_that_was_cancelled_while_it_waited_is_no_run_whatever_the_columns():
    waited = LATE_ROW.replace("COMPLETED", "CANCELLED by 1003").replace("04:15:06", "04:05:06")
    assert [found.reason for found in outcomes([LATE, waited])] == [Reason.NEVER_RAN]
    failed = waited.replace("CANCELLED by 1003", "FAILED").replace("|8\n", "|8|0\n")
    told = [LATE.replace("|NCPUS", "|NCPUS|AllocNodes"), failed]
    assert [found.reason for found in outcomes(told)] == [Reason.NEVER_RAN]
    given = [LATE.replace("|NCPUS", "|NCPUS|NodeList"), waited.replace("|8\n", "|8|c1\n")]
    assert [found.completion.runtime for found in outcomes(given)] == [0]


def test_empty_lines_are_counted():
    assert [number for number, _ in read_sacct([LATE, "\n", LATE_ROW])] == [3]


def test_an_empty_file_has_no_rows():
    assert outcomes([]) == []
    assert outcomes([HEADER]) == []
