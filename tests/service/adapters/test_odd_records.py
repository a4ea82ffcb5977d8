"""Files and values as sites have them: every reader with every odd value of one table."""

import csv
import gzip
import io
import json
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from history_samples import SAMPLES

from predictors.jobs import LATEST_TIME, Status
from service.adapters.history_files import NO_UNIX_START, READERS, seen_format
from service.adapters.pbs import read_accounting
from service.adapters.runs import Reason, SkippedError
from service.adapters.sacct_text import (
    OLDEST_XDMOD_COLUMNS,
    XDMOD_COLUMNS,
    completion_of,
    read_sacct,
)
from service.adapters.slurm_json import jobcomp_completion, sacct_completion
from service.cli.export_tables import table_of
from service.store.past_runs import EndedRun
from terminal.data_table import write_table
from terminal.files import Packed, PackedFileError

ODD = Path(__file__).parents[2] / "data" / "odd"

CELLS = {
    "JobIDRaw": "1", "Cluster": "hill", "User": "ada", "Account": "proj", "Partition": "batch",
    "JobName": "cfd", "Submit": "1709287000", "Start": "1709287260", "End": "1709290860",
    "ElapsedRaw": "3600", "TimelimitRaw": "120", "NCPUS": "4", "NNodes": "2", "ReqMem": "4G",
    "State": "COMPLETED",
}  # fmt: skip
PBS = {
    "user": "ada", "group": "g", "jobname": "cfd", "queue": "workq", "ctime": "1709287000",
    "qtime": "1709287000", "etime": "1709287000", "start": "1709287260", "exec_host": "n1/0*4",
    "Resource_List.ncpus": "4", "Resource_List.nodect": "1", "Resource_List.walltime": "02:00:00",
    "Resource_List.mem": "4gb", "end": "1709290860", "Exit_status": "0",
    "resources_used.cput": "03:50:00", "resources_used.walltime": "01:00:00",
}  # fmt: skip
SWF_FIELDS = [*map(str, (1, 0, 10, 3600, 4, -1, -1, 4, 7200, -1, *[1] * 6, -1, -1))]


def beginning_of(file):
    return Packed(io.BytesIO(file.read_bytes()), str(file), 1 << 16).expanded_beginning()


def in_columns(separator, quote=""):
    def text(changes):
        cells = CELLS | changes
        lines = ([*cells], [*cells.values()])
        return "".join(f"{separator.join(f'{quote}{c}{quote}' for c in line)}\n" for line in lines)

    return text


def pbs_line(changes):
    pairs = " ".join(f"{name}={value}" for name, value in (PBS | changes).items())
    return f"03/01/2024 11:01:00;E;501.srv;{pairs}\n"


def swf_line(changes):
    fields = [changes.get(str(place), field) for place, field in enumerate(SWF_FIELDS)]
    return f"; UnixStartTime: 1709287000\n{' '.join(fields)}\n"


JOB = {
    "job_id": 1, "name": "cfd", "user": "ada", "account": "proj", "partition": "batch",
    "cluster": "hill", "submit_line": "sbatch job.sh", "allocation_nodes": 1,
    "time": {"submission": 1709287000, "start": 1709287260, "end": 1709290860,
             "eligible": 1709287000, "elapsed": 3600, "limit": {"set": True, "infinite": False,
             "number": 120}, "suspended": 0},
    "state": {"current": ["COMPLETED"]}, "required": {"CPUs": 4},
    "tres": {"requested": [{"type": "cpu", "count": 4}], "allocated": []},
}  # fmt: skip
JOB_FIELDS = [*JOB, *(f"time.{name}" for name in JOB["time"]), "state.current", "required.CPUs"]


def json_document(changes):
    """What sacct --json prints of one job; values are texts, and numbers where they are some."""
    job = json.loads(json.dumps(JOB))
    for field, value in changes.items():
        table, _, name = field.rpartition(".")
        whole = int(value) if value.isdecimal() and len(value) < 30 else value
        (job[table] if table else job)[name] = whole
    return json.dumps({"jobs": [job]})


