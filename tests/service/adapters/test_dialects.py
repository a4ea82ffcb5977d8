"""Dialects of logs that sites have: each is read, or refused with its reason."""

import json
from datetime import UTC

import pytest

from service.adapters.history_files import READERS, seen_format
from service.adapters.runs import SkippedError
from terminal.files import PackedFileError

HEAD = (
    "JobIDRaw|Cluster|User|Account|Partition|JobName|Submit|Start|End|ElapsedRaw|TimelimitRaw|"
    "NCPUS|State\n"
)
ROW = (
    "1|hill|ada|proj|batch|cfd|2024-03-01T10:00:00|2024-03-01T10:01:00|2024-03-01T11:01:00|3600|"
    "120|8|COMPLETED\n"
)
PBS = (
    "E;501.srv;user=ada group=g jobname=cfd queue=workq ctime=1709287200 start=1709287260 "
    "exec_host=n1/0-3+n2/0-3 Resource_List.nodes=2:ppn=4 Resource_List.walltime=02:00:00 "
    "end=1709290860 Exit_status=0 resources_used.cput=03:50:00 resources_used.walltime=01:00:00\n"
)
US = "03/01/2024 11:01:00;"
SWF = "1 0 60 3600 8 -1 -1 8 7200 -1 1 1 1 1 1 1 -1 -1\n"
START = "; UnixStartTime: 1709287200\n"
DOCUMENT = {
    "job_id": 1, "name": "cfd", "user": "ada", "allocation_nodes": 1,
    "time": {"submission": 1709287200, "start": 1709287260, "end": 1709290860, "elapsed": 3600,
             "limit": {"set": True, "infinite": False, "number": 120}},
    "state": {"current": ["COMPLETED"]}, "required": {"CPUs": 8},
}  # fmt: skip
JOBCOMP = {
    "jobid": 1, "username": "ada", "job_name": "cfd", "state": "COMPLETED", "total_nodes": 1,
    "total_cpus": 8, "time_limit": 7200, "elapsed": 3600, "@submit": "2024-03-01T10:00:00",
    "@start": "2024-03-01T10:01:00", "@end": "2024-03-01T11:01:00",
}  # fmt: skip
OLD = DOCUMENT | {
    "time": DOCUMENT["time"] | {"limit": 120}, "state": {"current": "COMPLETED"},
}  # fmt: skip

READ = {
    "commas": (HEAD + ROW).replace("|", ","),
    "two colons": (HEAD + ROW).replace("|", "::"),
    "quoted semicolons": "".join(
        ";".join(f'"{cell}"' for cell in line.split("|")) + "\n"
        for line in (HEAD + ROW).splitlines()
    ),
    "line ends of Windows": (HEAD + ROW).replace("\n", "\r\n"),
    "names in capitals": HEAD.upper() + ROW,
    "a bar at each end, as --parsable": (HEAD + ROW).replace("\n", "|\n"),
    "blanks in times": HEAD + ROW.replace("T1", " 1"),
    "walltimes with colons": HEAD.replace("Raw|NCPUS", "|NCPUS")
    + ROW.replace("|120|", "|2:00:00|"),
    "the names again in small letters": HEAD + HEAD.lower() + ROW,
    "Torque": US + PBS,
    "Torque with seconds": US + PBS.replace("02:00:00", "7200").replace("t=01:00:00", "t=3600"),
    "Torque with days": US + PBS.replace("02:00:00", "0:02:00:00"),
    "PBS, dates of ISO": "2024-03-01 11:01:00;" + PBS,
    "PBS, dates of a locale": "01.03.2024 11:01:00;" + PBS,
    "PBS with other records": f"#Version 2\n{US}L;license;floating license hour:0\n{US}{PBS}"
    f"{US}u;501.srv;x\n{US}Q;502.srv;queue=workq\n",
    "SWF with tabs": START + SWF.replace(" ", "\t"),
    "SWF with exponents": "; UnixStartTime: 1.7092872e9\n" + SWF.replace(" 3600 ", " 3.6e3 "),
    "SWF without blanks in the header": START.replace(" ", "") + SWF,
    "sacct --json up to 22.05": json.dumps({"jobs": [OLD]}),
    "sacct --json, a job a line": json.dumps(DOCUMENT) + "\n",
    "sacct --json, one document after the other": json.dumps({"jobs": [DOCUMENT]}, indent=1)
    + "\n"
    + json.dumps({"meta": {}, "jobs": [DOCUMENT | {"job_id": 2}]}),
    "documents in one line": json.dumps({"jobs": [DOCUMENT]}) + json.dumps({"jobs": [DOCUMENT]}),
    "a list of jobs, as jq writes it": json.dumps([DOCUMENT], indent=2),
    "wrapped numbers and allocated processors": json.dumps(
        {
            "jobs": [
                DOCUMENT
                | {
                    "job_id": {"set": True, "number": 9},
                    "required": {"CPUs": {"set": False}},
                    "tres": {"allocated": [{"type": "cpu", "name": "", "count": 8}]},
                }
            ]
        }
    ),
    "states in small letters": HEAD + ROW.replace("COMPLETED", "completed"),
    "PBS with fractions of seconds and blanks before": f" 03/01/2024 11:01:00.123456;{PBS}",
    "PBS without a creation time": US + PBS.replace("ctime=1709287200", "ctime=0 qtime=1709287200"),
    "SWF with times since 1970": "; UnixStartTime: 0\n" + SWF.replace("1 0 60", "1 1709287200 60"),
    "jobcomp, a document a line": f"{json.dumps(JOBCOMP)}\n{json.dumps(JOBCOMP | {'jobid': 2})}\n",
}


