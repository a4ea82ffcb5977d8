"""Every table fits a terminal: all commands print theirs through ``fitted``."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulator.reports.tables import TERMINAL, Column, fitted, seconds_columns, table_of, text_table

COMMANDS = Path(__file__).parents[3] / "service" / "cli"
KEPT = sorted((Path(__file__).parents[3] / "results").rglob("*.txt"))

MAKE_TABLES = {
    "text_table", "table_of", "summary_table", "tables", "study.report",
    "exhibit.text",
}  # fmt: skip
"""What commands are given tables of text by."""

words = st.text("abcdefgh", min_size=1, max_size=12)
cells = st.lists(words, min_size=1, max_size=4).map(" ".join)


@st.composite
def tables(draw):
    columns = draw(st.integers(2, 14))
    line = st.lists(cells, min_size=columns, max_size=columns)
    return draw(line), draw(st.lists(line, min_size=1, max_size=5))


ROW = ["a a a a"] * 10
TOLD_APART_BY_SEVEN_COLUMNS = [ROW, [*ROW[:6], "b", *ROW[7:]]]


@given(tables())
@example((["a"] * 10, TOLD_APART_BY_SEVEN_COLUMNS))
def test_any_table_fits_and_loses_no_letter(table):
    heads, rows = table
    shown = fitted(text_table(heads, rows))
    assert max(map(len, shown.splitlines())) <= TERMINAL
    letters = Counter("".join("".join(line) for line in (heads, *rows)))
    assert not letters - Counter(shown) - Counter(" ")


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_what_commands_have_printed_fits(file):
    shown = fitted(file.read_text(encoding="utf-8"))
    too_long = [line for line in shown.splitlines() if len(line) > TERMINAL and " " in line.strip()]
    assert not too_long


COLUMNS = (
    Column("name", str),
    *seconds_columns("wait", float, "mean wait"),
    Column("all", lambda _: "x", "everything", "wide"),
    Column("none", lambda _: ""),
)


def test_a_report_has_one_table_with_fewer_columns_and_plain_times_in_80_columns():
    assert table_of(COLUMNS, ["120"], wide=True) == (
        "name  wait  all\n----  ----  ---\n120    120    x\n\n"
        "wait: mean wait, in seconds; all: everything.\n"
    )
    assert table_of(COLUMNS, ["120"], wide=False) == (
        "name   wait\n----  -----\n120   2 min\n\nwait: mean wait. All columns: --wide.\n"
    )


def test_a_wide_table_goes_on_below_after_the_columns_that_tell_its_rows_apart():
    heads = ("policy", "estimates", "measure 0", "measure 1", "measure 2")
    rows = [
        (policy, estimates, "1" * 20, "2" * 20, "3" * 20)
        for policy in ("easy", "fcfs")
        for estimates in ("exact", "requested")
    ]
    first, second = fitted(text_table(heads, rows[:2] + rows[3:])).split("\n\n")
    for part, measures in ((first, [0, 1]), (second, [2])):
        head, _, *lines = part.splitlines()
        assert re.findall(r"measure (\d)", head) == [str(each) for each in measures]
        assert [line.split()[:2] for line in lines] == [
            ["easy", "exact"],
            ["easy", "requested"],
            ["fcfs", "requested"],
        ]


def test_heads_take_several_lines_before_a_table_goes_on_below():
    text = text_table(("the name of it", *["a long head of numbers"] * 6), [("x", *"123456")])
    assert (
        fitted(text).splitlines()[-1]
        == "x           1        2        3        4        5        6"
    )


def test_a_table_that_fits_is_left_alone():
    text = text_table(("method", "wait"), [("requested", "2 h")])
    assert fitted(text) == text


def test_sentences_are_wrapped_between_words():
    assert fitted("word " * 20) == "\n".join([" ".join(["word"] * 16), " ".join(["word"] * 4)])


def test_every_command_prints_its_tables_through_the_one_that_fits_them():
    """Tables of text are made by ``simulator.reports``; no command prints them itself."""
    wrong = [
        f"{file.name}:{call.lineno}"
        for file in COMMANDS.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"out.print", "print"}
        for part in ast.walk(call)
        if isinstance(part, ast.Call) and ast.unparse(part.func) in MAKE_TABLES
    ]
    assert wrong == []
