import json

import numpy as np
import pytest
from hand_worked_log import run

from predictors.measures import NoJobsError
from predictors.registry import create
from simulator.replay.percentile_schemes import (
    Scheme,
    as_records,
    predictions,
    schemes,
    sweep,
    usable_keys,
)
from simulator.replay.predictions_file import write_predictions
from simulator.replay.trace_replay import InProcess, replay
from simulator.reports import replay_pictures
from simulator.reports.method_summary import (
    HEADS,
    NARROW_LEGEND,
    narrow_table,
    summarise,
    summary_table,
    sweep_table,
    user_numbers,
)
from simulator.reports.replay_report import Report
from simulator.reports.tables import text_table


@pytest.fixture
def played():
    """Two users; each runs four jobs of 20 s that ask for 100."""
    runs = [run(n, 30 * n, 20, user="ab"[n % 2]) for n in range(8)]
    return replay(runs, InProcess({name: create(name) for name in ("requested", "last-two")}))


def test_a_table_aligns_its_columns():
    assert text_table(("name", "n"), [("a", "1"), ("long name", "1,000")]) == (
        "name           n\n"
        "---------  -----\n"
        "a              1\n"
        "long name  1,000\n"
    )  # fmt: skip


def test_every_method_has_a_line(played):
    summaries = summarise(played)
    assert [summary.method for summary in summaries] == ["requested", "last-two"]
    requested, last_two = (summary.row() for summary in summaries)
    assert requested[:10] == [
        "requested", "8", "80.0", "80.0", "0.200", "0.00%", "100.00%", "0.00%", "0.00%", "0.00%",
    ]  # fmt: skip
    # Half of the jobs are predicted exactly; the first two of each user get the request.
    assert last_two[2:10] == [
        "40.0", "40.0", "0.600", "0.00%", "50.00%", "50.00%", "0.00%", "0.00%",
    ]  # fmt: skip
    assert len(requested) == len(HEADS)
    assert "covered" not in summary_table(summaries)


def test_coverage_has_a_column_where_a_method_gives_intervals(played):
    answers = played.answers["last-two"]
    answers.lower[:4], answers.upper[:4] = 10, [15, 25, 25, 25]
    header, _, requested, last_two = summary_table(summarise(played)).splitlines()
    assert header.split()[-4:-3] != ["covered"]
    assert "covered" in header.split()
    assert last_two.split()[10] == "75.00%"
    assert len(requested.split()) == len(last_two.split()) - 1


def test_summaries_are_json(played):
    [requested, _] = [summary.as_dict() for summary in summarise(played)]
    assert requested["method"] == "requested"
    assert requested["mean_absolute_error"] == 80
    assert {"predictions_per_second", "p50_seconds", "p99_seconds"} <= requested.keys()


def test_an_empty_replay_cannot_be_summarised():
    with pytest.raises(NoJobsError):
        summarise(replay([], InProcess({"requested": create("requested")})))


def test_users_are_numbered_and_an_unknown_one_counts(played):
    numbers, count = user_numbers(played)
    assert (numbers.tolist(), count) == ([0, 1] * 4, 2)
    nobody = replay([run(1, 0, 1, user=None)], InProcess({}))
    assert user_numbers(nobody)[1] == 1


