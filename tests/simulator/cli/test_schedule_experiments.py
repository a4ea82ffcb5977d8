"""``walltimed experiment`` for the scheduling studies, through the same door as the shell's."""

import json
from unittest.mock import patch

import pytest
from workloads import synthetic

from simulator.reports.tables import TERMINAL
from simulator.studies import STUDIES


@pytest.fixture
def logs(tmp_path):
    """The log of one study."""
    [log] = STUDIES["rocchetti"].logs
    synthetic(tmp_path / log, jobs=300, processors=4096, seed=3)
    return tmp_path


@pytest.mark.usefixtures("played_by_threads")
def test_threads_and_processes_come_to_the_same_table(walltimed, logs, monkeypatch):
    threads = walltimed("experiment", "rocchetti", logs)
    monkeypatch.undo()
    processes = walltimed("experiment", "rocchetti", logs, "--processes", 1)
    assert processes[0] == threads[0] == 0
    assert processes[1] == threads[1]
    assert "Six scenarios" in threads[1]
    assert max(map(len, threads[1].splitlines())) <= TERMINAL


@pytest.mark.usefixtures("played_by_threads")
def test_every_simulation_is_printed_for_machines(walltimed, logs):
    printed = walltimed("experiment", "rocchetti", logs, "--json")[1]
    simulations = json.loads(printed)["simulations"]
    assert len(simulations) == 2 * 20 * 6  # policies, stretches, scenarios
    assert {each["estimates"] for each in simulations} == {"exact", "requested"}
    assert all(each["wait"] >= 0 and each["semantics"] for each in simulations)


def test_a_missing_log_is_named(refused, logs):
    assert "lacks CTC-SP2-1996-3.1-cln.swf.gz, SDSC-SP2-1998-4.2-cln.swf.gz" in refused(
        "experiment", "klusacek", logs
    )


def test_one_table_of_a_paper_is_made_by_its_number(walltimed, logs, tmp_path):
    made = tmp_path / "made"
    code, out, _ = walltimed("experiment", "rocchetti", logs, "--table", 3, "--output", made)
    assert code == 0
    assert "Table 3: users by group" in out
    assert {path.name for path in made.iterdir()} == {
        "rocchetti-table-3.png",
        "rocchetti-table-3.csv",
    }


def test_a_figure_that_cannot_be_made_is_named_with_those_that_can(refused, logs):
    assert "figure 1, figure 3" in refused("experiment", "rocchetti", logs, "--figure", 2)


def test_a_figure_whose_log_is_missing_says_which(walltimed, logs, tmp_path):
    made = ("--figure", 4, "--output", tmp_path / "made")
    code, _, complaint = walltimed("experiment", "rocchetti", logs, *made)
    assert code == 2
    assert "needs Gaia's log" in complaint
    assert walltimed("experiment", "rocchetti", logs, *made, "--figure", 1)[0] == 3


def test_a_directory_is_for_figures_that_are_named(refused, logs, tmp_path):
    assert "name one" in refused("experiment", "rocchetti", logs, "--output", tmp_path / "made")


@pytest.mark.parametrize("study", ["calibration", "wait-prediction"])
def test_a_log_without_a_job_to_use_is_refused_before_another_is_played(walltimed, tmp_path, study):
    header, job = "; MaxNodes: 4\n", "1 0 0 60 2 -1 -1 2 {} -1 1 7 1 1 1 1 -1 -1\n"
    usable, useless = tmp_path / "usable.swf", tmp_path / "useless.swf"
    usable.write_text(header + job.format(600))
    useless.write_text(header + job.format(-1))
    with patch("simulator.studies.study.play_all", side_effect=AssertionError("it was played")):
        code, _, said = walltimed("experiment", study, usable, useless)
    assert code == 2
    assert "useless.swf" in said


def test_a_log_of_an_unknown_machine_is_refused_before_another_is_simulated(walltimed, tmp_path):
    job = "1 0 0 60 2 -1 -1 2 600 -1 1 7 1 1 1 1 -1 -1\n"
    known, unknown = tmp_path / "known.swf", tmp_path / "unknown.swf"
    known.write_text("; MaxNodes: 4\n" + job)
    unknown.write_text("; Computer: Hill\n" + job)
    with patch("simulator.studies.study.play_all", side_effect=AssertionError("it was played")):
        code, _, said = walltimed("experiment", "wait-prediction", known, unknown)
    assert code == 2
    assert "unknown.swf" in said
    assert "; MaxProcs: 1024" in said
