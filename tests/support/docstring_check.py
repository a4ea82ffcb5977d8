"""Finds docstrings that begin with a fragment: the first word is a verb, or the noun returned.

Run by ``make lint`` as ``docstring_check.py FOLDER...``; prints file, line and first words of each
such docstring, and ends with 1 if there are any.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FRAGMENTS = frozenset(
    {
        "What", "Which", "Whose", "Who", "How", "Where", "When", "Of", "By", "That", "Told",
        "Those",
    }
)  # fmt: skip
"""First words that begin no sentence with a verb and name nothing."""

FRAGMENT_PAIRS = frozenset({("The", "same")})

SHOWN = 6
"""Words of a docstring that are printed."""

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Fragment(NamedTuple):
    """A docstring that begins with a fragment."""

    file: Path
    line: int
    words: str

    def __str__(self) -> str:
        return f'{self.file}:{self.line}: a docstring begins with "{self.words}"'


def fragments(file: Path) -> Iterator[Fragment]:
    """Yield the docstrings of a Python file that begin with a fragment."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if not isinstance(node, DOCUMENTED) or not (text := ast.get_docstring(node)):
            continue
        words = text.split()
        first, second = (*(word.strip(",.:;") for word in words[:2]), "", "")[:2]
        if first in FRAGMENTS or (first, second) in FRAGMENT_PAIRS:
            yield Fragment(file, node.body[0].lineno, " ".join(words[:SHOWN]))


def python_files(paths: Iterable[str]) -> Iterator[Path]:
    """Yield the Python files among paths and in folders, in the order of their names."""
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main(paths: Iterable[str]) -> int:
    """Print all fragments in the files of these paths; return the exit code."""
    found = [fragment for file in python_files(paths) for fragment in fragments(file)]
    for fragment in found:
        print(fragment)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
