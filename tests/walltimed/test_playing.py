"""Replays, simulations and backtests from Python."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pytest
from command_line import walltimed as command  # noqa: F401 - a fixture
from history_samples import SAMPLES

import walltimed
from predictors.jobs import Basis, Interval, Prediction
from predictors.registry import create
from simulator.replay.method_spec import MethodSpecError
from simulator.traces.cleaning import NoJobError
from terminal.progress import Bar
from walltimed.methods import AnswerError

pytestmark = pytest.mark.lengthy(15)


class Half:
    """Half of the request, until a run has ended; then the last runtime, whoever's."""

    def __init__(self):
        self.last = None

    def predict(self, job):
        return job.requested_walltime / 2 if self.last is None else self.last

    def observe(self, run):
        self.last = run.runtime


class Sure:
    """Answers with an interval."""

    def predict(self, job):
        return Prediction(
            predicted_walltime=job.requested_walltime,
            requested_walltime=job.requested_walltime,
            method="sure",
            basis=Basis(jobs=0, reason="hope"),
            interval=Interval(lower=0.0, upper=job.requested_walltime, coverage=0.9),
        )

    def observe(self, run):
        pass


def test_a_replay_is_what_the_command_prints_and_writes(log_file, command, tmp_path):  # noqa: F811
    file = tmp_path / "out.csv"
    methods = ["least-cost", "max-usage:window=2"]
    code, printed, _ = command(
        "replay", log_file, "--in-process", "-m", methods[0], "-m", methods[1],
        "--output", file, "--json",
    )  # fmt: skip
    assert code == 0
    played = walltimed.replay(log_file, methods)
    written = list(csv.DictReader(io.StringIO(file.read_text())))
    frame = played.to_pandas()
    assert len(written) == len(played) == len(frame) == 600
    assert [each["method"] for each in written] == frame.method.tolist()
    for name in ("predicted_walltime", "likely", "lower_50", "upper_95", "outlived_10", "runtime"):
        values = [float(each[name] or "nan") for each in written]
        assert np.array_equal(values, frame[name], equal_nan=True), name
    said = {each["method"]: each for each in json.loads(printed)["methods"]}
    for label, summary in played.measures.items():
        assert summary.measures.mean_absolute_error == said[label]["mean_absolute_error"]
    table = played.summary().to_pandas()
    assert table.mean_absolute_error.tolist() == [
        said[label]["mean_absolute_error"] for label in methods
    ]
    assert "least-cost" in str(played)
    levels = walltimed.replay(log_file, "least-cost", limit=50, levels=False).to_pandas()
    assert levels.lower_50.isna().all()
    assert levels.lower_90.tolist() == frame[frame.method == "least-cost"].lower_90.tolist()[:50]


def test_wider_intervals_hold_narrower_ones_and_rarer_underestimates_are_longer(log):
    frame = walltimed.replay(log, "attention").to_pandas()
    known = frame[frame.basis_reason == "history"]
    assert len(known) > 50
    for inner, outer in (("50", "80"), ("80", "90"), ("90", "95")):
        assert (known[f"lower_{outer}"] <= known[f"lower_{inner}"] + 1e-6).all()
        assert (known[f"upper_{inner}"] <= known[f"upper_{outer}"] + 1e-6).all()
    assert (known.outlived_20 <= known.outlived_10 + 1e-6).all()
    assert (known.outlived_10 <= known.outlived_5 + 1e-6).all()


def test_a_class_with_two_verbs_is_a_method(log):
    played = walltimed.replay(log, {"mine": Half, "sure": Sure, "user": "last-two"})
    assert played.methods == ["mine", "sure", "user"]
    frame = played.to_pandas()
    mine, sure = (frame[frame.method == label] for label in ("mine", "sure"))
    first = mine.iloc[0]
    assert first.predicted_walltime == first.requested_walltime / 2
    assert first.basis_reason == "cold-start"
    assert (mine.predicted_walltime <= mine.requested_walltime).all()
    assert sure.upper_90.tolist() == sure.requested_walltime.tolist()
    assert sure.basis_reason.unique().tolist() == ["hope"]


