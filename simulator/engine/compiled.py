"""Marks the functions that run as machine code: the scheduling loops and all that they call.

Only the loops themselves are kept in numba's cache. The other functions are compiled into the loops
and need no cache of their own.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Mark ``function`` as a part of the scheduling loop that is called."""
    return _part(function)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Mark ``function`` as a small part of the scheduling loop that is copied into its callers.

    A call passes the state as more than a hundred numbers, which costs more than most small parts
    do. Copying all parts would make compiling take three times as long.
    """
    return _part(function, forceinline=True)


def copied(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Mark ``function`` as a part of the scheduling loop that is written out in its callers.

    It is for the outermost parts. Each level of calls would be optimised anew with all that is
    below it, which took seconds of a processor for each.
    """
    return _part(function, inline="always")


def _part(
    function: Callable[Parameters, Result], **options: bool | str
) -> Callable[Parameters, Result]:
    part: Any = njit  # its overloads do not know these options, which make the loop 3 times as fast
    wrapped = part(
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        _nrt=False,  # no part makes an array, so references to the state's arrays need no counting
        **options,
    )(function)
    return cast("Callable[Parameters, Result]", wrapped)


def with_parts(
    function: Callable[Parameters, Result], owner: str, **parts: Callable[..., Any]
) -> Callable[Parameters, Result]:
    """Return a copy of ``function`` that calls ``parts`` in place of the globals of these names.

    It is named for its owner: of two functions of one name in machine code that was compiled by
    different processes, the linker would take one for both.
    """
    plain = cast("FunctionType", function)
    names = plain.__globals__ | parts
    copy = FunctionType(plain.__code__, names, f"{plain.__name__}_{owner}", plain.__defaults__)
    copy.__qualname__ = copy.__name__
    return cast("Callable[Parameters, Result]", copy)
