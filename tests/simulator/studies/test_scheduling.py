"""The study of schedules: what predictions change, and which goals that reaches."""

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from command_line import played_by_threads  # noqa: F401 - a fixture
from typer.testing import CliRunner
from workloads import log_of, synthetic

from service.cli import app
from simulator.scheduling.estimates import JobEstimates
from simulator.scheduling.semantics import PROFILES
from simulator.studies.scheduling.scheduling_changes import (
    MethodChange,
    ScheduleChange,
    Summary,
    lines_of,
)
from simulator.studies.scheduling.scheduling_plays import (
    POLICIES,
    TODAY,
    Repetition,
    answers,
    play,
)
from simulator.studies.scheduling.scheduling_study import STUDY, runs, tables
from simulator.studies.study import StudyError, play_all


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return synthetic(
        tmp_path_factory.mktemp("traces") / "small-log-1.swf.gz", jobs=400, processors=16, seed=4
    )


@pytest.fixture(scope="module")
def played(trace):
    return [(part, play(part)) for part in runs([trace], None, shake=2, method=["least-cost"])]


def repeated(*measures):
    return [Repetition(*each) for each in measures]


def test_changes_are_counted_repetition_by_repetition():
    before = repeated((100, 10, 500), (200, 10, 1000))
    change = ScheduleChange.between(before, repeated((90, 12, 500), (160, 13, 1500)))
    assert change.wait.mean == pytest.approx(-0.15)
    assert (change.wait.low, change.wait.high) == pytest.approx((-0.2, -0.1))
    assert change.slowdown.mean == pytest.approx(0.25)
    assert change.longest.mean == pytest.approx(1.25)
    assert change.is_worse


def line(wait, slowdown, longest):
    plays = repeated((1, 1, 1)), repeated((1 + wait, 1 + slowdown, longest))
    change = ScheduleChange.between(*plays)
    return MethodChange(
        log="a", estimates="m", rules=TODAY, plays=plays, today=change, alike=change
    )


@pytest.mark.parametrize(
    ("lines", "missed"),
    [
        ([line(-0.2, -0.3, 1.2)], []),
        ([line(-0.2, -0.3, 1.2), line(-0.01, -0.01, 1.0), line(-0.2, -0.3, 1.0)], []),
        ([line(-0.1, -0.3, 1.0)], ["wait"]),
        ([line(-0.2, -0.2, 1.0)], ["slowdown"]),
        ([line(-0.2, -0.3, 1.0), line(-0.2, -0.3, 1.3)], ["longest"]),
        ([line(-0.2, -0.3, 1.0), line(-0.2, -0.3, 1.0), line(0.1, -0.3, 1.0)], ["worse"]),
    ],
)
def test_goals_are_of_the_median_log_and_of_the_worst(lines, missed):
    assert Summary.of(lines).missed == missed


def test_every_source_is_played_under_every_rule_and_requests_gain_nothing_over_themselves(played):
    lines = list(lines_of(played))
    rules = {(policy, profile) for policy in POLICIES for profile in PROFILES}
    for source in ("least-cost", "exact"):
        assert {each.rules for each in lines if each.estimates == source} == rules
    [requested] = [each for each in lines if each.estimates == "requested"]
    assert requested.rules == ("easy-sjbf", "regular")
    assert requested.alike.wait.low == requested.alike.wait.high == 0
    exact = next(e for e in lines if e.estimates == "exact" and e.rules == TODAY)
    assert exact.today == exact.alike
    assert exact.today.slowdown.high < 0


def test_a_method_is_asked_once_and_its_answers_stay_with_their_jobs():
    jobs = [(0, 1, 10, 40, 1), (20, 1, 12, 40, 1), (50, 1, 11, 40, 1), (60, 4, 1, 1, 1)]
    trace = log_of([(0, 5, 1, 1, 1), *jobs], 4)  # the first is too wide
    said = answers(trace, "last-two")
    assert said.estimate.tolist() == [0, 40, 40, 11, 1]
    assert said.median.tolist() == said.estimate.tolist()
    assert said.bound.tolist() == [0, 40, 40, 40, 1]
    exact = answers(trace, "exact")
    assert all((column == exact.estimate).all() for column in JobEstimates(*exact))
    assert np.array_equal(exact.estimate, [0, 10, 12, 11, 1])


def test_the_tables_fit_eighty_columns_and_mark_the_goals(played):
    text = tables(played)
    assert max(map(len, text.splitlines())) <= 80
    assert "small-log: 400 jobs, 3 plays" in text
    assert "reached" in text or "missed" in text


def test_another_process_comes_to_the_same_results(played):
    parts = [part for part, _ in played]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        there = list(play_all(STUDY, parts, executor))
    assert STUDY.records(there) == STUDY.records(played)
    assert STUDY.report(there) == STUDY.report(played)


@pytest.mark.usefixtures("played_by_threads")
def test_the_command_prints_every_change_for_machines_and_draws_them(trace, played, tmp_path):
    arguments = ["experiment", "scheduling", str(trace), "--shake", "2", "--method", "least-cost"]
    result = CliRunner().invoke(app, [*arguments, "--json", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    expected = json.loads(json.dumps(STUDY.records(played)))
    assert {name: found[name] for name in expected} == expected
    pictures = {file.name for file in tmp_path.iterdir()}
    assert {"table.txt", "index.html", "easy-sjbf-guarded-kept.svg"} < pictures


def test_logs_whose_names_begin_alike_are_told_apart():
    paths = map(Path, ("a/my-site-2023.swf", "a/my-site-2024.swf", "HPC2N-2002-2.2-cln.swf"))
    names = [part.log for part in runs(list(paths), None, method=["knn"])[::3]]
    assert names == ["my-site-2023", "my-site-2024", "HPC2N-2002"]
    assert runs([Path("a/log.swf"), Path("b/log.swf")], None)[0].log == "a/log.swf"


def test_the_limit_of_the_longest_name_counts():
    paths = [Path("site.swf"), Path("site-b.swf")]
    parts = runs(paths, None, method=["knn"], first=["site=5", "site-b=7"])
    assert [part.limit for part in parts[::3]] == [5, 7]


def test_what_cannot_be_studied_is_said(trace):
    [limited, *_] = runs([trace], 10, first=["small=20"])
    assert limited.limit == 20
    with pytest.raises(StudyError, match="LOG=JOBS"):
        runs([trace], None, first=["small"])
    with pytest.raises(StudyError, match="No log is named smal-log"):
        runs([trace], None, first=["smal-log=20"])
    with pytest.raises(StudyError, match="There is no method"):
        runs([trace], None, method=["oracle"])
