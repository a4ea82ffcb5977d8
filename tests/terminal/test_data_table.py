"""Tables of results and their files."""

import csv
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from terminal.console import CommandError
from terminal.data_table import (
    DataTable,
    NoTableError,
    check_table,
    form_of,
    names_in,
    read_columns,
    write_table,
)
from terminal.files import read_bytes

TYPES = {"name": str, "count": int, "seconds": float, "held": bool}


def table(rows=3):
    data = {
        "name": ["ann", None, "=1+1"][:rows],
        "count": [1, None, 3][:rows],
        "seconds": np.array([0.5, np.nan, 2.0])[:rows],
        "held": np.array([True, False, True])[:rows],
    }
    return DataTable(TYPES, data)


def test_pandas_sees_what_is_there_and_what_is_not():
    frame = table().to_pandas()
    assert frame.seconds.tolist()[::2] == [0.5, 2.0]
    assert frame.isna().sum().tolist() == [1, 1, 1, 0]
    assert DataTable(TYPES, dict.fromkeys(TYPES, ())).to_pandas().columns.tolist() == [*TYPES]


def test_arrow_has_the_types_even_of_columns_of_which_nothing_is_known():
    nothing = DataTable(TYPES, {name: [None, None] for name in TYPES})
    schema = pa.table(nothing).schema
    assert [str(each.type) for each in schema] == ["string", "int64", "double", "bool"]
    assert pa.table(nothing)["seconds"].null_count == 2


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz", "t.parquet", "t.arrow"])
def test_a_file_in_parts_is_the_file_in_one(tmp_path, name):
    file = tmp_path / name
    assert write_table([table(0), table(), table(1)], file) == 4
    if "csv" in name:
        lines = read_bytes(file).decode().splitlines()
        assert lines == [",".join(TYPES), "ann,1,0.5,True", ",,,False", "'=1+1,3,2.0,True",
                         "ann,1,0.5,True"]  # fmt: skip
        return
    assert names_in(file) == [*TYPES]
    assert read_columns(file, ["count", "seconds"]) == [[1, None, 3, 1], [0.5, None, 2.0, 0.5]]
    read = pd.read_parquet if name.endswith("parquet") else pd.read_feather
    frame = read(file)
    assert frame.name.tolist()[0] == "ann"
    assert frame["count"].isna().tolist() == [False, True, False, False]


def test_standard_output_gets_text(capsys):
    assert write_table([table()], "-") == 3
    assert capsys.readouterr().out.splitlines()[0] == "name,count,seconds,held"
    assert form_of("-") == ".csv"


@pytest.mark.parametrize("name", ["t.tsv", "t", "csv", "t.parquet.gz", "t.csv.zst"])
def test_another_ending_is_refused_with_those_there_are(tmp_path, name):
    with pytest.raises(CommandError, match=r"\.csv.*\.parquet or \.arrow"):
        table().write(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_unfinished_file_replaces_nothing(tmp_path):
    def torn():
        yield table()
        raise RuntimeError

    for name in ("t.parquet", "t.csv", "t.arrow"):
        file = tmp_path / name
        table(1).write(file)
        before = file.read_bytes()
        with pytest.raises(RuntimeError):
            write_table(torn(), file)
        assert file.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3


def test_without_pyarrow_csv_is_written_and_the_rest_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("terminal.console.find_spec", lambda _: None)
    check_table(tmp_path / "t.csv", "rows")
    for call in (
        lambda: check_table(tmp_path / "t.parquet", "rows"),
        lambda: table().to_arrow(),
        lambda: table().to_pandas(),
    ):
        with pytest.raises(CommandError, match=r"extra tables.*pip install p"):
            call()


def test_a_file_that_is_no_table_is_named(tmp_path):
    for name in ("t.parquet", "t.arrow"):
        file = tmp_path / name
        file.write_bytes(b"what")
        with pytest.raises(NoTableError, match=name):
            names_in(file)


def test_objects_within_objects_become_columns():
    records = [
        {"job": 1, "interval": {"lower": 1.0, "upper": 2}, "nodes": ["a", "b"]},
        {"job": 2.5},
    ]
    found = DataTable.of_records(records)
    assert found.types == {
        "job": float, "interval_lower": float, "interval_upper": int, "nodes": str
    }  # fmt: skip
    first, second = found.rows()
    assert first["nodes"] == '["a", "b"]'
    assert second["interval_lower"] is None
    assert len(DataTable.of_records([])) == 0


def test_what_a_spreadsheet_would_compute_is_quoted_in_csv_alone(tmp_path):
    table().write(tmp_path / "t.csv")
    table().write(tmp_path / "t.parquet")
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert rows[2]["name"] == "'=1+1"
    assert pd.read_parquet(tmp_path / "t.parquet").name[2] == "=1+1"
