"""Any table: its columns are named, its units are named or certain, and bad cells are named."""

import re
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from predictors.jobs import Status
from service.adapters.csv_table import TRIED, UnitError, read_table
from service.adapters.runs import Reason, SkippedError
from service.adapters.table_columns import ColumnsError, sources_of

TEN = 1709287200  # 2024-03-01T10:00:00Z
NAMED = "id=id,user=usr,submit=sub,start=beg,end=fin,limit=lim"
NAMES = "id;usr;sub;beg;fin;lim"


def read(text, columns, zone=UTC):
    return [*read_table(text.splitlines(keepends=True), zone=zone, columns=[columns])]


def only(text, columns, zone=UTC):
    ((_, found),) = read(text, columns, zone)
    return found.completion


LSF = """\
JOBID,USER,QUEUE,PROJ_NAME,SUBMIT_TIME,START_TIME,FINISH_TIME,RUNTIMELIMIT,NCPUS,STAT
101,ada,normal,p,Mar 01 10:00:00 2024,Mar 01 10:01:00 2024,Mar 01 11:01:00 2024,120.0,8,DONE
102,bob,normal,p,Mar 01 10:00:00 2024,-,-,60.0,8,PEND
"""
GRID_ENGINE = """\
# Version: 8.1.9
all.q:n1:users:ada:cfd:123:sge:0:1709287200:1709287260:1709290860:0:1:-l h_rt=7200,h_vmem=2G:8
all.q:n1:users:ada:cfd:124:sge:0:1709287200:0:0:0:0:-l h_rt=02:00:00:8
"""
HTCONDOR = """\
ClusterId Owner     QDate JobStartDate CompletionDate RequestCpus MaxRuntime ExitCode
        1   ada 1709287200   1709287260     1709290860           8       7200        0
"""
PM100 = """\
job_id,user_id,submit_time,start_time,run_time,time_limit,num_cores_req,mem_req,job_state
1,u7,2024-03-01 10:00:00+00:00,2024-03-01 10:01:00+00:00,3600,120,8,16,COMPLETED
"""
TRACE_IN_MILLISECONDS = """\
"job","user","submitted","waited","ran","requested","cpus"
"1","ada","1709287200000","60000","3600000","2:00:00","8"
"""
TABLES = {
    "LSF": (
        LSF,
        (
            "job_id=JOBID,user=USER,queue=QUEUE,submit=SUBMIT_TIME,start=START_TIME,end=FINISH_TIME,"
            "requested_walltime=RUNTIMELIMIT:min,cores=NCPUS,state=STAT"
        ),
    ),
    "Grid Engine": (
        GRID_ENGINE,
        "queue=1,group=3,user=4,name=5,id=6,submit=9,start=10,end=11,exit_code=13,limit=14,cpus=15",
    ),
    "HTCondor": (
        HTCONDOR,
        (
            "id=ClusterId,user=Owner,submit=QDate,start=JobStartDate,end=CompletionDate,"
            "cores=RequestCpus,walltime=MaxRuntime,exit_code=ExitCode"
        ),
    ),
    "PM100": (
        PM100,
        (
            "id=job_id,user=user_id,submit=submit_time,start=start_time,runtime=run_time,"
            "limit=time_limit:min,cores=num_cores_req,memory=mem_req:gb,state=job_state"
        ),
    ),
    "milliseconds": (
        TRACE_IN_MILLISECONDS,
        "id=job,user=user,submit=submitted,wait=waited:ms,runtime=ran:ms,limit=requested,cpus=cpus",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_other_schedulers_and_traces_are_read_with_their_columns_named(name):
    _, first = read(*TABLES[name])[0]
    run, job = first.completion, first.completion.submission
    assert (job.submit_time, run.start_time, run.end_time) == (TEN, TEN + 60, TEN + 3660)
    assert (run.runtime, job.requested_walltime, job.requested_processors) == (3600, 7200, 8)
    assert job.user in {"ada", "u7"}


def test_jobs_that_wait_or_never_ran_are_left_out_by_reason():
    assert [found.reason for _, found in read(*TABLES["LSF"])[1:]] == [Reason.NOT_ENDED]
    assert [found.reason for _, found in read(*TABLES["Grid Engine"])[1:]] == [Reason.UNKNOWN_START]


def test_ends_are_read_from_words_and_exit_codes():
    assert only(HTCONDOR.replace("       0\n", "       3\n"), TABLES["HTCondor"][1]).status == (
        Status.FAILED
    )
    text = LSF.replace("DONE", "EXIT").splitlines(keepends=True)
    assert only("".join(text[:2]), TABLES["LSF"][1]).status == Status.FAILED


def row(**changes):
    cells = {"id": "1", "usr": "ada", "sub": str(TEN), "beg": str(TEN), "fin": str(TEN + 60),
             "lim": "90"}  # fmt: skip
    return f"{NAMES}\n{';'.join((cells | changes).values())}\n"


@pytest.mark.parametrize(
    "written",
    [
        str(TEN), f"{TEN}.0", str(TEN * 1000), str(TEN * 10**6), str(TEN * 10**9),
        "2024-03-01T10:00:00Z", "2024-03-01 10:00:00 UTC", "2024-03-01 11:00:00+01:00",
        "2024-03-01 10:00", "2024/03/01 10:00:00", "20240301T100000",
        "Fri Mar  1 10:00:00 2024", "Mar 1 10:00:00 2024", "01-Mar-2024 10:00:00",
        "1 Mar 2024 10:00", "Fri, 01 Mar 2024 10:00:00 +0000",
    ],
)  # fmt: skip
def test_times_whose_form_is_certain_need_no_name(written):
    assert only(row(sub=written), NAMED).submission.submit_time == TEN


def test_times_without_a_zone_are_in_the_named_one():
    berlin = ZoneInfo("Europe/Berlin")
    assert only(row(sub="Mar 1 11:00:00 2024"), NAMED, berlin).submission.submit_time == TEN


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (":%d/%m/%Y %H:%M", "01/03/2024 10:00"),
        (":%m/%d/%y %I:%M:%S %p", "03/01/24 10:00:00 AM"),
        (":ms", f"{TEN}000"),
        (":s", str(TEN)),
    ],
)
def test_times_are_read_in_the_form_that_is_named(form, written):
    columns = NAMED.replace("=sub", f"=sub{form}")
    assert only(row(sub=written), columns).submission.submit_time == TEN


