"""``walltimed replay``, through the same door as the shell's."""

import csv
import gzip
import json
import sys
import warnings
from pathlib import Path

import pytest
from history_samples import SAMPLES
from workloads import synthetic

from predictors.registry import METHODS
from simulator.cli.players import private_service
from simulator.replay.method_spec import usual_methods
from simulator.traces.job_columns import JOB_TYPES
from terminal.client import Client
from terminal.files import read_bytes


@pytest.fixture
def log(tmp_path):
    """Users, applications and 300 jobs."""
    return synthetic(tmp_path / "log.swf.gz", jobs=300, seed=2)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that already runs somewhere."""
    database = tmp_path_factory.mktemp("service") / "history.sqlite3"
    settings = {
        "WALLTIMED_DATABASE_URL": f"sqlite:///{database}",
        "WALLTIMED_SQLITE_SYNCHRONOUS": "normal",
    }
    with private_service(settings=settings) as running:
        with Client(running.url) as client:
            client.wait_until_ready()
        yield running


SAME = (*JOB_TYPES, "method", "answered_by", "basis_jobs", "basis_reason")
"""Columns that do not depend on the way."""


def predictions_in(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(read_bytes(file).decode().splitlines()))


def test_over_http_and_in_process_every_prediction_is_the_same(walltimed, log, tmp_path):
    methods = ("-m", "max-usage", "-m", "last-two", "-m", "knn", "-m", "least-cost")
    methods += ("-m", "percentile:key=user+walltime,min_jobs=3,lower_bound=0")
    covered = []
    for way, name in (((), "http.csv"), (("--in-process",), "bare.csv")):
        code, printed, complaint = walltimed(
            "replay", log, *methods, *way, "--output", name, "--json"
        )
        assert code == 0, complaint
        covered.append([each["coverage"] for each in json.loads(printed)["methods"]])
    over_http, in_process = ([each for each in found if each is not None] for found in covered)
    assert len(over_http) == 1, "only least-cost has intervals"
    assert in_process == pytest.approx(over_http, abs=1 / 300)  # the API answers milliseconds
    predictions, bare = predictions_in(tmp_path / "http.csv"), predictions_in(tmp_path / "bare.csv")
    for one, other in zip(predictions, bare, strict=True):  # the API answers milliseconds
        assert float(one["predicted_walltime"]) == round(float(other["predicted_walltime"]), 3)
        assert {name: one[name] for name in SAME} == {name: other[name] for name in SAME}
        assert not one["lower_50"], "a service would score further answers"
    assert len(predictions) == 5 * 300
    for method in {line["method"] for line in predictions}:
        lines = [line for line in predictions if line["method"] == method]
        adjusted = [
            line for line in lines if line["predicted_walltime"] != line["requested_walltime"]
        ]
        assert len(adjusted) > 50, f"{method} has learned nothing"


def test_several_processes_predict_what_one_predicts(walltimed, log):
    for processes in (1, 2):
        code, printed, complaint = walltimed(
            "replay", log, "--in-process", "--processes", processes,
            "--output", f"{processes}.csv", "--json",
        )  # fmt: skip
        assert code == 0, complaint
        assert [each["method"] for each in json.loads(printed)["methods"]] == usual_methods()
    alone, beside = predictions_in(Path("1.csv")), predictions_in(Path("2.csv"))
    assert len(alone) == 300 * len(usual_methods())
    assert beside == alone


def test_a_service_plays_in_its_own_process(refused, log):
    assert "--processes is for --in-process" in refused("replay", log, "--processes", 2)


def test_a_running_service_scores_what_was_replayed_to_it(walltimed, log, service):
    code, printed, _ = walltimed(
        "replay", log, "--url", service.url, "--cluster", "scored", "-m", "max-usage", "--json"
    )
    assert code == 0
    [replayed] = json.loads(printed)["methods"]
    with Client(service.url) as client:
        methods = json.loads(client.call("GET", "/v1/methods?cluster=scored"))["methods"]
    [score] = [each["score"] for each in methods if each["name"] == "max-usage"]
    assert score["jobs"] == replayed["jobs"] == 300
    for measure in ("mean_absolute_error", "accuracy", "underestimation_rate"):
        assert score[measure] == pytest.approx(replayed[measure])


def test_histories_at_a_running_service_do_not_meet(walltimed, log, service):
    answers = [
        json.loads(walltimed("replay", log, "--url", service.url, "--cluster", name, "--json")[1])
        for name in ("one", "two")
    ]
    errors = [[each["mean_absolute_error"] for each in answer["methods"]] for answer in answers]
    assert len(errors[0]) == len(METHODS)
    assert errors[0] == errors[1]


def test_the_table_has_a_line_for_each_method_and_says_what_was_left_out(walltimed, tmp_path):
    file = tmp_path / "small.swf"
    job = "{} {} 0 60 1 -1 -1 1 600 -1 1 7 1 3 1 -1 -1 -1\n"
    jobs = "".join(job.format(number, 100 * number) for number in range(1, 5))
    file.write_text(jobs + "5 500 0 -1 1 -1 -1 1 600 -1 5 7 1 3 1 -1 -1 -1\n")
    code, printed, _ = walltimed(
        "replay", file, "--in-process", "-m", "requested", "-m", "last-two", "--wide"
    )
    assert code == 0
    assert "4 jobs" in printed
    assert "1 never-ran" in printed
    rows = {line.split()[0]: line.split() for line in printed.splitlines() if line}
    # Errors of 540 s for the requests; last-two knows two jobs from the third on.
    assert rows["requested"][1:6] == ["4", "540.0", "540.0", "0.100", "0.00%"]
    assert rows["last-two"][1:6] == ["4", "270.0", "270.0", "0.550", "0.00%"]


def test_predictions_on_standard_output_stand_there_alone(walltimed, log, tmp_path):
    arguments = ("replay", log, "--in-process", "-m", "last-two", "--limit", 9, "--output")
    code, printed, _ = walltimed(*arguments, "-")
    assert (code, walltimed(*arguments, tmp_path / "file.csv")[0]) == (0, 0)
    assert printed == (tmp_path / "file.csv").read_text()


def test_standard_input_and_a_limit(walltimed, log, monkeypatch):
    class Standard:
        buffer = log.open("rb")

    monkeypatch.setattr(sys, "stdin", Standard)
    with Standard.buffer:
        code, printed, _ = walltimed("replay", "-", "--in-process", "--limit", 20, "--json")
    assert code == 0
    answer = json.loads(printed)
    assert answer["jobs"] == 20
    assert answer["methods"][0]["method"] == "requested"


def test_the_report_is_a_page_with_tables_pictures_and_data(walltimed, log, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code, _, complaints = walltimed("replay", log, "--in-process", "--report", "report")
    assert code == 0
    assert "report/index.html" in complaints
    report = tmp_path / "report"
    page = (report / "index.html").read_text()
    for picture in ("distributions", "errors-per-user"):
        assert f'src="{picture}.png"' in page
        assert (report / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert "max-usage" in (report / "table.txt").read_text()
    assert len(json.loads((report / "report.json").read_text())["methods"]) == len(usual_methods())


def test_malformed_lines_refuse_the_file_or_are_listed(walltimed, refused, log, tmp_path):
    file = tmp_path / "broken.swf"
    file.write_bytes(gzip.decompress(log.read_bytes()) + b"what\n")
    lines = len(file.read_text().splitlines())
    assert f"line {lines}: " in refused("replay", file, "--in-process")
    code, printed, _ = walltimed("replay", file, "--in-process", "--on-error", "skip")
    assert code == 3
    assert f"malformed lines: 1: {lines}" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["missing.swf"], 2, "missing.swf"),
        (["log.swf.gz", "--in-process", "-m", "crystal-ball"], 2, "crystal-ball"),
        (["log.swf.gz", "--in-process", "-m", "max-usage:span=3"], 2, "span"),
        (["log.swf.gz", "--in-process", "-m", "max-usage:window"], 2, "parameter=value"),
        (["log.swf.gz", "-m", "max-usage", "-m", "max-usage:window=3"], 2, "--in-process"),
        (["log.swf.gz", "--url", "http://127.0.0.1:9", "--in-process"], 2, "exclude"),
        (["log.swf.gz", "--url", "http://127.0.0.1:9", "-m", "max-usage:window=3"], 2, "own"),
        (["log.swf.gz", "--url", "http://127.0.0.1:9"], 4, "No service answers"),
        (["log.swf.gz", "--url", "ftp://127.0.0.1"], 2, "http://HOST:PORT"),
        (["log.swf.gz", "--leave-out", "flurries"], 2, "flurries"),
        (["empty.swf"], 2, "no job"),
        (["log.swf.gz", "--in-process", "--output", "-", "--json"], 2, "standard output too"),
        (["log.swf.gz", "--in-process", "--output", "p.tsv"], 2, ".parquet or .arrow"),
    ],
)
@pytest.mark.usefixtures("log")
def test_what_cannot_be_done_is_said_in_one_sentence(walltimed, arguments, code, complaint):
    Path("empty.swf").write_text("; Version: 2.2\n")
    ended, _, complaints = walltimed("replay", *arguments)
    assert ended == code
    assert complaint in complaints
    assert len(complaints.splitlines()) == 1


def test_a_method_that_the_service_does_not_know_fails_with_its_own_sentence(
    walltimed, log, service
):
    code, _, complaints = walltimed("replay", log, "--url", service.url, "-m", "crystal-ball")
    assert code == 1
    assert "422: method" in complaints
    assert "max-usage" in complaints


PLAYED = {
    "replay": ("--in-process", "-m", "last-two", "--json"),
    "simulate": ("--json",),
}


@pytest.mark.parametrize("command", PLAYED)
@pytest.mark.parametrize("format_", SAMPLES)
def test_studies_read_every_format_that_import_reads(walltimed, tmp_path, command, format_):
    for number, content in enumerate(SAMPLES[format_]):
        file = tmp_path / f"log{number}"
        file.write_bytes(content)
        arguments = (*PLAYED[command], "--on-error", "skip")
        code, document, complaints = walltimed(command, file, *arguments)
        assert code in {0, 3}, complaints
        assert json.loads(document)["jobs"] >= 1


TABLE = "id;usr;sub;beg;fin;lim;cpus\n1;ada;1709287200;1709287260;1709290860;120;8\n"
COLUMNS = "id=id,user=usr,submit=sub,start=beg,end=fin,limit=lim:min,cpus=cpus"


@pytest.mark.parametrize("command", PLAYED)
def test_studies_read_any_table_whose_columns_are_named(walltimed, refused, tmp_path, command):
    file = tmp_path / "table.csv"
    file.write_text(TABLE)
    code, document, _ = walltimed(command, file, *PLAYED[command], "--columns", COLUMNS)
    assert (code, json.loads(document)["jobs"]) == (0, 1)
    file.write_text(TABLE.replace("1709287260", "soon"))
    complaint = refused(command, file, *PLAYED[command][:-1], "--columns", COLUMNS)
    assert "line 2: column 4 (beg): start_time is 'soon'" in complaint.replace("\n", " ")


@pytest.mark.parametrize("command", PLAYED)
def test_a_line_that_is_no_job_of_swf_is_named(refused, tmp_path, command):
    (tmp_path / "other.swf").write_text("1 2 3\n")
    assert "other.swf: line 1: 3 fields" in refused(command, tmp_path / "other.swf")


def test_a_machine_that_no_log_names_is_as_large_as_what_ran_on_it(walltimed, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text(TABLE + TABLE.splitlines()[1] + "\n")
    code, document, complaints = walltimed("simulate", file, "--json", "--columns", COLUMNS)
    assert (code, json.loads(document)["processors"]) == (0, 16)
    assert "16 processors count" in complaints
    assert "--processors names another size" in complaints
    named = walltimed("simulate", file, "--json", "--columns", COLUMNS, "--processors", 32)
    assert (json.loads(named[1])["processors"], named[2]) == (32, "")
