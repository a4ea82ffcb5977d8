"""``walltimed backtest``, through the same door as the shell's."""

import json
import re
import sys

import pytest
from workloads import log_of

from service.cli import main
from simulator.backtest import UserGain
from simulator.swf import write_swf
from simulator.synth import Workload, synthesise


@pytest.fixture
def walltimed(monkeypatch, capsys, tmp_path):
    """Runs the command; gives its exit code, what it printed and what it complained of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["walltimed", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, printed.err

    return run


@pytest.fixture
def log(tmp_path):
    """Users, applications and 400 jobs."""
    file = tmp_path / "log.swf.gz"
    write_swf(synthesise(Workload(jobs=400, seed=5)), file)
    return file


def test_the_page_needs_no_other_file_and_says_what_there_is_to_gain(walltimed, log, tmp_path):
    code, out, _ = walltimed("backtest", log, "--method", "max-usage", "--output", "page.html")
    assert code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count('src="data:image/png;base64,') == 4
    assert not re.search(r'(src|href)="(?!data:)', page)
    for heading in ("In short", "Requests and predictions", "The schedule under your policy"):
        assert f"<h2>{heading}</h2>" in page
    assert re.search(r"Requests are wrong by .* on average, max-usage would be by", out)
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