@pytest.mark.parametrize(
    ("written", "form", "seconds"),
    [
        ("90", "", 90), ("90", ":min", 5400), ("1.5", ":h", 5400), ("90000", ":ms", 90),
        ("1:30:00", "", 5400), ("1-12:00:00", "", 129600), ("0+01:30:00", "", 5400),
        ("1 day, 0:00:01", "", 86401), ("0 days 01:30:00", "", 5400), ("90m", "", 5400),
        ("1h30m", "", 5400), ("2 hours", "", 7200), ("PT1H30M", "", 5400),
        ("-q long -l h_rt=5400,mem=2G", "", 5400),
    ],
)  # fmt: skip
def test_durations_are_read_in_the_forms_that_tables_have(written, form, seconds):
    run = only(row(lim=written), NAMED.replace("=lim", f"=lim{form}"))
    assert run.submission.requested_walltime == seconds


@pytest.mark.parametrize(
    ("changes", "place", "field"),
    [
        ({"sub": "01/03/2024 10:00"}, 3, "submit_time"),
        ({"beg": "yesterday"}, 4, "start_time"),
        ({"fin": "20240301"}, 5, "end_time"),
        ({"fin": "3600"}, 5, "end_time"),  # since when?
        ({"lim": "soon"}, 6, "requested_walltime"),
        ({"lim": "10:30"}, 6, "requested_walltime"),  # hours or minutes?
    ],
)
def test_a_cell_without_a_certain_value_is_refused_with_line_and_column(changes, place, field):
    ((line, found),) = read(row(**changes), NAMED)
    assert (line, found.reason.is_damage) == (2, True)
    name = NAMES.split(";")[place - 1]
    assert str(found).startswith(f"column {place} ({name}): {field} is {changes[name]!r}, which")


@pytest.mark.parametrize("unlimited", ["UNLIMITED", "", "-1", "None", "-q long"])
def test_a_job_without_a_limit_is_left_out(unlimited):
    ((_, found),) = read(row(lim=unlimited), NAMED)
    assert found.reason == Reason.NO_LIMIT


def test_requests_in_minutes_that_are_not_named_as_such_are_refused():
    text = row(fin=str(TEN + 3000))
    with pytest.raises(UnitError, match=r"requested_walltime=lim:min"):
        read(text, NAMED)
    assert only(text, NAMED.replace("=lim", "=lim:min")).submission.requested_walltime == 5400
    assert only(text, NAMED.replace("=lim", "=lim:s")).submission.requested_walltime == 90


