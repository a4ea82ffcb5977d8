"""The commands that read what resource managers write down."""

import bz2
import gzip
import io
import json
import lzma
import os
import sqlite3
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from history_samples import SAMPLES
from runs import a_run, predicted, runs_by_job

from service.cli.log_files import recorded_log
from service.store import open_store
from simulator.cli.logs import LogFile
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import prepare

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def walltimed(walltimed, sqlite_url):
    """Runs the command with ``--json`` on a store; gives its exit code and what it printed."""

    def run(*arguments):
        code, printed, complaint = walltimed(*arguments, "--json", "--database-url", sqlite_url)
        document = json.loads(printed)
        return code, complaint if "error" in document else document.get("files", document)

    return run


def stored(url):
    return [run for runs in runs_by_job(url).values() for run in runs]


def test_sacct_rows_are_imported_and_what_they_are_not_is_counted(walltimed, sqlite_url):
    code, (report,) = walltimed("import", "-f", "sacct", str(DATA / "slurm" / "sacct.txt"))
    assert code == 0
    assert report["accepted"] == len(stored(sqlite_url)) == 14
    assert report["left_out"] == {
        "no time limit was requested": 2,
        "unknown end time": 1,
        "the job never ran": 1,
        "a step, not a job": 1,
        "the run ends before it starts": 1,
    }
    assert {run.submission.cluster for run in stored(sqlite_url)} == {"hill"}


@contextmanager
def piped(content):
    """Yield the path of a pipe that holds a content, as ``<(command)`` of a shell gives it."""
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    try:
        yield f"/dev/fd/{reader}"
    finally:
        os.close(reader)


PIPED = (bytes, gzip.compress, bz2.compress, lzma.compress)


@pytest.mark.parametrize("packed", PIPED)
def test_a_pipe_is_read_once_and_its_format_is_seen(walltimed, packed):
    with piped(packed((DATA / "slurm" / "xdmod.txt").read_bytes())) as path:
        code, (report,) = walltimed("import", path)
    assert (code, report["accepted"], report["duplicates"]) == (0, 2, 0)


@pytest.mark.parametrize("packed", PIPED)
@pytest.mark.parametrize("name", ["swf", "sacct", "pbs", "csv"])
def test_simulations_read_a_log_from_a_pipe(packed, name):
    with piped(packed(SAMPLES[name][0])) as path:
        log = recorded_log(LogFile(path=path, quiet=True))
    assert log.format == name
    assert len(log.trace)


