"""The columns of a table, as ``--columns field=column[:form],...`` names them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from predictors.facts import MOST_FEATURES
from service.adapters.table_cells import (
    FEATURE,
    FIELDS,
    OTHER_NAMES,
    TIME_UNITS,
    Kind,
    kind_of,
    text_in,
)
from terminal.exit_codes import ExitCode

_PAIR = re.compile(r",\s*(?=\w+=)")

_SPANS = (
    {"submit_time", "start_time", "end_time"},
    {"submit_time", "start_time", "runtime"},
    {"submit_time", "end_time", "runtime"},
    {"submit_time", "wait", "end_time"},
    {"submit_time", "wait", "runtime"},
    {"start_time", "wait", "end_time"},
    {"start_time", "wait", "runtime"},
)


LONGEST_NUMBER = 10
"""Digits from which on a column is a name, and no number."""


class ColumnsError(ValueError):
    """The columns of a table are named wrongly."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class Source:
    """The column of a field.

    Attributes:
        field: of a run, a name in ``FIELDS``.
        column: name of the column, or its number from 1 on.
        form: unit or pattern of its cells; None where it is not named.
    """

    field: str
    column: str
    form: str | None = None

    @property
    def kind(self) -> Kind:
        """The kind of the field."""
        return kind_of(self.field) or Kind(text_in)

    @property
    def is_number(self) -> bool:
        """Whether the column is given by its number."""
        return self.column.isdecimal() and len(self.column) < LONGEST_NUMBER

    def place_in(self, names: Sequence[str]) -> int | None:
        """Return the place of the column in a line of names; None if it is not there."""
        cleaned = [name.strip().lower() for name in names]
        if cleaned.count(self.column.lower()) == 1:
            return cleaned.index(self.column.lower())
        return self.place_of_number(names)

    @property
    def no_form(self) -> str:
        """Return the forms of the field, if the column's name seems to end in another one."""
        before, colon, form = self.column.rpartition(":")
        units = self.kind.units
        if not (before and colon):
            return ""
        if not units:
            return f" {self.field} has no forms, such as {form!r}."
        is_time = set(units) == {*TIME_UNITS}
        dates = ", and patterns such as %d/%m/%Y %H:%M" if is_time else ""
        return f" {form!r} is no form of {self.field}: there are {', '.join(units)}{dates}."

    def place_of_number(self, cells: Sequence[str]) -> int | None:
        """Return the place of a column that is given by its number; None if it is not there."""
        number = int(self.column) if self.is_number else 0
        return number - 1 if 0 < number <= len(cells) else None


def places_of(sources: Sequence[Source], cells: Sequence[str]) -> list[int | None]:
    """Return the place of each column in the first line of a table.

    Where all are given by number, that line has no names.
    """
    if are_numbers(sources):
        return [source.place_of_number(cells) for source in sources]
    return [source.place_in(cells) for source in sources]


def are_numbers(sources: Sequence[Source]) -> bool:
    """Return whether all columns are given by number: the table has no line of names."""
    return bool(sources) and all(source.is_number for source in sources)


def sources_of(pairs: Sequence[str]) -> list[Source]:
    """Return the columns that ``field=column[:form],...`` names.

    Raises:
        ColumnsError: a field or form does not exist, or a run cannot be read from these fields.
    """
    found = [_source(each.strip()) for text in pairs for each in _PAIR.split(text)]
    fields = [source.field for source in found]
    twice = next((field for field in fields if fields.count(field) > 1), None)
    if twice:
        raise ColumnsError(f"--columns names {twice} twice.")
    if sum(field.startswith(FEATURE) for field in fields) > MOST_FEATURES:
        raise ColumnsError(f"--columns takes at most {MOST_FEATURES} fields {FEATURE}NAME.")
    is_whole = {"job_id", "requested_walltime"} <= set(fields) and any(
        each <= set(fields) for each in _SPANS
    )
    if not is_whole:
        raise ColumnsError(
            "--columns needs job_id, requested_walltime and submit_time, and two of start_time "
            f"(or wait), end_time and runtime; it names {', '.join(fields)}."
        )
    return found


def _source(pair: str) -> Source:
    name, equals, column = pair.partition("=")
    field = OTHER_NAMES.get(name.strip().lower(), name.strip().lower())
    kind = kind_of(field)
    if kind is None or not equals or not column.strip():
        raise ColumnsError(
            f"--columns takes field=column, such as user=USER or start=START:%d/%m/%Y %H:%M, not "
            f"{pair!r}; the fields are {', '.join(FIELDS)}, and {FEATURE}NAME for a number or word "
            "of your own."
        )
    before, colon, form = column.partition(":%")
    if colon:
        return Source(field, before.strip(), f"%{form}")
    before, colon, form = column.rpartition(":")
    units = kind.units
    if colon and form in units:
        return Source(field, before.strip(), form)
    if colon and units and re.fullmatch("[a-z]+", form):
        raise ColumnsError(f"{pair}: there is no unit {form!r}; there are {', '.join(units)}.")
    return Source(field, column.strip())
