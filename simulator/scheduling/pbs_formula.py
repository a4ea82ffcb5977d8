"""Reads a job_sort_formula, a Python expression, as operations on a stack."""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from predictors.aged_length import LENGTH_FACTOR, MOST_PRECEDENCE
from simulator.engine.pbs import formula
from simulator.engine.pbs.pbs_state import DEEPEST
from simulator.engine.queue_orders import OVERDUE
from simulator.scheduling.ratio_rules import RatioRules

LONGEST_FORMULA = 4096
"""Characters."""

SOFT_WALLTIME, LENGTH, WAIT = "soft_walltime", "walltimed_length", "eligible_time"
"""Variables whose values are known during the simulation only."""


AGED_FORMULA = (
    f"eligible_time - min({LENGTH_FACTOR} * (walltimed_length or walltime), {MOST_PRECEDENCE})"
)
"""The order ``sjf-aging`` as a site sets it, with ``eligible_time_enable``."""


def ratio_formula(rules: RatioRules, first_after: int | str | None = None) -> str:
    """Return the order ``response-ratio`` as a site sets it, with ``eligible_time_enable``.

    Args:
        first_after: seconds of waiting after which a job goes first; None: none does.
    """
    length = f"max({rules.shortest}, min({rules.longest}, {LENGTH} or walltime))"
    ratio = f"(eligible_time + {rules.offset}) / {length}"
    if first_after is None:
        return ratio
    is_overdue = f"min(1, max(0, eligible_time - {first_after}))"
    return f"max({ratio}, {is_overdue} * ({OVERDUE:.0f} + eligible_time))"


class FormulaError(ValueError):
    """A formula cannot be read; the message quotes it."""


class Operation(NamedTuple):
    """An operation, with the number that it pushes or the variable that it looks up."""

    code: int
    number: float = 0.0
    variable: str = ""


_BINARY: Mapping[type[ast.operator], int] = {
    ast.Add: formula.ADD,
    ast.Sub: formula.SUBTRACT,
    ast.Mult: formula.MULTIPLY,
    ast.Div: formula.DIVIDE,
    ast.FloorDiv: formula.FLOOR_DIVIDE,
    ast.Pow: formula.POWER,
}

_FUNCTIONS = {
    "abs": formula.ABSOLUTE,
    "sqrt": formula.ROOT,
    "log": formula.LOGARITHM,
    "exp": formula.EXPONENTIAL,
}

_EXTREMES = {"min": formula.LEAST, "max": formula.MOST}


def compiled_formula(text: str) -> list[Operation]:
    """Return the operations of a formula.

    Raises:
        FormulaError: it is no expression of numbers, names, + - * / // **, or, min, max, abs,
            sqrt, log, exp and pow, or it is nested too deeply.
    """
    try:
        operations = list(_operations(ast.parse(text[:LONGEST_FORMULA].strip(), mode="eval").body))
    except (FormulaError, SyntaxError, ValueError, RecursionError) as error:
        raise FormulaError(
            f"The twin cannot read job_sort_formula = {text[:200]!r}: it takes numbers, names, "
            "+ - * / // **, or, min, max, abs, sqrt, log, exp and pow."
        ) from error
    if len(operations) >= DEEPEST and _deepest(operations) > DEEPEST:
        raise FormulaError(f"job_sort_formula is nested too deeply: {text[:200]!r}.")
    return operations


def _operations(node: ast.expr) -> Iterator[Operation]:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            yield Operation(formula.CONSTANT, number=float(number))
        case ast.Name(id=name):
            yield _variable(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from _operations(operand)
            yield Operation(formula.NEGATIVE)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            yield from _operations(operand)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
            yield from _operations(left)
            yield from _operations(right)
            yield Operation(_BINARY[type(operator)])
        case ast.BoolOp(op=ast.Or(), values=values):
            yield from _folded(values, formula.OR)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            yield from _called(name, arguments)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name), args=arguments):
            yield from _called(name, arguments)
        case _:
            raise FormulaError


def _called(name: str, arguments: list[ast.expr]) -> Iterator[Operation]:
    """Yield the operations of a function's call."""
    if name in _FUNCTIONS and len(arguments) == 1:
        yield from _operations(arguments[0])
        yield Operation(_FUNCTIONS[name])
    elif name == "pow" and len(arguments) == 2:
        yield from _operations(arguments[0])
        yield from _operations(arguments[1])
        yield Operation(formula.POWER)
    elif name in _EXTREMES and arguments:
        yield from _folded(arguments, _EXTREMES[name])
    else:
        raise FormulaError


def _folded(arguments: list[ast.expr], code: int) -> Iterator[Operation]:
    """Yield an operation of two numbers on several, from left to right."""
    yield from _operations(arguments[0])
    for each in arguments[1:]:
        yield from _operations(each)
        yield Operation(code)


def _variable(name: str) -> Operation:
    if name == SOFT_WALLTIME:
        return Operation(formula.SOFT_WALLTIME)
    if name == LENGTH:
        return Operation(formula.LENGTH)
    if name == WAIT:
        return Operation(formula.WAIT)
    return Operation(formula.COLUMN, variable=name)


def _deepest(operations: list[Operation]) -> int:
    """Return the most numbers that stand on the stack at once."""
    depth, deepest = 0, 0
    for each in operations:
        if each.code <= formula.WAIT:
            depth += 1
        elif each.code <= formula.MOST:
            depth -= 1
        deepest = max(deepest, depth)
    return deepest