TABLE = {
    "job_id": "1", "user": "ada", "queue": "batch", "application": "cfd", "status": "completed",
    "submit_time": "1709287000", "start_time": "1709287260", "end_time": "1709290860",
    "runtime": "3600", "requested_walltime": "7200", "requested_processors": "4",
    "requested_memory": "4096", "exit_code": "0", "interactive": "", "cluster": "hill",
    "work_dir": "/home/ada", "qos": "high", "gpus": "2", "array_size": "4",
    "features": '{"size":1}',
}  # fmt: skip


def table(changes):
    """A table with the columns of ``walltimed export``."""
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(TABLE)
    rows.writerow((TABLE | changes).values())
    return written.getvalue()


WRITERS = {
    "sacct": ("sacct", in_columns("|"), [*CELLS]),
    "unit separator": ("sacct", in_columns("\x1f"), [*CELLS]),
    "three characters": ("sacct", in_columns("^|^"), [*CELLS]),
    "quoted": ("sacct", in_columns(",", '"'), [*CELLS]),
    "padded": ("sacct", in_columns(" | "), [*CELLS]),
    "pbs": ("pbs", pbs_line, [*PBS]),
    "swf": ("swf", swf_line, [str(place) for place in range(18)]),
    "csv": ("csv", table, [*TABLE]),
    "json": ("sacct", json_document, JOB_FIELDS),
}
VALUES = (
    "", "Unknown", "None", "UNLIMITED", "Partition_Limit", "INVALID", "-1", "0", "4294967294",
    str(2**32), str(2**64 - 2), "1e99", "nan", "ünïcode-名", "\x00", "a|b", "a\nb",
    "1970-01-01T00:00:00", "2106-02-07T06:28:15", "yesterday", "9" * 300, '"', "'",
)  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_every_reader_reads_or_names_every_odd_value(tmp_path, writer):
    format_, written, fields = WRITERS[writer]
    file = tmp_path / "log"
    for field in fields:
        for value in VALUES:
            file.write_bytes(written({field: value}).encode())
            try:
                history = READERS[format_](str(file), None, UTC)
            except SkippedError:  # the whole file is refused with a reason
                continue
            runs = list(history.reports)
            lost = len(history.rejected) + sum(history.left_out.values())
            assert len(runs) + lost >= 1, f"nothing is said of {field} {value!r}"
            for report in runs:
                run, job = report.completion, report.completion.submission
                assert 0 <= run.runtime <= run.end_time - run.start_time < LATEST_TIME
                assert 0 < job.requested_walltime < 1e15
                assert job.submit_time <= run.start_time
                assert job.requested_processors is None or 1 <= job.requested_processors < 2**31


@pytest.mark.parametrize("writer", WRITERS)
def test_every_reader_reads_the_plain_record(tmp_path, writer):
    format_, written, _ = WRITERS[writer]
    file = tmp_path / "log"
    file.write_text(written({}))
    assert seen_format(file.read_bytes()) == format_
    history = READERS[format_](str(file), None, UTC)
    (report,) = history.reports
    assert (report.completion.runtime, report.completion.submission.requested_processors) == (
        3600,
        4,
    )
    assert not history.doubts


TEN = 1709287200  # 2024-03-01T10:00:00Z


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2024-03-01T10:00:00", TEN - 3600),  # in the zone of sacct
        ("2024-03-01 10:00:00", TEN - 3600),
        ("2024-03-01T10:00:00Z", TEN),
        ("2024-03-01T10:00:00+0100", TEN - 3600),
        ("2024-03-01 10:00:00 -05:30", TEN + 19800),
        ("2024-03-01T10:00:00+01", TEN - 3600),
        ("2024-03-01T10:00:00.250Z", TEN + 0.25),
        ("2024-03-01T10:00:00,5+0100", TEN - 3599.5),
        (str(TEN), TEN),
        (f" {TEN}.5 ", TEN + 0.5),
    ],
)
def test_times_are_read_in_every_form_that_sites_have(written, seconds):
    row = {name.lower(): cell for name, cell in CELLS.items()}
    row |= {"submit": written, "start": written, "end": str(TEN + 90000), "elapsedraw": ""}
    found = completion_of(row, zone=ZoneInfo("Europe/Berlin")).completion
    assert (found.submission.submit_time, found.start_time) == (seconds, seconds)


NO_TIMES = ["yesterday", "01 Mar 10:00", "Fri 03/01/24, 10:00", "2024-02-30T10:00:00"]


