"""Results as tables: data frames of pandas, Arrow streams and files."""

from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from terminal.data_table import DataTable, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import pyarrow as pa


def check_counts(least: int = 1, **counts: int | None) -> None:
    """Refuse arguments that are no numbers of something; None is allowed.

    Raises:
        ValueError: the message names the argument.
    """
    for name, number in counts.items():
        is_whole = isinstance(number, Integral) and not isinstance(number, bool)
        if number is not None and not (is_whole and number >= least):
            raise ValueError(f"{name} must be a whole number of at least {least}, not {number!r}.")


class Tabular:
    """A result that is a table; ``polars.DataFrame(result)`` and DuckDB read it as it is."""

    def tables(self) -> "Iterator[DataTable]":
        """Yield the rows in parts with the same columns."""
        raise NotImplementedError

    def table(self) -> DataTable:
        """Return all rows."""
        return DataTable.joined(self.tables())

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame of pandas, which has to be installed."""
        return self.table().to_pandas()

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow, which has to be installed."""
        return self.table().to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an ArrowArrayStream (Arrow's PyCapsule interface)."""
        return self.table().__arrow_c_stream__(requested_schema)

    def write(self, path: str | Path) -> int:
        """Write a file of CSV, Parquet or Arrow, as its name ends, and return the number of rows.

        Raises:
            CommandError: the name has another ending, or pyarrow is missing.
        """
        return write_table(self.tables(), path)
