import json

import pytest
from hand_worked_log import run

from predictors.measures import NoJobsError
from predictors.registry import create
from simulator.replay.trace_replay import InProcess, replay
from simulator.reports.method_summary import summarise, summary_table, user_numbers
from simulator.reports.replay_report import distributions, errors_per_user, write_report


@pytest.fixture
def played():
    """Two users; each runs four jobs of 20 s that ask for 100."""
    runs = [run(n, 30 * n, 20, user="ab"[n % 2]) for n in range(8)]
    return replay(runs, InProcess({name: create(name) for name in ("requested", "last-two")}))


def test_every_method_has_a_line(played):
    text = summary_table(summarise(played))
    _, _, requested, last_two = (line.split() for line in text.splitlines()[:4])
    assert requested[:11] == [
        "requested", "8", "80.0", "80.0", "0.200", "0.00%", "4.00",
        "100.00%", "0.00%", "0.00%", "0.00%",
    ]  # fmt: skip
    # Half of the jobs are predicted exactly; the first two of each user get the request.
    assert last_two[2:11] == [
        "40.0", "40.0", "0.600", "0.00%", "2.00", "50.00%", "50.00%", "0.00%", "0.00%",
    ]  # fmt: skip
    assert "in range" not in text


def test_coverage_has_a_column_where_a_method_gives_intervals(played):
    answers = played.answers["last-two"]
    answers.lower[:4], answers.upper[:4] = 10, [15, 25, 25, 25]
    header, _, requested, last_two = summary_table(summarise(played)).splitlines()[:4]
    assert "in range" in header
    assert last_two.split()[11] == "75.00%"
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


def test_distributions_count_the_jobs_that_are_no_longer(played):
    """Runtimes are 20 s and requests 100; half of the predictions are the request."""
    (panel,) = distributions(played).panels
    assert panel.places[-2:] == ["1 min", "2 min"]
    shares = {series.name: series.values for series in panel.series}
    place = panel.places.index("20 s")
    assert [shares[name][place] for name in ("exact", "requested", "last-two")] == [1.0, 0.0, 0.5]
    assert [each[-1] for each in shares.values()] == [1.0, 1.0, 1.0]


def test_errors_are_those_of_tenths_of_the_users_and_of_requests_beside(played):
    by_tenths, closer = errors_per_user(played).panels
    assert [series.name for series in by_tenths.series] == ["requested", "last-two"]
    assert by_tenths.series[0].values[:3] == [80 / 3600, 80 / 3600, None]
    assert by_tenths.series[1].values[:2] == [40 / 3600, 40 / 3600]
    assert closer.series[0].values == [1.0]


def test_a_report_is_written_for_a_log_without_users_keys_or_learning(tmp_path):
    played = replay([run(1, 0, 0, user=None)], InProcess({"requested": create("requested")}))
    facts = {"trace": "<one> job", "left out": "a & b"}
    write_report(tmp_path / "deep" / "report", facts, played, data={})
    page = (tmp_path / "deep" / "report" / "index.html").read_text()
    assert "&lt;one&gt; job" in page
    assert "a &amp; b" in page
    assert "errors-per-user" not in page


def test_a_report_holds_the_data_and_the_table(played, tmp_path):
    write_report(tmp_path, {"trace": "t"}, played, data={"jobs": 8})
    assert json.loads((tmp_path / "report.json").read_text())["jobs"] == 8
    assert "error: mean of" in (tmp_path / "table.txt").read_text()
    assert "error: mean of" in (tmp_path / "index.html").read_text()
