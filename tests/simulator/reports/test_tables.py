"""Tables of reports: all columns, or those that fit a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from simulator.reports.tables import TERMINAL, Column, seconds_columns, table_of, wrapped

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


LABELLED = (
    Column("policy", lambda _: "conservative"),
    Column("estimates", str, wraps=True),
    Column("slowdown", lambda _: "1" * 42),
)


@given(st.text("abc+=", min_size=1, max_size=90))
def test_a_long_label_goes_on_below_itself_and_loses_no_letter(label):
    _, _, first, *others = table_of(LABELLED, [label], wide=False).splitlines()
    assert max(map(len, (first, *others))) <= TERMINAL
    assert "".join([first.split()[1], *(line.strip() for line in others)]) == label
    assert label in table_of(LABELLED, [label], wide=True)


def test_sentences_are_wrapped_between_words_and_tables_stay_as_they_are():
    sentence, table = "Order: " + "word " * 20, "a" * 50 + "  " + "b" * 50
    lines = wrapped(f"{sentence}\n{table}\nJobs: 4").splitlines()
    assert max(map(len, lines[:-2])) <= TERMINAL
    assert " ".join(lines[:-2]).split() == sentence.split()
    assert lines[-2:] == [table, "Jobs: 4"]
