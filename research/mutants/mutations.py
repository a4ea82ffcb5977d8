"""Small mistakes put into the source, one at a time: which there are, and a fair choice of them."""

import ast
import difflib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator
from parso.python.tree import Keyword

OPERATORS = (
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_GtE", "GtE_Lt", "IsNot_Is")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("FloorDiv_Mul", "Mod_Mul", "BitAnd_BitOr")),
    "ReplaceUnaryOperator_USub_UAdd",
    "ReplaceUnaryOperator_Delete_Not",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "NumberReplacer",
    "ZeroIterationForLoop",
)
"""Cosmic Ray's operators that people's mistakes look like.

The others replace, say, an addition by a shift, which the first call of any test notices.
"""

LUA_MISTAKES = (
    (r"==", "~="),
    (r"~=", "=="),
    (r"<=", "<"),
    (r">=", ">"),
    (r"(?<![<>=~])<(?!=)", "<="),
    (r"(?<![<>=~-])>(?!=)", ">="),
    (r"\band\b", "or"),
    (r"\bor\b", "and"),
    (r"\bnot\b ", ""),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"(?<=[\w)]) \+ ", " - "),
    (r"(?<=[\w)]) - ", " + "),
    (r"(?<=[\w)]) \* ", " / "),
    (r"(?<=[\w)]) / ", " * "),
    (r"(?<![\w.])(\d+)(?![\w.])", r"\g<1>1"),
    (r"^(\s*)[\w.:]+\((?:[^()]|\([^()]*\))*\)$", r"\1-- nothing"),
)
"""What is replaced in Lua by what, as regular expressions on one line without its comment.

Only whole statements are taken out: a part of one would leave what is no Lua.
"""

LUA_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')

ASSURANCES = {"strict", "kw_only", "frozen", "gc", "slots", "_nrt", "forceinline"} | {
    *("no_cpython_wrapper", "no_cfunc_wrapper"),
}
"""Arguments that hold programmers to something or save time or memory, and change no answer."""

SINGLE = {"clock", "rules", "scratch"}
"""Arrays of the scheduler's state that have one entry: it is the first and the last one."""