def test_a_file_that_is_named_twice_is_read_once(walltimed, monkeypatch):
    content = (DATA / "slurm" / "xdmod.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(content))))
    code, (report,) = walltimed("import", "-", "-")
    assert (code, report["accepted"]) == (0, 2)


@pytest.mark.parametrize(
    ("name", "runs"),
    [("sacct_22.05.json", 2), ("sacct_24.11.json", 3), ("sacct_26.05.json", 3), ("xdmod.txt", 2)],
)
def test_json_of_sacct_and_the_export_for_xdmod_are_recognised(walltimed, name, runs):
    code, (report,) = walltimed("import", str(DATA / "slurm" / name))
    assert (code, report["accepted"]) == (0, runs)


def test_a_compressed_export_for_xdmod_is_imported_under_another_name(
    walltimed, sqlite_url, tmp_path
):
    file = tmp_path / "export.gz"
    file.write_bytes(gzip.compress((DATA / "slurm" / "xdmod.txt").read_bytes()))
    code, (report,) = walltimed("import", "-f", "sacct", "--cluster", "dale", str(file))
    assert (code, report["accepted"]) == (0, 2)
    assert {run.submission.cluster for run in stored(sqlite_url)} == {"dale"}


@pytest.mark.parametrize("separator", ["|", "\x1f", ",", "\t"])
def test_what_sacct_prints_is_recognised_with_its_columns_in_any_order(
    walltimed, tmp_path, separator
):
    rows = [
        "User|JobID|Submit|Start|End|Timelimit|State",
        "carol|7|2031-02-03T04:00:00|2031-02-03T04:05:06|2031-02-03T04:15:06|01:00:00|COMPLETED",
    ]
    file = tmp_path / "sacct.txt"
    file.write_text("\ufeff" + "\n".join(rows).replace("|", separator) + "\n")
    code, (report,) = walltimed("import", str(file))
    assert (code, report["accepted"]) == (0, 1)


def test_jobs_can_be_imported_under_the_name_that_clusters_have_by_default(walltimed, sqlite_url):
    sacct = str(DATA / "slurm" / "sacct.txt")
    code, (report,) = walltimed("import", "-f", "sacct", "--cluster", "default", sacct)
    assert (code, report["accepted"]) == (0, 14)
    assert {run.submission.cluster for run in stored(sqlite_url)} == {"default"}


def test_accounting_logs_are_imported_twice_and_count_once(walltimed):
    file = str(DATA / "pbs" / "accounting.txt")
    _, (first,) = walltimed("import", "-f", "pbs", file)
    _, (again,) = walltimed("import", "-f", "pbs", file)
    assert (first["accepted"], again["accepted"], again["duplicates"]) == (8, 0, 8)


def test_a_file_that_is_cut_short_is_refused_or_its_last_line_skipped(walltimed, tmp_path):
    file = tmp_path / "cut.txt"
    file.write_bytes((DATA / "slurm" / "sacct.txt").read_bytes()[:900])
    code, told = walltimed("import", "-f", "sacct", str(file))
    assert code == 2
    assert "line 4" in told
    code, (report,) = walltimed("import", "-f", "sacct", "--on-error", "skip", str(file))
    assert (code, report["accepted"]) == (3, 2)


def test_local_times_are_read_in_the_zone_that_is_named(walltimed, sqlite_url):
    file = str(DATA / "slurm" / "xdmod.txt")
    walltimed("import", "-f", "sacct", "--time-zone", "Europe/Istanbul", file)
    assert stored(sqlite_url)[0].start_time == 1927857906 - 3 * 3600


@pytest.fixture
def sacct(tmp_path):
    """A command that prints what sacct would, in the form it is asked for."""
    command = tmp_path / "sacct"
    rows = (DATA / "slurm" / "sacct.txt").read_text("utf-8").splitlines()
    (tmp_path / "rows").write_text("\n".join(rows) + "\n", "utf-8")
    command.write_text(
        f'#!/bin/sh\necho "$TZ $SLURM_TIME_FORMAT $@" > {tmp_path}/asked\ncat {tmp_path}/rows\n'
    )
    command.chmod(0o755)
    return command


def test_reconcile_stores_what_is_missing(walltimed, sacct, sqlite_url, tmp_path):
    code, report = walltimed("reconcile", "--sacct", str(sacct), "--days", "2")
    assert code == 0
    assert report["accepted"] == len(stored(sqlite_url)) > 10
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("UTC %s -a -X -D -P --delimiter=\x1f -S 20")
    _, again = walltimed("reconcile", "--sacct", str(sacct))
    assert (again["accepted"], again["duplicates"]) == (0, report["accepted"])


ROWS = """\
JobIDRaw|User|JobName|Partition|Submit|Start|End|TimelimitRaw|State|AdminComment
17|ada|cg|long|1700000030|1700000100|1700000700|120|COMPLETED|wtp=abc
18|ada|cg|long|1700000040|1700000100|1700000700|120|SOMETHING_NEW|
19|ada|cg|long|1700000050|1700000100|1700000700|120|SOMETHING_NEW|
"""


@pytest.mark.parametrize("command", ["import", "reconcile"])
def test_a_run_scores_the_prediction_that_it_names_and_keeps_the_submitted_request(
    walltimed, sqlite_url, tmp_path, sacct, command
):
    run = a_run("17", start=1_700_000_060.0, application="cg", queue="long")
    with closing(open_store(sqlite_url)) as store:
        store.write([], [predicted("abc", run, 900.0, recorded_at=time.time())])
    rows = tmp_path / "rows"
    rows.write_text(ROWS)
    asked = ("reconcile", "--sacct", str(sacct)) if command == "reconcile" else ("import", rows)
    assert walltimed(*map(str, asked))[0] == 0
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as database:
        assert database.execute("SELECT outcome FROM predictions").fetchall() == [("scored",)]
    (run,) = stored(sqlite_url)
    assert run.submission.requested_walltime == 3600.0, "not the limit at the end"


@pytest.mark.parametrize("command", ["import", "reconcile"])
def test_runs_in_an_unknown_state_are_counted_by_its_name_and_not_learned_from(
    walltimed, sqlite_url, tmp_path, sacct, command
):
    rows = tmp_path / "rows"
    rows.write_text(ROWS)
    asked = ("reconcile", "--sacct", str(sacct)) if command == "reconcile" else ("import", rows)
    _, report = walltimed(*map(str, asked))
    left_out = (report[0] if command == "import" else report)["left_out"]
    assert left_out == {'in the state "SOMETHING_NEW", which this version does not know': 2}
    assert [run.submission.job_id for run in stored(sqlite_url)] == ["17"]


def test_reconcile_says_why_sacct_failed(walltimed, tmp_path):
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\necho 'sacct: a way' >&2\necho 'slurmdbd is down' >&2\nexit 1\n")
    failing.chmod(0o755)
    code, told = walltimed("reconcile", "--sacct", str(failing))
    assert code == 4
    assert "slurmdbd is down" in told
    assert "a way" not in told
    code, told = walltimed("reconcile", "--sacct", str(tmp_path / "missing"))
    assert code == 2
    assert "Slurm" in told
    assert "Errno" not in told


SACCT = """\
JobIDRaw|Submit|Eligible|Start|End|Timelimit|ReqCPUS|State
1|1000000000|1000000000|1000000060|1000000160|00:10:00|4|COMPLETED
2|1000000000|1000003600|1000003660|1000003760|00:10:00|4|COMPLETED
"""

PBS = """\
09/09/2001 01:49:20;E;1.a;ctime=1000000000 etime=1000000000 start=1000000060 end=1000000160 \
Resource_List.walltime=00:10:00
09/09/2001 02:49:20;E;2.a;ctime=1000000000 etime=1000003600 start=1000003660 end=1000003760 \
Resource_List.walltime=00:10:00
"""


@pytest.mark.parametrize(("format_", "text"), [("sacct", SACCT), ("pbs", PBS)])
def test_a_job_with_a_begin_time_waits_from_then_on_in_a_log_that_is_played(
    format_, text, tmp_path
):
    file = tmp_path / "log"
    file.write_text(text)
    trace = recorded_log(LogFile(path=str(file), format=format_)).trace
    assert trace.submit.tolist() == [0, 3600]
    assert trace.wait.tolist() == [60, 60]


GPUS = """\
JobIDRaw|Submit|Start|End|Timelimit|ReqCPUS|AllocTRES|State
1|1000000002|1000000060|1000000160|00:10:00|4|billing=4,cpu=4,node=1|COMPLETED
2|1000000001|1000000060|1000000160|00:10:00|8|cpu=8,gres/gpu:a100=2,gres/gpu=2,node=1|COMPLETED
3|1000000000|1000000060|1000000160|00:10:00|4|cpu=4,gres/gpu:a100=4,gres/gpu:v100=3,node=2|COMPLETED
"""


def test_gpus_of_sacct_are_kept_in_a_log_that_is_played(tmp_path):
    file = tmp_path / "log"
    file.write_text(GPUS)
    trace = recorded_log(LogFile(path=str(file), format="sacct")).trace
    assert trace.nodes.tolist() == [2, 1, 1]  # in the order of submission
    assert trace.gpus.tolist() == [4, 2, 0]
    assert trace.select(trace.gpus > 0).nodes.tolist() == [2, 1]
    file.write_text(SACCT)
    assert recorded_log(LogFile(path=str(file), format="sacct")).trace.gpus is None


ARRAY = """\
JobIDRaw|JobID|Submit|Eligible|Start|End|Timelimit|ReqCPUS|State
10|10_0|1000000000|1000000000|1000000000|1000000600|00:10:00|1|COMPLETED
11|10_1|1000000000|1000000600|1000000600|1000001200|00:10:00|1|COMPLETED
12|10_2|1000000000|1000001200|1000001200|1000001800|00:10:00|1|COMPLETED
"""


def test_a_task_that_its_array_s_throttle_held_is_submitted_when_a_task_before_it_had_ended(
    tmp_path,
):
    file = tmp_path / "log"
    file.write_text(ARRAY)  # --array=0-2%1
    trace = recorded_log(LogFile(path=str(file), format="sacct")).trace
    assert trace.submit.tolist() == [0, 600, 1200]
    semantics = Semantics(policy="slurm")
    played = simulate(prepare(trace, processors=3), semantics, Estimates.named("requested"))
    assert played.start.tolist() == [0, 600, 1200]  # not all at once on the three processors