@pytest.mark.parametrize("name", READ)
def test_a_dialect_is_seen_and_read(tmp_path, name):
    file = tmp_path / "log"
    file.write_bytes(READ[name].encode())
    format_ = seen_format(file.read_bytes())
    history = READERS[format_](str(file), None, UTC)
    assert (list(history.rejected), dict(history.doubts)) == ([], {})
    run = next(iter(history.reports)).completion
    job = run.submission
    assert (job.submit_time, run.start_time, run.end_time) == (1709287200, 1709287260, 1709290860)
    assert (run.runtime, job.requested_walltime, job.requested_processors) == (3600, 7200, 8)


def test_a_greeting_before_the_names_is_a_malformed_line(tmp_path):
    file = tmp_path / "log"
    file.write_text(f"Welcome to hill!\n{HEAD}{ROW}")
    history = READERS[seen_format(file.read_bytes())](str(file), None, UTC)
    assert (history.count, [each.line for each in history.rejected]) == (1, [1])


JSON = json.dumps({"jobs": [DOCUMENT]}, indent=1)
BESIDE = {
    "a warning of sacct": f"sacct: error: slurm_persist_conn_open: failed\n{JSON}",
    "headers of HTTP": f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{JSON}\r\n",
    "lines of a log": f"[2026-11-28T13:00:00.123] debug:  x\nslurmrestd: y {{z}}\n{JSON}",
    "a greeting and blank lines": f"\n\n  Welcome to hill!\n  -- 3 nodes: 1 down --\n\n{JSON}",
    "text behind": f"{JSON}\nConnection to hill closed.\n",
    "text between two": f"{JSON}\nsacct: again\n" + JSON.replace('"job_id": 1', '"job_id": 2'),
    "a warning before a list": "warning\n" + json.dumps([DOCUMENT], indent=2),
    "a warning before a job a line": "warning\n" + json.dumps(DOCUMENT) + "\n",
}


@pytest.mark.parametrize("name", BESIDE)
def test_text_beside_json_is_named_and_costs_no_job(tmp_path, name):
    file = tmp_path / "log"
    file.write_bytes(BESIDE[name].encode())
    assert seen_format(file.read_bytes()) == "sacct"
    history = READERS["sacct"](str(file), None, UTC)
    assert {run.completion.runtime for run in history.reports} == {3600}
    assert history.count == BESIDE[name].count('"job_id"')
    assert all("stands beside the JSON" in each.reason for each in history.rejected)
    assert history.rejected


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ((HEAD + ROW).encode("utf-16"), "iconv -f UTF-16"),
        (b"       JobID    JobName\n------------ ---------- ----------\n1   cfd\n", "--parsable2"),
        (b"JobID|User\n1|ada\n", "has to name"),
        (b'{"jobs": [{"job_id": 1', "not a record.*line 1 column 23"),
        (b'{"jobs": [{"job_id": 1},]}', "not a record.*line 1 column"),
    ],
)
def test_what_is_no_log_of_sacct_is_refused_with_what_to_do(tmp_path, content, complaint):
    file = tmp_path / "log"
    file.write_bytes(content)
    with pytest.raises((SkippedError, PackedFileError), match=complaint):
        READERS[seen_format(content) or "sacct"](str(file), None, UTC)


def test_two_records_of_one_line_are_named(tmp_path):
    file = tmp_path / "log"
    file.write_text(f"{US}{PBS.strip()} {US}{PBS}")
    history = READERS["pbs"](str(file), None, UTC)
    assert [each.reason for each in history.rejected] == ["two records in one line"]
    assert history.count == 0


def test_processors_that_slurm_shortens_are_counted_and_owners_have_no_host(tmp_path):
    file = tmp_path / "log"
    file.write_text(HEAD + ROW.replace("|8|", "|1.50K|"))
    (report,) = READERS["sacct"](str(file), None, UTC).reports
    assert report.completion.submission.requested_processors == 1536
    file.write_text(US + PBS.replace("user=ada", "user=ada@hill").replace("=workq", "=workq@hill"))
    (report,) = READERS["pbs"](str(file), None, UTC).reports
    job = report.completion.submission
    assert (job.user, job.queue) == ("ada", "workq")


def test_a_deleted_account_of_slurm_keeps_its_name(tmp_path):
    file = tmp_path / "log"
    file.write_text(json.dumps({"jobs": [DOCUMENT | {"user": "", "association": {"user": "bob"}}]}))
    (report,) = READERS["sacct"](str(file), None, UTC).reports
    assert report.completion.submission.user == "bob"
