"""Compiles numeric loops to machine code, cached on disk where there is a place for it."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """``function`` as machine code, built at its first call or loaded from numba's cache.

    The cache lies beside the source, else in the user's cache directory, else in
    NUMBA_CACHE_DIR. Where none of them can be written, every process compiles for itself.
    """
    try:
        return cast("Callable[Parameters, Result]", njit(cache=True)(function))
    except RuntimeError:  # numba's answer to a read-only installation without a home directory
        return cast("Callable[Parameters, Result]", njit(function))