def test_a_few_runs_beyond_their_request_do_not_question_its_unit():
    rows = [row().splitlines()[1]] * TRIED + [row(fin=str(TEN + 3000)).splitlines()[1]] * 100
    assert len(read("\n".join([NAMES, *rows]), NAMED)) == TRIED + 100


@pytest.mark.parametrize("separator", [",", "\t", "|", ";", ":", " ", "\x1f"])
def test_the_separator_is_seen(separator):
    assert only(row().replace(";", separator), NAMED).submission.user == "ada"


def test_quoted_cells_may_hold_separators_and_line_breaks():
    text = f'{NAMES}\n1;"a;\nb";{TEN};{TEN};{TEN + 60};90\n2;ada;{TEN};soon;{TEN + 60};90\n'
    (_, first), (line, second) = read(text, NAMED)
    assert first.completion.submission.user == "a;?b"
    assert (line, str(second).startswith("column 4 (beg)")) == (4, True)


def test_a_row_of_another_width_is_malformed():
    ((line, found),) = read(row().rstrip() + ";more\n", NAMED)
    assert (line, found.reason) == (2, Reason.MALFORMED)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ("usr=x", "the fields are job_id, user"),
        ("user", "field=column"),
        ("user=", "field=column"),
        ("user=a,user=b", "user twice"),
        ("user=a,start=b", "needs job_id"),
        ("start=b:weeks", "no unit 'weeks'; there are s, ms, us, ns"),
    ],
)
def test_columns_that_are_named_wrongly_are_refused(columns, complaint):
    with pytest.raises(ColumnsError, match=complaint):
        sources_of([columns])


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(ColumnsError, match=r"no column 'nix'; the first line has id, usr, sub"):
        read(row(), NAMED.replace("usr", "nix"))


def test_a_number_of_thousands_of_digits_is_a_column_that_is_not_there():
    with pytest.raises(ColumnsError, match="no column '9999"):
        read(row(), NAMED.replace("usr", "9" * 5000))


def test_a_pattern_that_names_a_part_twice_is_refused_with_the_cell():
    ((_, found),) = read(row(), NAMED.replace("=sub", "=sub:%d%d"))
    assert "which is not of the form %d%d" in str(found)


def test_a_table_without_columns_is_that_of_export_or_refused():
    with pytest.raises(SkippedError):
        [*read_table([NAMES], zone=UTC)]


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        ("start=beg:MS", "'MS' is no form of start_time: there are s, ms, us, ns, and patterns"),
        ("start=beg:dd/mm/yyyy", "'dd/mm/yyyy' is no form of start_time"),
        ("limit=lim:Min", "'Min' is no form of requested_walltime: there are ms, s, min, h, d."),
        ("user=usr:s", "user has no forms, such as 's'"),
        ("start=2:MS", "'MS' is no form of start_time"),
        ("start=begin", "There is no column 'begin'; the first line has id, usr, sub"),
    ],
)
def test_a_wrong_form_is_named_as_a_form(pair, complaint):
    named = NAMED.split(",")
    field = pair.partition("=")[0]
    columns = ",".join([each for each in named if not each.startswith(f"{field}=")] + [pair])
    with pytest.raises(ColumnsError, match=re.escape(complaint)):
        read(row(), columns)


UNSET = ["4294967294", "4294967295", "4294967295.0", str(2**64 - 2), str(2**64 - 1)]


@pytest.mark.parametrize("cell", UNSET)
def test_unset_numbers_of_slurm_are_no_limit_and_no_time(cell):
    ((_, found),) = read(row(lim=cell), NAMED)
    assert found.reason is Reason.NO_LIMIT
    ((_, found),) = read(row(beg=cell), NAMED)
    assert found.reason is Reason.UNKNOWN_START


@pytest.mark.parametrize("word", ["NULL", "null", "NaN", "nan", "-", "N/A"])
def test_a_word_of_tables_for_nothing_is_no_person(word):
    assert only(row(usr=word), NAMED).submission.user is None


def test_a_column_that_is_there_twice_is_refused():
    names = "job_id,user,user,requested_walltime,submit_time,start_time,end_time"
    with pytest.raises(SkippedError, match="the column user is there twice"):
        [*read_table([names, "1,a,b,60,1,2,3"], zone=UTC)]
