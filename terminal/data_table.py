"""Tables of results: data frames, Arrow, and files of CSV, Parquet and Arrow."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from terminal.console import (
    STANDARD_OUTPUT,
    CommandError,
    ExitCode,
    cell,
    check_alone,
    check_file,
    need,
)
from terminal.files import text_writer, whole_file

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Values = NDArray[Any] | Sequence[Any]
"""Values of a column, one a row; None and NaN are unknown."""

ARROW_FORMS = (".parquet", ".arrow")
"""Suffixes of binary files, which pyarrow writes."""

ROWS_AT_ONCE = 20_000
"""Rows of a file that are in memory at once where a table comes in parts."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """Rows of a result, kept as columns.

    pandas, polars, DuckDB and others read the table by ``__arrow_c_stream__``.

    Attributes:
        types: ``str``, ``int``, ``float`` or ``bool`` of each column, in order.
        data: the values of each column.
    """

    types: Mapping[str, type]
    data: Mapping[str, Values]

    @classmethod
    def joined(cls, parts: Iterable["DataTable"]) -> "DataTable":
        """Return the rows of tables with the same columns, of which there is at least one."""
        found = [*parts]
        names = found[0].types
        values = {name: _joined([part.data[name] for part in found]) for name in names}
        return cls(names, values)

    @classmethod
    def of_records(
        cls, records: Sequence[Mapping[str, Any]], types: Mapping[str, type] = MappingProxyType({})
    ) -> "DataTable":
        """Return JSON objects as rows.

        An object within an object becomes columns, such as ``interval_lower``; an array is JSON.

        Args:
            types: of columns of which nothing may be known; others are seen from the values.
        """
        rows = [dict(_flat(record)) for record in records]
        names = dict.fromkeys(name for row in rows for name in row)
        values = {name: [row.get(name) for row in rows] for name in names}
        kinds = {name: types.get(name) or _kind_of(column) for name, column in values.items()}
        return cls(kinds, values)

    def __len__(self) -> int:
        return len(next(iter(self.data.values()), ()))

    def __getitem__(self, column: str) -> Values:
        """Return the values of a column."""
        return self.data[column]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*self.types]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as mappings; unknown values are None."""
        for row in zip(*self.lists(), strict=True):
            yield dict(zip(self.types, row, strict=True))

    def lists(self) -> list[list[Any]]:
        """Return the columns as lists of Python's values; None is unknown."""
        return [_listed(self.data[name]) for name in self.types]

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame of pandas, which has to be installed."""
        need("pandas")
        import pandas as pd  # noqa: PLC0415 - an extra

        return pd.DataFrame(
            {
                name: np.array(column, float) if kind is float else column
                for (name, kind), column in zip(self.types.items(), self.lists(), strict=True)
            }
        )

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow, which has to be installed."""
        need("pyarrow")
        import pyarrow as pa  # noqa: PLC0415 - an extra

        kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
        arrays = [
            pa.array(self.data[name], kinds[kind], from_pandas=True)
            for name, kind in self.types.items()
        ]
        return pa.table(arrays, names=self.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an ArrowArrayStream (Arrow's PyCapsule interface)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def write(self, path: str | Path) -> None:
        """Write a file of CSV, Parquet or Arrow, as its name ends.

        Raises:
            CommandError: the name has another ending, or pyarrow is missing.
        """
        write_table([self], path)


def _joined(columns: Sequence[Values]) -> Values:
    if all(isinstance(each, np.ndarray) for each in columns):
        return np.concatenate(columns)
    return [value for column in columns for value in column]


def _flat(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat({f"{name}_{inner}": each for inner, each in value.items()})
        elif isinstance(value, list | tuple):
            yield name, json.dumps(value)
        else:
            yield name, value


def _kind_of(values: Sequence[Any]) -> type:
    """Return the type of a column: float if any number has a fraction, str if all are unknown."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return float
    return kinds.pop() if len(kinds) == 1 else str


def _listed(values: Values) -> list[Any]:
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return [None if value != value else value for value in listed]  # noqa: PLR0124 - NaN


def form_of(path: str | Path) -> str | None:
    """Return the suffix of a table's file: .csv, .parquet or .arrow; None for another file.

    Standard output gets CSV. A file of CSV may be compressed, as its name ends.
    """
    name = str(path)
    if name == STANDARD_OUTPUT:
        return ".csv"
    name = name.removesuffix(".gz").removesuffix(".xz")
    if name.endswith(".csv"):
        return ".csv"
    return next((form for form in ARROW_FORMS if str(path).endswith(form)), None)


def check_table(path: str | Path | None, holds: str, *, as_json: bool = False) -> None:
    """Refuse a file of a table that cannot be written; None is no file.

    Args:
        holds: what the file holds, for the message.

    Raises:
        CommandError: the message says what is in the way.
    """
    if path is None:
        return
    check_alone(str(path), holds, as_json=as_json)
    check_file(path)
    form = form_of(path)
    if form is None:
        raise CommandError(
            f"{path} must end in .csv (or .csv.gz, .csv.xz), .parquet or .arrow.", ExitCode.USAGE
        )
    need("pyarrow", for_=form in ARROW_FORMS)


def write_table(parts: Iterable[DataTable], path: str | Path, *, form: str | None = None) -> int:
    """Write a table that comes in parts of the same columns; ``-`` is standard output.

    The file is complete or absent. In CSV a text that a spreadsheet would compute, such as =1+1,
    has an apostrophe before it.

    Args:
        form: .csv, .parquet or .arrow; None: as the name of the file ends.

    Returns:
        The number of rows.

    Raises:
        CommandError: the name of the file has no such ending, or pyarrow is missing.
    """
    if form is None:
        check_table(path, "the table")
    form = form or form_of(path)
    if form == ".csv":
        return _write_csv(parts, path)
    with whole_file(Path(path)) as unfinished:
        return _write_arrow(parts, unfinished, is_parquet=form == ".parquet")


class NoTableError(ValueError):
    """A file with the name of a table of Parquet or Arrow is none."""

    exit_code = ExitCode.USAGE


def names_in(path: str | Path) -> list[str]:
    """Return the names of the columns of a file of Parquet or Arrow.

    Raises:
        NoTableError: the file is none.
    """
    return [*_read(path, None).column_names]


def read_columns(path: str | Path, names: Sequence[str]) -> list[list[Any]]:
    """Return columns of a file of Parquet or Arrow as lists.

    Raises:
        NoTableError: the file is none.
    """
    table = _read(path, names)
    return [table[name].to_pylist() for name in names]


def _read(path: str | Path, names: Sequence[str] | None) -> "pa.Table":
    need("pyarrow")
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyarrow import feather, parquet  # noqa: PLC0415 - an extra

    read = parquet.read_table if str(path).endswith(".parquet") else feather.read_table
    try:
        return read(str(path), columns=None if names is None else [*names])
    except pa.ArrowInvalid as error:
        raise NoTableError(f"{path} is no table of Parquet or Arrow: {error}") from error


def _write_csv(parts: Iterable[DataTable], path: str | Path) -> int:
    rows = 0
    with text_writer(path, encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        for number, part in enumerate(parts):
            if number == 0:
                lines.writerow(part.columns)
            kinds = part.types.values()
            columns = [
                map(cell, values) if kind is str else values
                for kind, values in zip(kinds, part.lists(), strict=True)
            ]
            lines.writerows(zip(*columns, strict=True))
            rows += len(part)
    return rows


def _write_arrow(parts: Iterable[DataTable], path: Path, *, is_parquet: bool) -> int:
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet  # noqa: PLC0415 - an extra

    tables = (part.to_arrow() for part in parts)
    first = next(tables)
    rows = 0
    opened = pa.parquet.ParquetWriter if is_parquet else pa.ipc.new_file
    with opened(str(path), first.schema) as file:
        for table in chain([first], tables):
            file.write_table(table)
            rows += len(table)
    return rows