class DeleteStatement(Operator):
    """Cosmic Ray deletes no statement: puts `pass` in the place of an assignment or a call."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the position of a statement that does something."""
        if node.type == "simple_stmt" and _does_something(node.children[0]):
            yield (node.start_pos, node.end_pos)

    def mutate(self, node: Any, index: int) -> Any:  # noqa: ARG002 - the base class names it
        """Put `pass` in the place of the statement."""
        statement = node.children[0]
        node.children[0] = Keyword("pass", statement.start_pos, statement.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return an example for Cosmic Ray's own documentation."""
        return (Example("a = 1\n", "pass\n"),)


def _does_something(statement: Any) -> bool:
    """Whether a statement is a call or an assignment, and no bare annotation of a field."""
    if statement.type == "expr_stmt":
        return statement.children[-1].type != "annassign" or "=" in statement.get_code()
    return statement.type == "atom_expr"


@dataclass(frozen=True)
class Mutant:
    """One file with one mistake in `line` (from 1)."""

    path: str
    line: int
    before: str
    after: str
    source: str


def chosen(root: Path, paths: list[str], count: int, seed: int) -> list[Mutant]:
    """`count` mutants of the files at `paths`, drawn with `seed`, at most one for each line.

    Every line of which a mutant can be made is as likely as any other.
    """
    lines = [
        (path, line)
        for path in sorted(paths)
        for line in _mutable_lines(path, (root / path).read_text("utf-8"))
    ]
    draw = random.Random(seed)  # noqa: S311 - a draw of mutants
    draw.shuffle(lines)
    mutants = []
    for path, line in lines:
        if len(mutants) == count:
            break
        possible = list(_mutants_of_line(path, (root / path).read_text("utf-8"), line))
        if possible:
            mutants.append(draw.choice(possible))
    return mutants


def _mutable_lines(path: str, source: str) -> list[int]:
    if path.endswith(".lua"):
        return [line for line, _ in enumerate(source.splitlines(), 1) if _lua(source, line)]
    positions = _positions(source)
    return sorted({line for line, _, _ in positions})


def _mutants_of_line(path: str, source: str, line: int) -> Iterator[Mutant]:
    if path.endswith(".lua"):
        mutated = _lua(source, line)
    else:
        mutated = [
            mutate_code(source, operator, occurrence)
            for at, operator, occurrence in _positions(source)
            if at == line
        ]
    for text in mutated:
        if path.endswith(".lua") or _differs(source, text):
            yield _mutant(path, source, text)


def _operators() -> list[Operator]:
    return [*(get_operator(f"core/{name}")() for name in OPERATORS), DeleteStatement()]


@cache
def _positions(source: str) -> list[tuple[int, Operator, int]]:
    """Line, operator and the operator's how-manieth place of every mutation of `source`."""
    nodes = list(ast_nodes(get_ast(source)))
    return [
        (start[0], operator, occurrence)
        for operator in _operators()
        for occurrence, (start, _) in enumerate(
            position for node in nodes for position in operator.mutation_positions(node)
        )
    ]


def _lua(source: str, line: int) -> list[str]:
    lines = source.splitlines(keepends=True)
    code, dashes, comment = lines[line - 1].rstrip("\n").partition("--")
    if '"' in dashes + comment:
        return []
    return [
        "".join([*lines[: line - 1], mutated + dashes + comment + "\n", *lines[line:]])
        for pattern, mistake in LUA_MISTAKES
        if (mutated := _outside_texts(pattern, mistake, code)) != code
    ]


def _outside_texts(pattern: str, mistake: str, code: str) -> str:
    """`code` with the mistake in the first place that is not within quotes."""
    texts = [text.span() for text in LUA_TEXT.finditer(code)]
    for found in re.finditer(pattern, code):
        start, end = found.span()
        if not any(begin <= start < stop for begin, stop in texts):
            return code[:start] + found.expand(mistake) + code[end:]
    return code


def _differs(source: str, mutated: str) -> bool:
    """Whether `mutated` is Python, and differs in what it does: not in annotations or texts."""
    try:
        return _behaviour(mutated) != _behaviour(source)
    except SyntaxError:
        return False


def _behaviour(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arguments):
            _call_as_one_likes(node)
        elif isinstance(node, ast.keyword) and node.arg in ASSURANCES:
            node.value = ast.Constant(None)
        elif isinstance(node, ast.Subscript) and _is_single(node.value):
            node.slice = ast.parse(ast.unparse(node.slice).replace("-1", "0"), mode="eval").body
        if isinstance(getattr(node, "body", None), list):
            node.body = [part for part in node.body if not _is_text(part)]
    return ast.dump(tree)


def _call_as_one_likes(arguments: ast.arguments) -> None:
    """Let all be named or not: `*` and `/` between them hold callers to one way."""
    arguments.args = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    arguments.defaults += [default for default in arguments.kw_defaults if default]
    arguments.posonlyargs, arguments.kwonlyargs, arguments.kw_defaults = [], [], []


def _is_single(array: ast.expr) -> bool:
    """Whether it is an array of one entry, as in `state.clock`, or a column of one."""
    if isinstance(array, ast.Subscript) and isinstance(array.slice, ast.Constant):
        array = array.value if isinstance(array.slice.value, str) else array
    return isinstance(array, ast.Attribute) and array.attr in SINGLE


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _mutant(path: str, source: str, mutated: str) -> Mutant:
    old, new = source.splitlines(), mutated.splitlines()
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    _, start, end, first, last = next(change for change in changes if change[0] != "equal")
    before = " ".join(part.strip() for part in old[start:end])
    return Mutant(path, start + 1, before, " ".join(p.strip() for p in new[first:last]), mutated)
