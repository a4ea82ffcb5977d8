"""Files and values as sites have them."""

import csv
import gzip
import io
import json
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from history_samples import SAMPLES
from odd_logs import CELLS, in_columns, json_document, pbs_line

from predictors.jobs import Status
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


def beginning_of(file):
    return Packed(io.BytesIO(file.read_bytes()), str(file), 1 << 16).expanded_beginning()


TEN = 1709287200  # 2024-03-01T10:00:00Z


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2024-03-01T10:00:00", TEN - 3600),  # in the zone of sacct
        ("2024-03-01 10:00:00", TEN - 3600),
        ("2024-03-01T10:00:00Z", TEN),
        ("2024-03-01t10:00:00z", TEN),
        ("2024-03-01T10:00:00+0100", TEN - 3600),
        ("2024-03-01 10:00:00 -05:30", TEN + 19800),
        ("2024-03-01T10:00:00+01", TEN - 3600),
        ("2024-03-01T10:00:00.250Z", TEN + 0.25),
        ("2024-03-01T10:00:00,5+0100", TEN - 3599.5),
        ("2024-03-01T10:00:00 UTC", TEN),
        ("2024-03-01 10:00:00 utc", TEN),
        ("2024-03-01T10:00:00GMT", TEN),
        ("2024-03-01T10:00:00 CET", TEN - 3600),
        ("2024-03-01T10:00:00 America/New_York", TEN + 18000),
        ("2024-03-01T10:00:00.5[Asia/Kolkata]", TEN - 19799.5),
        (str(TEN), TEN),
        (f" {TEN}.5 ", TEN + 0.5),
    ],
)
def test_times_are_read_in_every_form_that_sites_have(written, seconds):
    row = {name.lower(): cell for name, cell in CELLS.items()}
    row |= {"submit": written, "start": written, "end": str(TEN + 90000), "elapsedraw": ""}
    found = completion_of(row, zone=ZoneInfo("Europe/Berlin")).completion
    assert (found.submission.submit_time, found.start_time) == (seconds, seconds)


@pytest.mark.parametrize(("name", "seconds"), [("CEST", 0), ("CET", 3600), ("", 0)])
def test_the_name_of_the_zone_tells_an_hour_that_comes_twice(name, seconds):
    row = {each.lower(): cell for each, cell in CELLS.items()}
    row |= {"start": f"2024-10-27T02:30:00 {name}", "end": "2024-10-28T02:30:00"}
    row |= {"submit": "2024-10-26T02:30:00", "elapsedraw": ""}
    found = completion_of(row, zone=ZoneInfo("Europe/Berlin")).completion
    assert found.start_time == 1729989000 + seconds


NO_TIMES = [
    *(
        f"2024-03-01T10:00:00{zone}"
        for zone in (
            " CEST",
            " EST",
            " PM",
            " Europe",
            "/etc",
            " Europe/Nowhere",
            " ../../etc/passwd",
            " UTC+1",
            " A/" + "b" * 10,
        )
    ),
    "yesterday",
    "1709287260000",
    "1e99",
    "01 Mar 10:00",
    "Fri 03/01/24, 10:00",
    "2024-02-30T10:00:00",
]


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
    job["time"][field.partition(".")[2]] = 1709287260000
    with pytest.raises(SkippedError, match="is '1709287260000', which is no time"):
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
