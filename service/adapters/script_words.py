"""Words of the lines of job scripts that are for Slurm or PBS."""

import re
import shlex
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, NamedTuple

from terminal.console import ExitCode

SBATCH, PBS = "#SBATCH", "#PBS"

LONGEST = 10_000
"""Lines of a script that are read."""


class ScriptError(ValueError):
    """Raised for a script that its resource manager would refuse; the message names the line."""

    exit_code = ExitCode.USAGE


class Word(NamedTuple):
    """A word of a script, and the number of its line."""

    text: str
    line: int


Notice = Callable[[str], None]
"""Function that takes a sentence about what in a script is not understood."""


def unheard(_sentence: str) -> None:
    """Drop a sentence."""


def lines_of_script(script: str) -> list[str]:
    """Return the lines that are read."""
    return script.removeprefix("\ufeff").splitlines()[:LONGEST]


def words_behind(mark: str, lines: Iterable[str], notice: Notice) -> list[Word]:
    """Return the words behind ``mark`` up to the first command, as resource managers read them.

    Slurm passes over a mark that is indented.
    """
    words: list[Word] = []
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        is_directive = bool(mark) and line.startswith(mark)
        if bare and not bare.startswith("#") and not is_directive:
            break
        if is_directive:
            try:
                texts = _split(bare.removeprefix(mark), mark)
            except ValueError:
                notice(f"line {number}: a quote is not closed; the line is left out")
                continue
            words += [Word(text, number) for text in texts]
    return words


def _split(text: str, mark: str) -> list[str]:
    """Return the words of a line up to a comment, which begins a word under PBS.

    A backslash at the end of the line, as of shells, does nothing.

    Raises:
        ValueError: a quote is not closed.
    """
    text = text.rstrip("\\")
    if mark == SBATCH:
        return shlex.split(text, comments=True)
    try:
        words = shlex.split(text)
    except ValueError:
        words = shlex.split(re.split(r"\s#", text)[0])
    return list(takewhile(lambda word: not word.startswith("#"), words))


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are known."""
    return {name: value for name, value in fields.items() if value}
