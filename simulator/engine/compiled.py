"""Marks what runs as machine code: the scheduling loop and everything that it calls.

Only the loop itself is kept in numba's cache. The parts are compiled into it and need no cache
of their own.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

PARTS: list[Callable[..., Any]] = []
"""All functions that are marked as parts of the loop, in the order in which they are defined."""


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A part of the scheduling loop that is called."""
    return _part(function)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A part of the scheduling loop that is copied into what calls it: a small one, called often.

    A call hands over the state as more than a hundred numbers, which costs more than most small
    parts do. Copying everything would make the compiler work for three times as long.
    """
    return _part(function, forceinline=True)


def _part(function: Callable[Parameters, Result], **options: bool) -> Callable[Parameters, Result]:
    PARTS.append(function)
    part: Any = njit  # its overloads do not know these options, which make the loop 3 times as fast
    wrapped = part(
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        _nrt=False,  # no part makes an array: nobody has to count who still uses the state's
        **options,
    )(function)
    return cast("Callable[Parameters, Result]", wrapped)
