"""Exhibits as pivots over tables of runs, with the papers' numbers from ``published.csv``."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple

from papers.study import Inputs, Table
from simulator.reports.exhibit import Exhibit, Panel, Series, Value

PUBLISHED = Path(__file__).with_name("published.csv")

Key = str | Callable[[Any], str]
"""Text of a record: a format string over its fields, such as ``{log}, {policy}``, or a function."""

Remark = str | Callable[[Inputs], str]


class _Fields:
    """Fields of a record, as a format string reads them."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def __getitem__(self, name: str) -> Any:
        return getattr(self._record, name)


def text_of(key: Key, record: Any) -> str:
    """Return the text of a record by a key."""
    return key.format_map(_Fields(record)) if isinstance(key, str) else key(record)


class PublishedNumber(NamedTuple):
    """A number of a paper.

    Attributes:
        panel: beginning of the panel's title; empty for every panel.
        place: the place in the panel; empty for every place.
        series: beginning of the name of the series; empty for every series.
        value: as printed in the paper.
    """

    panel: str
    place: str
    series: str
    value: float

    def stands_at(self, panel: str, place: str, series: str) -> bool:
        """Return whether the number belongs to a cell of the exhibit."""
        here = panel.startswith(self.panel) and series.startswith(self.series)
        return here and self.place in {"", place}


def only(values: Sequence[float]) -> float:
    """Return the one value of a cell.

    Raises:
        ValueError: there are several; the pivot's keys do not tell its records apart.
    """
    if len(values) > 1:
        raise ValueError(f"A cell of an exhibit has {len(values)} values, and no statistic.")
    return values[0]


@lru_cache(1)
def published() -> Mapping[str, Sequence[PublishedNumber]]:
    """Return the papers' numbers by study and exhibit, such as ``tang table 1``."""
    found: dict[str, list[PublishedNumber]] = {}
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        for exhibit, panel, place, series, value in list(csv.reader(file))[1:]:
            number = PublishedNumber(panel, place, series, float(value))
            found.setdefault(exhibit, []).append(number)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot:
    """Panels of an exhibit, made of the records of a table.

    Attributes:
        table: makes the records.
        panel: title of the panel of a record.
        rows: place of a record in its panel.
        columns: name of the series of a record.
        value: field with the number, or fields by the names of their series.
        row_key: tells places apart whose texts are equal.
        where: values that fields must have; several values are in the order of the exhibit.
        statistic: of the numbers of a cell.
        scale: factor on the statistic.
        along, unit, kind, shares, digits, linear_until, turned: as in ``Panel``.
    """

    table: Table
    panel: Key
    rows: Key
    value: str | Mapping[str, str]
    columns: Key = ""
    row_key: Key = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    statistic: Callable[[Sequence[float]], float] = only
    scale: float = 1
    along: str = ""
    unit: str = ""
    kind: Literal["bars", "lines"] = "bars"
    shares: bool = False
    digits: int = 2
    linear_until: float = inf
    turned: bool = False

    def panels(self, inputs: Inputs, numbers: Sequence[PublishedNumber]) -> list[Panel]:
        """Return the panels, in the order of the records.

        Args:
            inputs: of the study.
            numbers: of the paper's exhibit.
        """
        by_panel: dict[str, list[Any]] = {}
        for record in self._chosen(self.table(inputs)):
            by_panel.setdefault(text_of(self.panel, record), []).append(record)
        return [self._panel(title, records, numbers) for title, records in by_panel.items()]

    def _chosen(self, records: Iterable[Any]) -> list[Any]:
        """Return the records of the exhibit, in the order of the values in ``where``."""
        wanted = {
            name: values if isinstance(values, tuple) else (values,)
            for name, values in self.where.items()
        }
        chosen = [
            record
            for record in records
            if all(getattr(record, name) in values for name, values in wanted.items())
        ]
        return sorted(
            chosen,
            key=lambda each: [values.index(getattr(each, name)) for name, values in wanted.items()],
        )

    def _panel(
        self, title: str, records: Sequence[Any], numbers: Sequence[PublishedNumber]
    ) -> Panel:
        cells: dict[str, dict[str, list[float]]] = {}
        places: dict[str, str] = {}
        for record in records:
            row = text_of(self.row_key or self.rows, record)
            places[row] = text_of(self.rows, record)
            for series, value in self._values(record):
                found = cells.setdefault(series, {}).setdefault(row, [])
                found += [] if value is None else [value]
        return Panel(
            title=title,
            places=list(places.values()),
            series=[
                Series(
                    name,
                    [self._cell(found.get(row, ())) for row in places],
                    [_paper(numbers, title, place, name) for place in places.values()],
                )
                for name, found in cells.items()
            ],
            along=self.along,
            value=self.unit,
            kind=self.kind,
            shares=self.shares,
            digits=self.digits,
            linear_until=self.linear_until,
            turned=self.turned,
        )

    def _values(self, record: Any) -> list[tuple[str, Value]]:
        """Return the numbers of a record by the names of their series."""
        if isinstance(self.value, str):
            return [(text_of(self.columns, record), getattr(record, self.value))]
        return [(series, getattr(record, name)) for series, name in self.value.items()]

    def _cell(self, values: Sequence[float]) -> Value:
        return self.scale * self.statistic(values) if values else None


def _paper(numbers: Sequence[PublishedNumber], panel: str, place: str, series: str) -> Value:
    found = (each.value for each in numbers if each.stands_at(panel, place, series))
    return next(found, None)


@dataclass(frozen=True, slots=True)
class ExhibitPlan:
    """A figure or table of a paper: its pivots, and a remark on where its numbers come from."""

    title: str
    pivots: Sequence[Pivot]
    remark: Remark = ""

    def make(self, name: str, inputs: Inputs) -> Exhibit:
        """Return the exhibit.

        Args:
            name: of the study and the exhibit, such as ``tang table 1``.
            inputs: of the study.
        """
        numbers = published().get(name, ())
        panels = [panel for pivot in self.pivots for panel in pivot.panels(inputs, numbers)]
        remark = self.remark if isinstance(self.remark, str) else self.remark(inputs)
        return Exhibit(self.title, panels, remark)

    def tables(self) -> list[Table]:
        """Return the tables that the exhibit is made of."""
        return list(dict.fromkeys(pivot.table for pivot in self.pivots))