def test_every_prediction_is_in_the_file(played, tmp_path):
    write_predictions(played, tmp_path / "predictions.tsv")
    lines = (tmp_path / "predictions.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["job_id", "method", "predicted", "requested", "actual"]
    assert len(lines) == 1 + 2 * 8
    assert lines[-1].split("\t") == ["7", "last-two", "20.0", "100.0", "20.0"]


def test_schemes_are_every_combination_and_write_themselves_as_methods():
    combined = schemes(
        ["user"], percentiles=[50, 85], windows=[30, None], lower_bounds=[0], min_jobs=[10]
    )
    assert [scheme.label for scheme in combined] == [
        "percentile:key=user,percentile=50,window_days=30,lower_bound=0,min_jobs=10",
        "percentile:key=user,percentile=85,window_days=30,lower_bound=0,min_jobs=10",
        "percentile:key=user,percentile=50,window_days=all,lower_bound=0,min_jobs=10",
        "percentile:key=user,percentile=85,window_days=all,lower_bound=0,min_jobs=10",
    ]
    assert combined[0].predictor().parameters["percentile"] == 50


def test_keys_with_a_part_that_no_job_has_are_left_out():
    assert usable_keys([run(1, 0, 1)]) == ["user", "user+walltime"]
    assert usable_keys([run(1, 0, 1, user=None)]) == []


def test_a_lower_percentile_adjusts_more_and_a_bound_underestimates_less():
    # One user's jobs of 100 s run for 10, 40, 10 and 100 s in turn: half of the usages are 0.1.
    runs = [run(n, 200 * n, (10, 40, 10, 100)[n % 4]) for n in range(60)]
    swept = sweep(runs, schemes(["user"], percentiles=[50, 100], windows=[None], min_jobs=[10]))
    median, maximum, bounded = (
        swept[Scheme("user", percentile, None, bound)]
        for percentile, bound in ((50, 0.0), (100, 0.0), (50, 0.5))
    )
    assert maximum.not_adjusted == 1
    # The first ten jobs have too little history; then every second one runs longer than 10 s.
    assert median.not_adjusted == bounded.not_adjusted == pytest.approx(10 / 60)
    assert median.overestimated == median.underestimated == pytest.approx(25 / 60)
    # A bound of 0.5 holds 50 s, which is enough for the twelve jobs of 40 s.
    assert bounded.underestimated == pytest.approx(13 / 60)
    assert median.accuracy > maximum.accuracy
    assert len(sweep_table(swept).splitlines()) == 2 + 4
    assert as_records(swept)[0]["percentile"] == 50


def test_every_scheme_predicts_what_its_own_predictor_would():
    runs = [
        run(n, 40 * n, (10, 40, 10, 100, 0)[n % 5], user=f"u{n % 2}", request=100 + 50 * (n % 3))
        for n in range(120)
    ]
    compared = schemes(["user", "user+walltime"], windows=[1, None])
    requested = np.array([each.submission.requested_walltime for each in runs])
    found = predictions(runs, compared, requested)
    played = replay(runs, InProcess({each.label: each.predictor() for each in compared}))
    for each in compared:
        assert found[each].tolist() == played.answers[each.label].predicted.tolist(), each


def test_a_usage_above_one_counts_as_one():
    runs = [run(n, 1000 * n, 150) for n in range(4)]
    [measured] = sweep(runs, schemes(["user"], percentiles=[100], windows=[None])[:1]).values()
    assert (measured.accuracy, measured.underestimated) == (1.0, 0.0)


def test_requests_beside_the_schemes_count_a_usage_above_one_as_one(monkeypatch, tmp_path):
    runs = [run(n, 1000 * n, 150) for n in range(4)]
    shown = {}

    def note(swept, of_requests, path):  # noqa: ARG001
        shown.update(schemes=[each.accuracy for each in swept.values()], requests=of_requests)

    monkeypatch.setattr(replay_pictures, "accuracy_by_percentile", note)
    played = replay(runs, InProcess({"requested": create("requested")}))
    Report(
        title="t",
        facts={},
        played=played,
        summaries=summarise(played),
        by_percentile=sweep(runs, schemes(["user"], percentiles=[100], windows=[None])[:1]),
    ).write(tmp_path)
    assert shown == {"schemes": [1.0], "requests": 1.0}


def test_a_report_is_written_for_a_log_without_users_keys_or_learning(tmp_path):
    runs = [run(1, 0, 0, user=None)]
    played = replay(runs, InProcess({"requested": create("requested")}))
    Report(
        title="<one> job",
        facts={"left out": "a & b"},
        played=played,
        summaries=summarise(played),
        by_percentile={},
    ).write(tmp_path / "deep" / "report")
    page = (tmp_path / "deep" / "report" / "index.html").read_text()
    assert "&lt;one&gt; job" in page
    assert "a &amp; b" in page
    assert "errors-per-user" not in page
    assert "accuracy-by-percentile" not in page


def test_a_report_holds_its_schemes(played, tmp_path):
    swept = sweep(played.runs, schemes(["user"], percentiles=[50], windows=[None], min_jobs=[1]))
    Report(
        title="t",
        facts={},
        played=played,
        summaries=summarise(played),
        by_percentile=swept,
        swept=swept,
    ).write(tmp_path)
    data = json.loads((tmp_path / "report.json").read_text())
    assert len(data["sweep"]) == len(data["accuracy_by_percentile"]) == 2
    assert "percentile  accuracy" in (tmp_path / "table.txt").read_text()
    assert np.isclose(data["methods"][0]["accuracy"], 0.2)


def test_the_narrow_table_fits_80_columns_and_says_times_as_people_do(played):
    table = narrow_table(summarise(played))
    assert max(map(len, table.splitlines())) <= 80
    assert max(map(len, NARROW_LEGEND.splitlines())) <= 88
    assert "1 min" in table
