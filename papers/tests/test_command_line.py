"""``python -m papers`` for studies of small logs."""

import csv
import json

import pytest
from workloads import synthetic

from papers.check import differs, link_logs
from papers.rocchetti.stretches import CURIE, LOGS
from simulator.reports.tables import TERMINAL


@pytest.fixture
def logs(tmp_path):
    """The log of one study."""
    synthetic(tmp_path / LOGS[CURIE].pattern, jobs=300, processors=4096, seed=3)
    return tmp_path


def test_one_process_and_several_come_to_the_same_table(papers, logs):
    words = ("rocchetti", logs, "--table", 5, "--processes")
    alone, several = papers(*words, 1), papers(*words, 2)
    assert alone[0] == several[0] == 0
    assert alone[1] == several[1]
    assert "Table 5: mean waits by scenario" in alone[1]
    assert max(map(len, alone[1].splitlines())) <= TERMINAL


def test_the_runs_behind_a_table_are_printed_for_machines_and_written(papers, logs):
    words = ("rocchetti", logs, "--table", 5, "--processes", 1)
    [(name, records)] = json.loads(papers(*words, "--json")[1])["tables"].items()
    assert name == "scenarios"
    assert {each["estimates"] for each in records} == {"exact", "requested"}
    assert all(each["wait"] >= 0 for each in records)
    stretches = {(each["policy"], each["digest"]) for each in records}
    assert len(records) == 6 * len(stretches)
    assert papers(*words, "--runs")[0] == 0
    with (logs / "rocchetti-runs-scenarios.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["wait"]) for row in rows] == [each["wait"] for each in records]


def test_all_exhibits_are_printed_and_none_is_written_unless_it_is_asked_for(papers, logs):
    code, printed, complaint = papers("rocchetti", logs, "--limit", 60, "--processes", 1)
    assert code == 3  # without Gaia's log there is no Figure 4
    assert "needs Gaia's log" in complaint
    for title in ("Fig. 1:", "Fig. 3:", "Table 2:", "Table 6:", "Findings of the paper"):
        assert title in printed
    assert "the first 60 jobs" in printed
    assert [path.name for path in logs.iterdir()] == [LOGS[CURIE].pattern]


def test_a_missing_log_is_named(papers, logs):
    code, _, complaint = papers("klusacek", logs)
    assert code == 2
    assert "lacks CTC-SP2-1996-3.1-cln.swf.gz, SDSC-SP2-1998-4.2-cln.swf.gz" in complaint
    assert papers("xu", logs / "missing.swf")[0] == 2


def test_one_table_of_a_paper_is_made_by_its_number(papers, logs, tmp_path):
    made = tmp_path / "made"
    code, out, _ = papers("rocchetti", logs, "--table", 3, "--output", made)
    assert code == 0
    assert "Table 3: users by group" in out
    assert {path.name for path in made.iterdir()} == {
        "rocchetti-table-3.png",
        "rocchetti-table-3.csv",
    }


def test_a_figure_that_cannot_be_made_is_named_with_those_that_can(papers, logs):
    code, _, complaint = papers("rocchetti", logs, "--figure", 2)
    assert code == 2
    assert "figure 1, figure 3" in complaint


def test_a_figure_whose_log_is_missing_says_which(papers, logs, tmp_path):
    made = ("--figure", 4, "--output", tmp_path / "made")
    code, _, complaint = papers("rocchetti", logs, *made)
    assert code == 2
    assert "needs Gaia's log" in complaint
    assert papers("rocchetti", logs, *made, "--figure", 1)[0] == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [("; MaxProcs: 4\n", "no job that can be played"), ("1 2 3\n", "line 1: ")],
)
def test_a_log_without_jobs_and_a_malformed_one_are_refused_in_a_sentence(
    papers, tmp_path, text, reason
):
    (tmp_path / "log.swf").write_text(text)
    code, printed, complaint = papers("xu", tmp_path / "log.swf", "--table", 2)
    assert (code, printed) == (2, "")
    assert reason in complaint


def test_only_logs_that_kept_exhibits_were_made_with_are_compared(tmp_path):
    names = [LOGS[CURIE].pattern, "UniLu-Gaia-2014-1.swf.gz"]
    for name in (*names, "KIT-FH2-2016-1.swf.gz"):
        (tmp_path / name).touch()
    linked = tmp_path / "linked"
    linked.mkdir()
    link_logs(tmp_path, linked)
    assert sorted(path.name for path in linked.iterdir()) == names


def test_an_exhibit_differs_from_the_kept_one_by_any_number(tmp_path, monkeypatch):
    monkeypatch.setattr("papers.check.KEPT", tmp_path / "kept")
    made, kept = tmp_path / "tang-table-1.csv", tmp_path / "kept" / "tang-table-1.csv"
    assert differs(made) is None
    kept.parent.mkdir()
    kept.write_text("1\n")
    assert differs(made) == "tang-table-1 was not made"
    made.write_text("2\n")
    assert differs(made) == "tang-table-1 differs"
    made.write_text("1\n")
    assert differs(made) is None
    kept.unlink()
    assert differs(made) == "tang-table-1 is not kept"
