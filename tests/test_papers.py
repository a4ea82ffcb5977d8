"""docs/papers.md has every figure, table and equation, and what it names is there."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import click
import pytest
import typer

from service.cli import app as command_line
from simulator.studies import STUDIES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "papers.md"

VERDICTS = {"agrees", "in part", "differs", "not possible", "no result"}

CONTENTS = {
    "Klusáček & Soysal 2020": {"Formula": 2, "Figure": 14},
    "Tang et al. 2013": {"Equation": 5, "Table": 3, "Figure": 17},
    "Xu et al. 2019": {"Equation": 8, "Table": 6, "Figure": 3},
    "Hanzich et al. 2005": {"Algorithm": 1, "Equation": 9, "Table": 1, "Figure": 3},
    "Rocchetti et al. 2017": {"Equation": 1, "Table": 6, "Figure": 4},
}
"""How many of each a paper has, numbered from 1."""


def rows(paper):
    """The cells of the tables in a paper's section, without heads and rules."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    [section] = [each for each in sections if each.startswith(paper)]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [each for each in cells if each[0] != "what" and set(each[0]) != {"-"}]


def commands():
    """Every walltimed command of the page."""
    return sorted(set(re.findall(r"`(walltimed [^`]+)`", PAGE.read_text())))


@pytest.mark.parametrize("paper", CONTENTS)
def test_every_figure_table_and_equation_has_a_row(paper):
    found = [re.match(r"\w+ \d+", row[0]) for row in rows(paper)]
    named = {match[0] for match in found if match}
    assert named == {
        f"{kind} {number}"
        for kind, count in CONTENTS[paper].items()
        for number in range(1, count + 1)
    }


@pytest.mark.parametrize("paper", CONTENTS)
def test_every_row_says_how_far_it_agrees_and_why(paper):
    for what, _made_by, here, theirs, verdict, why in rows(paper):
        assert verdict in VERDICTS, what
        assert here, what
        assert theirs, what
        assert why.endswith("."), what


@pytest.mark.parametrize("command", commands())
def test_every_command_of_the_page_can_be_given(command):
    words = shlex.split(command)[1:]
    group = typer.main.get_command(command_line)
    context = click.Context(group)
    while isinstance(group, click.Group):
        name, group, words = group.resolve_command(context, words)
        context = click.Context(group, info_name=name, parent=context)
    group.make_parser(context).parse_args(words)


def test_every_figure_and_table_that_can_be_made_is_in_the_page_and_no_other():
    asked = {
        (words[2], f"{option.removeprefix('--')} {number}")
        for words in map(shlex.split, commands())
        if words[1] == "experiment" and words[2] != "PAPER"
        for option, number in pairwise(words)
        if option in {"--figure", "--table"}
    }
    assert asked == {(name, each) for name, study in STUDIES.items() for each in study.exhibits}
