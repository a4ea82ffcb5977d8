"""Tables of plain text, for the terminal and for files beside results."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import fill, wrap
from typing import Generic, Literal, NamedTuple, TypeVar

from terminal.words import duration

Row = TypeVar("Row")

TERMINAL = 80
"""Columns of a terminal that nobody has made wider."""

_GAP = "  "
_RULE = re.compile(r"-+(  -+)+")


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under their heads; the first column is aligned left, the others right."""
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    rule = ["-" * width for width in widths]
    return "\n".join(_aligned(line, widths) for line in [lines[0], rule, *lines[1:]]) + "\n"


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a report's table.

    Attributes:
        head: name of the column.
        cell: returns the text for a row.
        meaning: what the legend says of the column; empty for nothing.
        view: whether the column is in the table of all columns (``wide``), in the one that fits
            80 columns (``narrow``), or in both.
    """

    head: str
    cell: Callable[[Row], str]
    meaning: str = ""
    view: Literal["both", "wide", "narrow"] = "both"


def seconds_columns(
    head: str, seconds: Callable[[Row], float | None], meaning: str, *, digits: int = 0
) -> tuple[Column[Row], Column[Row]]:
    """A time as two columns: in seconds where all columns are shown, else as people say it."""

    def exact(row: Row) -> str:
        value = seconds(row)
        return "-" if value is None else f"{value:,.{digits}f}"

    return (
        Column(head, exact, f"{meaning}, in seconds", "wide"),
        Column(head, lambda row: duration(seconds(row)), meaning, "narrow"),
    )


def table_of(columns: Sequence[Column[Row]], rows: Sequence[Row], *, wide: bool) -> str:
    """A table with a legend of its columns; columns without a text in any row are left out.

    Args:
        columns: all columns of the report.
        rows: a line for each.
        wide: whether to show all columns, or those that fit 80 columns.
    """
    chosen = [each for each in columns if each.view in {"both", "wide" if wide else "narrow"}]
    cells = [[each.cell(row) for row in rows] for each in chosen]
    used = [(each, texts) for each, texts in zip(chosen, cells, strict=True) if any(texts)]
    lines = list(zip(*(texts for _, texts in used), strict=True))
    table = text_table([each.head for each, _ in used], lines)
    meanings = [f"{each.head}: {each.meaning}" for each, _ in used if each.meaning]
    hint = "" if wide or len(chosen) == len(columns) else " All columns: --wide."
    return f"{table}\n{fill('; '.join(meanings) + '.' + hint, TERMINAL)}\n" if meanings else table


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return _GAP.join([first, *others]).rstrip()


def fitted(text: str, width: int = TERMINAL) -> str:
    """Text in ``width`` columns: sentences are wrapped, tables are made narrower or continued.

    A table that ``text_table`` made gets heads of several lines. Where that is not enough it goes
    on below itself, each time after the columns that tell its rows apart: nothing is left out.
    """
    lines, fitting, place = text.split("\n"), [], 0
    while place < len(lines):
        if place + 1 < len(lines) and _RULE.fullmatch(lines[place + 1]):
            end = next((n for n in range(place, len(lines)) if not lines[n].strip()), len(lines))
            fitting += _fitted_table(lines[place:end], width)
            place = end
        else:
            fitting.append(_fitted_line(lines[place], width))
            place += 1
    return "\n".join(fitting)


def _fitted_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return fill(line, width, initial_indent="", subsequent_indent=indent, break_on_hyphens=False)


class _Column(NamedTuple):
    """A column of a table, with its width once heads take several lines."""

    head: str
    cells: Sequence[str]

    @property
    def width(self) -> int:
        return max(*map(len, self.head.split() or [""]), *map(len, self.cells), 1)


def _fitted_table(lines: Sequence[str], width: int) -> list[str]:
    """The lines of a table, none longer than ``width``."""
    if max(map(len, lines)) <= width:
        return list(lines)
    spans = [found.span() for found in re.finditer("-+", lines[1])]
    rows = [[line[begin:end].strip() for begin, end in spans] for line in (lines[0], *lines[2:])]
    columns = [_Column(cells[0], cells[1:]) for cells in zip(*rows, strict=True)]
    keys = _keys(columns)
    key_width = min(_width(columns[:keys]), width * 2 // 3)
    found: list[str] = []
    for part in _parts(columns[keys:], width - key_width - len(_GAP)):
        part_columns = [*columns[:keys], *part]
        limits = [each.width for each in part_columns]
        _shrink(limits, keys, width)
        found += (
            ["", *_table_lines(part_columns, limits)]
            if found
            else _table_lines(part_columns, limits)
        )
    return found


def _keys(columns: Sequence[_Column]) -> int:
    """The fewest first columns that tell the rows apart; one if none do.

    A row without a name belongs to the row above.
    """
    rows = [row for row in zip(*(each.cells for each in columns), strict=True) if row[0]]
    for count in range(1, len(columns) - 1):
        if len({row[:count] for row in rows}) == len(rows):
            return count
    return 1


def _width(columns: Sequence[_Column]) -> int:
    return sum(each.width for each in columns) + len(_GAP) * (len(columns) - 1)


def _parts(columns: Sequence[_Column], room: int) -> Iterator[Sequence[_Column]]:
    """As many columns at a time as there is room for, and at least one."""
    part: list[_Column] = []
    for column in columns:
        if part and _width([*part, column]) > room:
            yield part
            part = []
        part.append(column)
    yield part


def _shrink(limits: list[int], keys: int, width: int) -> None:
    """Take what is too much from the widest of the first columns, then from the widest of all.

    Columns become narrower than ``_NARROWEST`` only where that is not enough.
    """
    firsts, everything = range(keys), range(len(limits))
    for least in (_NARROWEST, 1):
        for among in (firsts, everything):
            while (more := sum(limits) + len(_GAP) * (len(limits) - 1) - width) > 0:
                widest = max(among, key=lambda place: limits[place])
                if limits[widest] <= least:
                    break
                limits[widest] = max(least, limits[widest] - more)


_NARROWEST = 8
"""Columns are made narrower than this only where nothing else helps."""


def _table_lines(columns: Sequence[_Column], limits: Sequence[int]) -> list[str]:
    """The lines of a table whose cells are wrapped at the limits of their columns."""
    heads = [_wrapped(each.head, limit) for each, limit in zip(columns, limits, strict=True)]
    rows = zip(*(each.cells for each in columns), strict=True)
    lines = [_aligned(line, limits) for line in _beside([list(reversed(each)) for each in heads])]
    lines.reverse()
    lines.append(_aligned(["-" * limit for limit in limits], limits))
    for row in rows:
        cells = [_wrapped(cell, limit) for cell, limit in zip(row, limits, strict=True)]
        lines += [_aligned(line, limits) for line in _beside(cells)]
    return lines


def _beside(cells: Sequence[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Cells of several lines, line by line."""
    return zip_longest(*cells, fillvalue="")


def _wrapped(cell: str, width: int) -> list[str]:
    return wrap(cell, width, break_on_hyphens=False) or [""]
