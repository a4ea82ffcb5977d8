"""Files that the history is exported to."""

import csv
import io
import os

import pandas as pd
import pytest
from runs import a_run, predicted, reported

from predictors.jobs import Basis, Interval
from service.cli import export_tables
from service.store import open_store
from simulator.traces.swf import read_swf


@pytest.fixture
def history(sqlite_url):
    """The URL of a store with runs of two clusters."""
    known = {"queue": "short", "application": "a,b", "requested_processors": 4}
    store = open_store(sqlite_url)
    runs = [
        a_run("1", start=2000.0, **known),
        a_run("2", start=1000.0, user="bob", **known),
        a_run("3", start=3000.0, user=None),
        a_run("4", cluster="other"),
    ]
    store.write([reported(*runs)])
    store.close()
    return sqlite_url


def test_an_empty_history_is_called_empty(refused, sqlite_url):
    assert "history is empty" in refused("export", "--format", "swf", "-d", sqlite_url)


def test_csv_has_every_field_and_leaves_empty_what_is_unknown(history, walltimed):
    code, told, complained = walltimed("export", "-d", history, "--cluster", "default")
    assert code == 0
    assert "3 runs" in complained
    rows = list(csv.DictReader(io.StringIO(told)))
    assert [row["job_id"] for row in rows] == ["2", "1", "3"], "in the order of submission"
    assert rows[0]["application"] == "a,b"
    assert rows[0]["runtime"] == "600.0"
    assert rows[2]["user"] == rows[2]["requested_processors"] == ""


@pytest.mark.parametrize("first", "=+-@")
def test_no_name_in_csv_is_a_formula_and_numbers_stay_numbers(sqlite_url, walltimed, first):
    store = open_store(sqlite_url)
    store.write([reported(a_run("1", user=f"{first}1", application="a=b"))])
    store.close()
    row = next(csv.DictReader(io.StringIO(walltimed("export", "-d", sqlite_url)[1])))
    assert (row["user"], row["application"]) == (f"'{first}1", "a=b")
    assert float(row["runtime"]) == 600.0


def test_swf_is_read_back_as_the_same_runs(history, walltimed, tmp_path):
    file = tmp_path / "log.swf"
    options = ("--format", "swf", "--cluster", "default", "-o", file, "-d", history)
    assert walltimed("export", *options)[0] == 0
    trace = read_swf(file)
    assert trace.submit.tolist() == [0.0, 1000.0, 2000.0]
    assert trace.wait.tolist() == [60.0] * 3
    assert trace.run.tolist() == [600.0] * 3
    assert trace.requested_time.tolist() == [3600.0] * 3
    assert trace.user.tolist() == [1, 2, -1]
    assert trace.status.tolist() == [1, 1, 1]
    assert trace.header["UnixStartTime"] == "940"


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "log.SWF.xz"])
def test_a_file_is_of_the_kind_that_its_name_says(history, walltimed, tmp_path, name):
    file = tmp_path / name
    assert walltimed("export", "--cluster", "default", "-o", file, "-d", history)[0] == 0
    assert len(read_swf(file)) == 3
    assert (file.read_bytes()[:1] == b";") is (name == "log.swf"), "compressed as the name says"


def test_a_name_that_says_no_kind_gets_csv(history, walltimed, tmp_path):
    for name in ("runs.csv", "runs", "swf.txt"):
        assert walltimed("export", "-o", tmp_path / name, "-d", history)[0] == 0
        assert (tmp_path / name).read_text().startswith("cluster,job_id,")


@pytest.mark.parametrize("name", ["runs.csv", "runs.swf.gz"])
def test_a_new_file_is_for_its_owner_alone_whatever_the_umask(history, walltimed, tmp_path, name):
    before = os.umask(0)
    try:
        walltimed("export", "--cluster", "other", "-o", tmp_path / name, "-d", history)
        assert os.umask(0) == 0, "the umask was changed for longer"
    finally:
        os.umask(before)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_swf_holds_one_cluster(history, refused):
    assert "default, other" in refused("export", "--format", "swf", "-d", history)


def test_only_runs_of_a_period(history, walltimed):
    assert len(walltimed("export", "--since", "30d", "-d", history)[1].splitlines()) == 1
    assert walltimed("export", "--since", "soon", "-d", history)[0] == 2


@pytest.mark.parametrize("name", ["runs.csv", "runs.csv.gz"])
def test_an_export_that_is_broken_off_leaves_the_file_of_before(
    history, walltimed, tmp_path, monkeypatch, name
):
    (tmp_path / name).write_text("of yesterday")

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(export_tables, "table_of", broken)
    assert walltimed("export", "-o", tmp_path / name, "-d", history)[0] == 130
    assert (tmp_path / name).read_text() == "of yesterday"
    assert not [*tmp_path.glob(".*")]


@pytest.mark.parametrize("name", ["runs.parquet", "runs.arrow", "runs.csv"])
def test_a_table_holds_runs_with_the_predictions_that_they_were_scored_by(
    sqlite_url, walltimed, tmp_path, name
):
    store = open_store(sqlite_url)
    late = a_run("2", start=9000.0)
    levels = {"interval": Interval(lower=60.0, upper=1800.0, coverage=0.8)}
    basis = {"basis": Basis(jobs=3, reason="history"), "underestimation_rate": 0.1}
    store.write([], [predicted("p", late, **levels, **basis)])
    store.write([reported(a_run("1", user=None), late)])
    store.close()
    code, _, complained = walltimed("export", "-o", tmp_path / name, "-d", sqlite_url)
    assert code == 0, complained
    read = {"parquet": pd.read_parquet, "arrow": pd.read_feather, "csv": pd.read_csv}
    frame = read[name.partition(".")[2]](tmp_path / name)
    assert frame.job_id.astype(str).tolist() == ["1", "2"]
    assert frame.predicted_walltime.tolist()[1] == 900.0
    assert frame.method.isna().tolist() == [True, False]
    assert frame.predicted_walltime.isna().tolist() == [True, False]
    names = ["lower", "upper", "coverage", "underestimation_rate", "basis_jobs", "basis_reason"]
    assert frame[names].iloc[1].tolist() == [60.0, 1800.0, 0.8, 0.1, 3, "history"]
    assert frame[names].iloc[0].isna().all()
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_an_empty_history_is_a_table_without_rows(sqlite_url, walltimed, tmp_path):
    file = tmp_path / "runs.parquet"
    assert walltimed("export", "-o", file, "-d", sqlite_url)[0] == 0
    assert pd.read_parquet(file).columns.tolist()[:2] == ["cluster", "job_id"]


def test_a_binary_table_needs_a_file(history, refused):
    assert "--output FILE" in refused("export", "--format", "parquet", "-d", history)