@pytest.mark.parametrize("value", NO_TIMES)
@pytest.mark.parametrize("name", ["Submit", "Start", "End"])
def test_another_form_is_refused_with_line_field_and_value(name, value):
    text = in_columns("|")({name: value})
    ((line, found),) = read_sacct(text.splitlines(keepends=True))
    assert (line, found.reason) == (2, Reason.NO_TIME)
    assert found.reason.is_damage
    assert (name.lower() in str(found), value in str(found)) == (True, True)


@pytest.mark.parametrize(
    ("start", "end", "elapsed"),
    [
        ("2024-10-27T02:30:00", "2024-10-27T02:30:00", 3600),
        ("2024-10-27T02:50:00", "2024-10-27T02:10:00", 1200),
        ("2024-03-31T02:30:00", "2024-03-31T03:30:00", 3600),  # another zone's
        ("2024-03-31T01:30:00", "2024-03-31T03:30:00", 3600),
    ],
)
def test_nights_of_the_clock_change_have_the_elapsed_time(start, end, elapsed):
    row = {name.lower(): cell for name, cell in CELLS.items()}
    row |= {"submit": start, "start": start, "end": end, "elapsedraw": str(elapsed)}
    found = completion_of(row, zone=ZoneInfo("Europe/Berlin")).completion
    assert found.runtime == found.end_time - found.start_time == elapsed


EXPORT = (ODD / "xdmod-export-25-columns.log").read_text()


def test_exports_of_the_oldest_releases_are_read():
    (report,) = READERS["sacct"](str(ODD / "xdmod-export-25-columns.log"), None, UTC).reports
    job = report.completion.submission
    assert (job.user, job.application, job.requested_processors) == ("ada", "name", 48)
    assert (job.requested_walltime, report.completion.runtime) == (51600, 50449)
    assert len(OLDEST_XDMOD_COLUMNS) == len(XDMOD_COLUMNS) - 1


def test_a_name_with_a_line_break_spoils_no_export():
    second = EXPORT.replace("4107219", "4107220")
    lines = (EXPORT.rstrip("\n") + "\nof two lines\n" + second).splitlines(keepends=True)
    (first, run), (other, _) = read_sacct(lines)
    assert (first, other, run.completion.submission.application) == (1, 3, "name?of two lines")


@pytest.mark.parametrize(
    "file", ["sacct-quoted.csv", "sacct-separator-of-three.txt", "sacct-times-with-offset.txt"]
)
def test_files_of_sites_are_read(file):
    assert seen_format((ODD / file).read_bytes()) == "sacct"
    history = READERS["sacct"](str(ODD / file), None, UTC)
    assert (history.count > 0, history.rejected, history.left_out) == (True, [], {})


def test_a_quoted_cell_may_hold_separators_and_line_breaks():
    text = in_columns(",", '"')({"JobName": "one,\ntwo"})
    ((line, found),) = read_sacct(text.splitlines(keepends=True))
    assert (line, found.completion.submission.application) == (2, "one,?two")


def test_a_log_that_was_packed_with_bzip2_is_read():
    file = ODD / "pbs-bzip2.log.bz2"
    assert seen_format(beginning_of(file)) == "pbs"
    assert READERS["pbs"](str(file), None, UTC).count == 1


def test_gpus_of_pbs_are_counted_for_each_node():
    line = pbs_line({"Resource_List.ngpus": "8", "Resource_List.nodect": "2"})
    ((_, found),) = read_accounting([line])
    assert found.gpus == (2, 4)


