"""``walltimed backtest``, through the same door as the shell's."""

import json
import re
from pathlib import Path

import pytest
from workloads import log_of

from simulator.reports.backtest import UserGain
from simulator.traces.swf import write_swf
from simulator.traces.synth import SyntheticLog, synthesise

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def log(tmp_path):
    """Users, applications and 400 jobs."""
    file = tmp_path / "log.swf.gz"
    write_swf(synthesise(SyntheticLog(jobs=400, seed=5)), file)
    return file


def test_the_page_needs_no_other_file_and_says_what_there_is_to_gain(walltimed, log, tmp_path):
    code, out, _ = walltimed("backtest", log, "--method", "max-usage", "--output", "page.html")
    assert code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count('src="data:image/png;base64,') == 4
    assert not re.search(r'(src|href)="(?!data:)', page)
    for heading in ("In short", "Requests and predictions", "The schedule under your policy"):
        assert f"<h2>{heading}</h2>" in page
    assert re.search(r"Requests are wrong by .* on average, predictions of max-usage by", out)
    assert re.search(r"Of \d+ users with at least 10 jobs \d+ would wait less", out)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.swf.gz", "page.html"]


def test_json_has_every_number_of_the_page(walltimed, log):
    code, out, _ = walltimed("backtest", log, "-m", "max-usage", "-m", "last-two", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["page"] == "backtest.html"
    assert [each["method"] for each in document["methods"]] == [
        "requested", "max-usage", "last-two",
    ]  # fmt: skip
    assert [each["estimates"] for each in document["simulations"]] == [
        "requested", "max-usage", "last-two", "exact",
    ]  # fmt: skip
    assert len(document["verdict"]) == 5


def test_users_gain_the_time_that_all_their_jobs_wait_less():
    gain = UserGain(user=7, jobs=10, wait=300, new_wait=240, slowdown=2, new_slowdown=1)
    assert gain.saved == 600


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--policy", "lottery"), "There is no policy 'lottery'"),
        (("--method", "oracle"), "There is no method 'oracle'"),
        (("--method", "requested"), "Name a method that predicts."),
    ],
)
def test_what_cannot_be_tested_is_said_in_a_sentence(walltimed, log, options, complaint):
    code, _, complained = walltimed("backtest", log, *options)
    assert code == 2
    assert complaint in complained


def test_a_log_without_a_job_that_can_run_is_refused(walltimed, tmp_path):
    write_swf(log_of([(0, 9, 1, 1)], 4), tmp_path / "wide.swf")
    code, _, complaint = walltimed("backtest", tmp_path / "wide.swf")
    assert code == 2
    assert "has no job that can be simulated" in complaint


@pytest.mark.parametrize(
    ("format_", "file", "options"),
    [
        ("sacct", "slurm/sacct.txt", ("--time-zone", "Europe/Istanbul")),
        ("sacct", "slurm/sacct_24.11.json", ()),
        ("pbs", "pbs/accounting.txt", ()),
    ],
)
def test_records_of_resource_managers_are_tested_as_they_are(walltimed, format_, file, options):
    arguments = ("--format", format_, DATA / file, "--processors", 64, *options)
    code, out, _ = walltimed("backtest", *arguments, "-m", "max-usage", "--json")
    assert code == 0
    document = json.loads(out)
    requested, predicted, exact = document["simulations"]
    assert requested["jobs"] == predicted["jobs"] == exact["jobs"] > 0
    page = Path("backtest.html").read_text()
    assert "Machine" in page
    assert all(rule in page for rule, jobs in document["treated"].items() if jobs)


def records_of(tmp_path, users, clusters=("hill",)):
    """What sacct prints of twelve jobs for each user and cluster, one after the other."""
    head, row, *_ = (DATA / "slurm/sacct.txt").read_text().splitlines()
    lines = [
        row.replace("901|901|hill|carol", f"{number}|{number}|{cluster}|{user}")
        for number, (user, cluster) in enumerate((u, c) for u in users for c in clusters)
        for _ in range(12)
    ]
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join([head, *lines]) + "\n")
    return file


def test_users_of_records_keep_their_names_on_the_page(walltimed, tmp_path):
    file = records_of(tmp_path, ("carol", "dave"))
    assert walltimed("backtest", "-f", "sacct", file, "--processors", 16)[0] == 0
    page = Path("backtest.html").read_text()
    assert re.search(r"carol\s+12\s", page)
    assert re.search(r"dave\s+12\s", page)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("-f", "sacct"), "say --processors"),
        (("-f", "lsf", "--processors", "16"), "There is no format 'lsf'; there are swf, sacct"),
        (("-f", "sacct", "--time-zone", "Mars/Olympus"), "no time zone 'Mars/Olympus'"),
    ],
)
def test_what_the_records_do_not_say_is_asked_for(walltimed, tmp_path, options, complaint):
    code, _, complained = walltimed("backtest", records_of(tmp_path, ("carol",)), *options)
    assert code == 2
    assert complaint in complained


def test_records_of_two_clusters_are_two_schedules(walltimed, tmp_path):
    file = records_of(tmp_path, ("carol",), clusters=("hill", "dale"))
    code, _, complaint = walltimed("backtest", "-f", "sacct", file, "--processors", 16)
    assert code == 2
    assert "of the clusters dale, hill" in complaint


def test_damaged_records_are_refused_or_left_out(walltimed, tmp_path):
    file = records_of(tmp_path, ("carol",))
    file.write_text(file.read_text() + "999|hill\n")
    arguments = ("backtest", "-f", "sacct", file, "--processors", 16)
    code, _, complaint = walltimed(*arguments)
    assert code == 2
    assert "No page was written, because of 1 malformed lines" in complaint
    assert walltimed(*arguments, "--on-error", "skip")[0] == 3


def test_what_was_left_out_of_a_log_is_said_on_the_page(walltimed, tmp_path):
    write_swf(log_of([(0, 2, 10, 20), (1, 9, 10, 20), (2, 1, -1, 20)], 4), tmp_path / "log.swf")
    assert walltimed("backtest", tmp_path / "log.swf")[0] == 0
    assert "1; 1 never-ran, 1 too-wide" in Path("backtest.html").read_text()
