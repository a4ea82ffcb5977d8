"""Marks what runs as machine code: the scheduling loop and everything that it calls.

Only the loop itself is kept in numba's cache, under a key that holds the text of every module
it is made of: numba alone would go on using a loop whose parts have changed. The parts are
compiled into it and need no cache of their own.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_HERE = Path(__file__).parent
_PREDICTORS = _HERE.parent / "predictors"
_MARKS = (b"@kernel", b"@inlined", b"@compiled", b"TSAFRIR_STEPS")


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
    part: Any = njit  # its overloads do not know these options, which make the loop 3 times as fast
    wrapped = part(
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        _nrt=False,  # no part makes an array: nobody has to count who still uses the state's
        **options,
    )(function)
    return cast("Callable[Parameters, Result]", wrapped)


def source_digest() -> int:
    """A number that changes with the text of any module of the loop."""
    parts = [
        *(_PREDICTORS / name for name in ("correction.py", "psp.py")),
        *sorted(_HERE.glob("*.py")),
        *sorted(_HERE.glob("policies/*.py")),
    ]
    digest = sha256()
    for text in (path.read_bytes() for path in parts):
        if any(mark in text for mark in _MARKS):
            digest.update(text)
    return int.from_bytes(digest.digest()[:7], "big")