def test_what_export_writes_is_read(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_bytes(SAMPLES["csv"][0])
    (report,) = READERS["csv"](str(file), None, UTC).reports
    run, job = report.completion, report.completion.submission
    write_table([table_of([EndedRun(run, None)])], tmp_path / "again.csv")
    [row], [again] = (
        csv.DictReader(text.splitlines())
        for text in (file.read_text(), (tmp_path / "again.csv").read_text())
    )
    assert again == row | dict.fromkeys(set(again) - set(row), "")
    (other,) = READERS["csv"](str(tmp_path / "again.csv"), None, UTC).reports
    assert other == report
    assert (job.application, run.runtime, run.status) == ("=1+1, two", 500, Status.COMPLETED)
    assert run.interactive


@pytest.mark.parametrize(
    ("changes", "interactive"),
    [
        ({"SubmitLine": "salloc -t 60 -J x"}, True),
        ({"SubmitLine": "/usr/bin/srun -p short --pty bash"}, True),
        ({"SubmitLine": "srun -n 4 ./cfd --pty"}, False),
        ({"JobName": "interactive"}, True),
        ({"JobName": "sys/dashboard/sys/bc_desktop"}, True),
        ({"JobName": "spawner-jupyterhub"}, True),
        ({"Partition": "gpu-interactive"}, True),
        ({"Partition": "noninteractive"}, False),
        ({"SubmitLine": "sbatch job.sh"}, False),
        ({"JobName": "hyperactive"}, False),
    ],
)
def test_interactive_sessions_of_slurm_are_known(changes, interactive):
    ((_, found),) = read_sacct(in_columns("\x1f")(changes).splitlines(keepends=True))
    assert found.completion.interactive is interactive


@pytest.mark.parametrize(("name", "interactive"), [("STDIN", True), ("cfd", False)])
def test_interactive_sessions_of_pbs_are_known(name, interactive):
    ((_, found),) = read_accounting([pbs_line({"jobname": name})])
    assert found.completion.interactive is interactive


def test_a_last_line_that_was_cut_short_is_named():
    history = READERS["pbs"](str(ODD / "pbs-cut-last-line.log"), None, UTC)
    assert (history.count, [each.line for each in history.rejected]) == (1, [2])


@pytest.mark.parametrize(
    ("header", "start", "doubts"),
    [
        ("", 0, {NO_UNIX_START: 2}),
        ("; UnixStartTime: 1.7e9\n", 1_700_000_000, {}),
        ("; UnixStartTime: 1700000000 (a comment)\n", 1_700_000_000, {}),
    ],
)
def test_a_log_without_the_time_of_its_start_is_named(tmp_path, header, start, doubts):
    file = tmp_path / "log.swf"
    file.write_text(header + (ODD / "swf-without-epoch.swf").read_text())
    history = READERS["swf"](str(file), None, UTC)
    assert next(iter(history.reports)).completion.start_time == start + 10
    assert history.doubts == doubts


@pytest.mark.parametrize(
    ("beginning", "command"),
    [
        (b"\x28\xb5\x2f\xfd\x24", "zstd -dc"),
        (b"PK\x03\x04", "unzip -p"),
        (b"x" * 257 + b"ustar\x00", "tar -xOf"),
    ],
)
def test_what_packs_a_file_is_named_with_the_command_that_unpacks_it(tmp_path, beginning, command):
    file = tmp_path / "log"
    file.write_bytes(beginning)
    for reader in READERS.values():
        with pytest.raises(PackedFileError, match=f"{command} {file}"):
            reader(str(file), None, UTC)
    file.write_bytes(gzip.compress(beginning))  # such as log.tar.gz
    with pytest.raises(PackedFileError, match=command):
        beginning_of(file)


@pytest.mark.parametrize("field", ["time.submission", "time.start", "time.end"])
def test_a_time_in_another_form_is_named_in_json_too(field):
    (job,) = json.loads(json_document({field: "yesterday"}))["jobs"]
    with pytest.raises(SkippedError, match=f"{field.partition('.')[2]} is 'yesterday'"):
        sacct_completion(json.dumps(job).encode())


@pytest.mark.parametrize("field", ["@submit", "@start", "@end"])
def test_a_time_in_another_form_is_named_in_documents_of_jobcomp(field):
    document = {
        "jobid": 1, "state": "COMPLETED", "total_nodes": 1, "time_limit": 7200, "elapsed": 3600,
        "@submit": "2024-03-01T10:00:00", "@start": "2024-03-01T10:01:00",
        "@end": "2024-03-01T11:01:00",
    }  # fmt: skip
    assert jobcomp_completion(json.dumps(document).encode()).completion.runtime == 3600
    with pytest.raises(SkippedError, match=f"{field} is 'Fri 03/01, 10:00'"):
        jobcomp_completion(json.dumps(document | {field: "Fri 03/01, 10:00"}).encode())