def test_every_play_begins_with_a_new_object(log):
    once, again = (walltimed.replay(log, Half).to_pandas() for _ in range(2))
    assert once.predicted_walltime.tolist() == again.predicted_walltime.tolist()


def test_classes_of_users_play_in_several_processes_too(log):
    methods = {"mine": Half, "user": "last-two"}
    alone = walltimed.replay(log, methods, processes=1).to_pandas()
    beside = walltimed.replay(log, methods, processes=2).to_pandas()
    assert beside.equals(alone)


class Lost:
    def predict(self, _job):
        return float("nan")

    def observe(self, run):
        pass


class LastTwo:
    """The method of that name, as a class of a user."""

    def __init__(self):
        self.method = create("last-two")

    def predict(self, job):
        return self.method.predict(job).predicted_walltime

    def observe(self, run):
        self.method.observe(run)


class Wordy(Lost):
    def predict(self, _job):
        return "60"


class Mute:
    def predict(self, _job):
        return 1.0


@pytest.mark.parametrize(
    ("methods", "error", "sentence"),
    [
        (Lost, AnswerError, "Lost predicted nan"),
        (Mute, TypeError, "Mute has no method observe"),
        ([Half()], TypeError, "give its class"),
        ([], ValueError, "Name a method"),
        (Half(), TypeError, "give its class"),
        (None, TypeError, "None is an object"),
        ({1: Half}, TypeError, "A label is text, not 1"),
        (Wordy, AnswerError, "Wordy predicted '60'"),
        ([Half, Half], ValueError, "one label"),
        ("max-usage:window=none", ValueError, "window"),
        ("max-usage:window", MethodSpecError, "parameter=value"),
        ("crystal-ball", ValueError, "crystal-ball"),
    ],
)
def test_what_is_no_method_is_named(log, methods, error, sentence):
    with pytest.raises(error, match=sentence):
        walltimed.replay(log, methods)


def test_a_simulation_by_a_class_is_one_by_its_predictions(log):
    exact = walltimed.simulate(log, estimates="exact")
    assert walltimed.simulate(log, "easy", "requested").measures.wait > 0
    mine = walltimed.simulate(log, estimates=Half)
    assert "Half" in repr(mine)
    frame = mine.to_pandas()
    assert len(frame) == len(mine) == len(exact)
    first = frame.iloc[0]
    assert first.estimate == int(first.requested_walltime / 2)
    assert (frame.simulated_start - frame.simulated_wait).tolist() == pytest.approx(
        np.floor(frame.submit_time).tolist()
    )
    assert frame.simulated_wait.mean() == pytest.approx(mine.measures.wait)
    assert mine.rules()["Estimates"].startswith("Half")


ANSWERED = (
    "answered_by", "predicted_walltime", "likely", "mean_walltime", "lower_90", "upper_90",
    "basis_jobs", "basis_reason",
)  # fmt: skip
"""What a method answered, under the same names in every table."""


