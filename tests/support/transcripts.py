"""Transcripts in the documentation: what is typed, by whom, and what comes back."""

import re
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]
PROMPT = re.compile(r"^(\w+)[#$] (.*)$")
MOST_COMMANDS = 8


class Step(Struct, frozen=True):
    """A command, and what the page says that it prints."""

    user: str
    command: str
    printed: list[str]


def first_steps(page: str) -> list[Step]:
    """The transcript of a page under `From a fresh service to a prediction from history`."""
    text = (ROOT / "docs" / page).read_text()
    section = text.partition("## From a fresh service to a prediction from history")[2]
    block = section.partition("```console\n")[2].partition("```")[0]
    steps: list[Step] = []
    for line in block.splitlines():
        if typed := PROMPT.match(line):
            steps.append(Step(*typed.groups(), []))
        else:
            steps[-1].printed.append(line)
    assert 0 < len(steps) <= MOST_COMMANDS
    return steps
