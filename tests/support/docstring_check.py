"""Finds docstrings that begin with a fragment, ask, or say of a parameter what its name says.

Run by ``make lint`` as ``docstring_check.py FOLDER...``; prints file, line and the first words of
each such docstring or the line of the parameter, and ends with 1 if there are any.
"""

import ast
import re
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

PLAIN = ("service", "terminal")
"""Packages in which no entry of a parameter repeats its name, its type or its owner."""

SECTION = re.compile(r"^(Args|Attributes):$")

ENTRY = re.compile(r"^    (\w+): (.+)$")
"""A line about a parameter or an attribute."""

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Fault(NamedTuple):
    """A docstring that begins with a fragment or asks, or a line of one that says nothing."""

    file: Path
    line: int
    words: str
    reason: str = "a docstring begins with"

    def __str__(self) -> str:
        return f'{self.file}:{self.line}: {self.reason} "{self.words}"'


def fragments(file: Path) -> Iterator[Fault]:
    """Yield the docstrings of a Python file that begin with a fragment or ask a question."""
    for node, text in docstrings(file):
        words, line = text.split(), node.body[0].lineno
        first, second = (*(word.strip(",.:;") for word in words[:2]), "", "")[:2]
        shown = " ".join(words[:SHOWN])
        if first in FRAGMENTS or (first, second) in FRAGMENT_PAIRS:
            yield Fault(file, line, shown)
        elif re.search(r"\w\?(\s|$)", text.partition("\n\n")[0]):
            yield Fault(file, line, shown, "a docstring asks:")


def repetitions(file: Path) -> Iterator[Fault]:
    """Yield the entries of parameters that repeat the parameter's name, its type or its owner."""
    for node, text in docstrings(file):
        if isinstance(node, ast.Module):
            continue
        types = annotations_of(node)
        for number, name, says in entries(text):
            known = SAYS_NOTHING | words_of(f"{node.name} {name} {types.get(name, '')}")
            if "`" not in says and words_of(says) <= known:
                line = node.body[0].lineno + number
                yield Fault(file, line, f"{name}: {says}", "the name says already:")


def entries(docstring: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, name and text of the entries of one line in a docstring's sections."""
    lines, is_section = docstring.splitlines(), False
    for number, (line, below) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        if line and not line.startswith(" "):
            is_section = SECTION.match(line) is not None
        elif is_section and (entry := ENTRY.match(line)) and not below.startswith("      "):
            yield number, entry[1], entry[2]


def docstrings(file: Path) -> Iterator[tuple[DOCUMENTED, str]]:
    """Yield the documented nodes of a Python file with their docstrings."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield node, text


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text or of names, in lower case and without the s of a plural."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", text)
    return frozenset(part.lower().removesuffix("s") for part in parts)


SAYS_NOTHING = words_of(
    "a an and at by for from in is it its number of name on one seconds service that the these "
    "this time to unix"
)
"""Words that add nothing to a name: times are Unix seconds and durations seconds everywhere."""


def annotations_of(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Return the types of a function's parameters, or of a class's fields and parameters."""
    if isinstance(node, ast.ClassDef):
        found: dict[str, str] = {}
        for each in node.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                found[each.target.id] = ast.unparse(each.annotation)
            elif isinstance(each, ast.FunctionDef) and each.name == "__init__":
                found |= annotations_of(each)
        return found
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return {each.arg: ast.unparse(each.annotation) for each in arguments if each.annotation}


def python_files(paths: Iterable[str]) -> Iterator[Path]:
    """Yield the Python files among paths and in folders, in the order of their names."""
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main(paths: Iterable[str]) -> int:
    """Print all faults in the files of these paths; return the exit code."""
    found = [
        fault
        for file in python_files(paths)
        for fault in (*fragments(file), *(repetitions(file) if file.parts[0] in PLAIN else ()))
    ]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