def test_every_table_of_jobs_holds_the_whole_answer_of_the_method(log, log_file, command, tmp_path):  # noqa: F811
    simulated = walltimed.simulate(log, estimates="least-cost").to_pandas()
    assert (simulated.predicted_walltime - simulated.estimate).between(-0.01, 1).all()
    known = simulated[simulated.basis_reason == "history"]
    assert len(known) > 50
    assert (known.lower_90 <= known.likely).all()
    assert (known.likely <= known.upper_90).all()
    assert (known.basis_jobs > 0).all()
    assert set(simulated.answered_by) == {"least-cost"}
    file = tmp_path / "simulated.csv"
    code, _, complaint = command(
        "simulate", log_file, "--estimates", "least-cost", "--estimates", "exact", "-o", file
    )
    assert code == 0, complaint
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    by_method, exact = rows[: len(log)], rows[len(log) :]
    for name in ANSWERED[1:7]:
        values = [float(each[name] or "nan") for each in by_method]
        assert np.array_equal(values, simulated[name], equal_nan=True), name
        assert {each[name] for each in exact} == {""}
    jobs = walltimed.backtest(log, "least-cost", compare_with=Half, shake=1).jobs().to_pandas()
    assert jobs[jobs.estimates.isin(["requested", "exact"])][[*ANSWERED]].isna().all(axis=None)
    by_method = jobs[jobs.estimates == "least-cost"]
    assert (by_method.predicted_walltime - by_method.estimate).between(-0.01, 1).all()
    assert by_method.upper_90.notna().sum() > 50
    own = jobs[jobs.estimates == "Half"]
    assert set(own.answered_by) == {"Half"}
    assert own.upper_90.isna().all()
    assert own.basis_jobs.max() > 50


@pytest.mark.parametrize("number", [0, -1, 2.5, "10", True])
def test_what_is_no_number_of_something_is_named(log, number):
    said = f"must be a whole number of at least 1, not {number!r}"
    for argument in ("limit", "processes"):
        with pytest.raises(ValueError, match=f"{argument} {said}"):
            walltimed.replay(log, "requested", **{argument: number})
        with pytest.raises(ValueError, match=f"{argument} {said}"):
            walltimed.backtest(log, "last-two", **{argument: number})
    for argument in ("limit", "processors", "cores_per_node"):
        with pytest.raises(ValueError, match=f"{argument} {said}"):
            walltimed.simulate(log, **{argument: number})
    with pytest.raises(ValueError, match="shake must be a whole number of at least 0, not -1"):
        walltimed.backtest(log, "last-two", shake=-1)


@pytest.mark.parametrize("play", [walltimed.replay, walltimed.simulate, walltimed.backtest])
def test_progress_is_shown_where_it_is_asked_for_and_changes_nothing(log, play, monkeypatch):
    bars = []
    start = Bar.start
    monkeypatch.setattr(Bar, "start", lambda bar: (bars.append(bar), start(bar)))
    quiet = play(log, limit=100)
    assert not any(bar._logs or not bar.disable for bar in bars)
    bars.clear()
    shown = play(log, limit=100, progress=True)
    assert bars
    assert all(bar._logs or not bar.disable for bar in bars)
    assert all(bar.tasks[0].finished for bar in bars)
    assert quiet.to_pandas().equals(shown.to_pandas())


@pytest.mark.parametrize("policy", [None, ["easy"], "easy,conservative"])
def test_a_simulation_has_one_policy(log, policy):
    with pytest.raises(ValueError, match="policy is one name"):
        walltimed.simulate(log, policy)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.arrow"])
def test_a_log_without_jobs_is_a_table_without_rows(log, tmp_path, name):
    none = log.first(0)
    assert none.to_pandas().columns.tolist() == log.to_pandas().columns.tolist()
    assert pa.table(none).num_rows == 0
    assert none.write(tmp_path / name) == 0
    assert (tmp_path / name).stat().st_size > 0


def test_a_policy_or_a_log_that_there_is_not_is_named(log, tmp_path):
    with pytest.raises(ValueError, match="sooner"):
        walltimed.simulate(log, "sooner")
    with pytest.raises(FileNotFoundError):
        walltimed.read_log(tmp_path / "none.swf")
    other = tmp_path / "other.txt"
    other.write_text("neither\n")
    with pytest.raises(walltimed.Error, match="no log that walltimed knows"):
        walltimed.read_log(other)
    empty = tmp_path / "empty.swf"
    empty.write_text("; Version: 2.2\n")
    with pytest.raises(NoJobError):
        walltimed.replay(empty)


