"""Tables of plain text, for the terminal and for files beside results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill, wrap
from typing import Generic, Literal, TypeVar

from terminal.words import duration, usual

Row = TypeVar("Row")

TERMINAL = 80
"""Columns of a terminal that nobody has made wider."""

NARROWEST = 8
"""Least width of a column whose texts take several lines."""

_GAP = "  "


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns under their heads; the first is aligned left, the others right."""
    lines = [list(heads), *map(list, rows)]
    widths = _widths(lines)
    rule = ["-" * width for width in widths]
    return "\n".join(_aligned(line, widths) for line in [lines[0], rule, *lines[1:]]) + "\n"


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a report's table.

    Attributes:
        cell: returns the text for a row.
        meaning: what the legend says of the column; empty for nothing.
        view: whether the column is in the table of all columns (``wide``), in the one that fits
            80 columns (``narrow``), or in both.
        wraps: whether texts take several lines where the narrow table has no room for them.
    """

    head: str
    cell: Callable[[Row], str]
    meaning: str = ""
    view: Literal["both", "wide", "narrow"] = "both"
    wraps: bool = False

    def cells(self, rows: Sequence[Row]) -> list[str]:
        """Return the texts of all rows."""
        return [self.cell(row) for row in rows]


@dataclass(frozen=True, slots=True)
class DurationColumn(Column[Row]):
    """A column of durations in words, all in one unit.

    Attributes:
        seconds: returns the duration of a row; None for an unknown one.
    """

    seconds: Callable[[Row], float | None] = lambda _row: None

    def cells(self, rows: Sequence[Row]) -> list[str]:
        """Return the durations of all rows."""
        durations = [self.seconds(row) for row in rows]
        beside = usual(durations)
        return [duration(each, beside=beside) for each in durations]


def seconds_columns(
    head: str, seconds: Callable[[Row], float | None], meaning: str, *, digits: int = 0
) -> tuple[Column[Row], Column[Row]]:
    """Return a time as two columns: in seconds for the wide table, in words for the narrow one."""

    def exact(row: Row) -> str:
        value = seconds(row)
        return "-" if value is None else f"{value:,.{digits}f}"

    return (
        Column(head, exact, f"{meaning}, in seconds", "wide"),
        DurationColumn(head, exact, meaning, "narrow", seconds=seconds),
    )


def table_of(columns: Sequence[Column[Row]], rows: Sequence[Row], *, wide: bool) -> str:
    """Return a table with a legend; columns without a text in any row are left out.

    Args:
        wide: whether to show all columns, or those that fit 80 columns.
    """
    chosen = [each for each in columns if each.view in {"both", "wide" if wide else "narrow"}]
    cells = [each.cells(rows) for each in chosen]
    used = [(each, texts) for each, texts in zip(chosen, cells, strict=True) if any(texts)]
    heads = [each.head for each, _ in used]
    lines = list(zip(*(texts for _, texts in used), strict=True))
    for place, (each, _) in enumerate(used):
        if each.wraps and not wide:
            lines = _narrowed(heads, lines, place)
    table = text_table(heads, lines)
    meanings = [f"{each.head}: {each.meaning}" for each, _ in used if each.meaning]
    hint = "" if wide or len(chosen) == len(columns) else " All columns: --wide."
    return f"{table}\n{fill('; '.join(meanings) + '.' + hint, TERMINAL)}\n" if meanings else table


def _narrowed(
    heads: Sequence[str], rows: Sequence[tuple[str, ...]], place: int
) -> list[tuple[str, ...]]:
    """Return rows that fit a terminal: long texts of one column go on in lines below."""
    widths = _widths([heads, *rows])
    too_much = sum(widths) + len(_GAP) * (len(widths) - 1) - TERMINAL
    if too_much <= 0:
        return list(rows)
    room = max(NARROWEST, widths[place] - too_much)
    lines = []
    for row in rows:
        first, *others = wrap(row[place], room, break_on_hyphens=False) or [""]
        lines.append((*row[:place], first, *row[place + 1 :]))
        blank, rest = ("",) * place, ("",) * (len(row) - place - 1)
        lines += [(*blank, text, *rest) for text in others]
    return lines


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def wrapped(text: str) -> str:
    """Wrap long sentences for a terminal; lines with gaps between columns stay as they are."""
    return "\n".join(_wrapped_sentence(line) for line in text.split("\n"))


def _wrapped_sentence(line: str) -> str:
    if len(line) <= TERMINAL or _GAP in line.strip():
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return fill(line, TERMINAL, subsequent_indent=indent, break_on_hyphens=False)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return _GAP.join([first, *others]).rstrip()
