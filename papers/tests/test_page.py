"""papers/README.md has every figure, table and equation, and what it names is there."""

import re
import shlex
from pathlib import Path

import click
import pytest
import typer

from papers import check
from papers.command_line import app as papers_app
from papers.studies import STUDIES
from service.cli import app as command_line

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "papers" / "README.md"

VERDICTS = {"agrees", "in part", "differs", "not possible", "not here", "no result"}

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
    """Every command of the page, of walltimed and of the papers."""
    found = re.findall(r"`((?:walltimed|python -m papers) [a-z][^`]+)`", PAGE.read_text())
    return sorted(set(found))


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
    ours = command.startswith("python -m papers ")
    words = shlex.split(command.removeprefix("python -m "))[1:]
    group = typer.main.get_command(papers_app if ours else command_line)
    context = click.Context(group)
    while isinstance(group, click.Group):
        name, group, words = group.resolve_command(context, words)
        context = click.Context(group, info_name=name, parent=context)
    group.make_parser(context).parse_args(words)


def test_every_figure_and_table_that_can_be_made_is_in_the_page_and_no_other():
    asked = {
        (name, exhibit) for (name, *_), exhibits in check.commands().items() for exhibit in exhibits
    }
    assert asked == {(name, each) for name, study in STUDIES.items() for each in study.exhibits}


@pytest.mark.parametrize("name", STUDIES)
def test_the_help_of_a_study_has_an_example_that_can_be_given(name):
    assert STUDIES[name].name == name
    examples = re.findall(r"^ +python -m papers (.+)$", STUDIES[name].explanation, re.MULTILINE)
    assert examples
    for example in examples:
        words = shlex.split(example)
        command = typer.main.get_command(papers_app).commands[words[0]]
        command.make_parser(click.Context(command)).parse_args(words[1:])