def test_a_backtest_has_a_row_for_each_source(log, tmp_path):
    tested = walltimed.backtest(log, "last-two", compare_with=["max-usage"], shake=1, processes=1)
    frame = tested.to_pandas()
    sources = ["requested", "by-request", "last-two", "max-usage", "exact"]
    assert frame.estimates.tolist() == sources
    document = tested.document()
    assert frame.wait_seconds_mean.tolist()[0] == document["today"]["wait_seconds"]["mean"]
    assert tested.verdict == document["verdict"]
    jobs = tested.jobs().to_pandas()
    waits = jobs.groupby("estimates").simulated_wait.mean()
    assert {name: pytest.approx(play[0].wait) for name, play in tested.tested.plays.items()} == (
        waits.to_dict()
    )
    assert (jobs.simulated_end > jobs.simulated_start).all()
    exact = jobs[jobs.estimates == "exact"]
    assert (exact.estimate >= exact.runtime).all()
    assert (jobs.simulated_start >= np.floor(jobs.submit_time)).all()
    assert str(tested).count("max-usage") == 1
    tested.write_page(tmp_path / "page.html")
    assert tested.reason.split(".")[0][:40] in (tmp_path / "page.html").read_text()


def test_a_backtest_takes_classes_as_a_replay_does(log):
    tested = walltimed.backtest(log, Half, compare_with={"user": "last-two"}, shake=1, processes=2)
    assert tested.to_pandas().estimates.tolist() == [
        "requested", "by-request", "Half", "user", "exact"
    ]  # fmt: skip
    jobs = tested.jobs().to_pandas()
    first = jobs[jobs.estimates == "Half"].iloc[0]
    assert first.estimate == int(first.requested_walltime / 2)
    own = walltimed.backtest(log, LastTwo, compare_with="last-two", shake=1).document()
    named = walltimed.backtest(log, "last-two", shake=1).document()
    first, second = own["methods"]
    for name, value in named["methods"][0].items():
        if name not in {"method", "in_force"}:
            assert first[name] == second[name] == value, name
    named["job_pairs_in_order"]["method"] = "LastTwo"
    assert own["job_pairs_in_order"] == named["job_pairs_in_order"]


@pytest.mark.parametrize(
    ("method", "others", "error", "sentence"),
    [
        ("requested", (), walltimed.Error, "requested is played in every backtest"),
        ("last-two", {"exact": Half}, walltimed.Error, "exact is played in every backtest"),
        ("last-two", {"last-two": Half}, walltimed.Error, "Two methods have one label"),
        (["last-two"], (), TypeError, "give its class"),
        (Mute, (), TypeError, "Mute has no method observe"),
        (Half, "crystal-ball", ValueError, "crystal-ball"),
        (Lost, (), AnswerError, "Lost predicted nan"),
    ],
)
def test_what_a_backtest_cannot_play_is_named(log, method, others, error, sentence):
    with pytest.raises(error, match=sentence):
        walltimed.backtest(log, method, compare_with=others, shake=0, limit=50)


def test_names_of_accounting_records_stand_in_the_table(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_bytes(SAMPLES["csv"][0])
    [row] = walltimed.read_log(file).to_pandas().to_dict("records")
    assert (row["job"], row["job_id"], row["user"], row["group"]) == (1, "7", "ada", "g")
    assert (row["project"], row["queue"]) == ("p", "batch")
    assert row["application"] == "=1+1, two"
    [played] = walltimed.replay(file, "requested").to_pandas().to_dict("records")
    assert played.items() >= row.items()


def test_arrow_takes_results_as_they_are(log):
    played = walltimed.replay(log, "requested", limit=10)
    table = pa.table(played)
    assert table.num_rows == 10
    assert table.schema.field("job").type == pa.int64()
    assert table.schema.field("project").type == pa.string()
    assert table["project"].null_count == 10
    assert pa.table(log).num_rows == 300
    assert pa.table(walltimed.simulate(log, limit=10)).num_rows == 10
