"""Compiles numeric loops to machine code and caches it under a name that depends on their text.

numba compiles a cached function again when the function's own file changes. It does not do so
when a function or constant of another module changes that was compiled into the cached function.
So the name of a cached function ends with a digest of everything that was compiled into it.
"""

import fcntl
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from hashlib import sha256
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.core import event as numba_event
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    NullCache,
)

log = logging.getLogger(__name__)

COMPILING = "compiling, once per installation: 20 s to a minute"
"""Said by every process that has to compile, when it begins to."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

CONSTANTS = (bool, int, float, str, bytes, tuple, frozenset, np.dtype, np.generic)
"""Types of globals whose values the compiler copies into machine code."""

LINEAR_ALGEBRA = "scipy.linalg"


def load_numpy_functions() -> None:
    """Load numba's share of NumPy without SciPy, where that is installed.

    numba would load SciPy for products of matrices, of which there are none here. It takes a tenth
    of a second of every start, and memory of every process. A module that is None cannot be found.
    """
    is_hidden = LINEAR_ALGEBRA not in sys.modules
    if is_hidden:
        sys.modules[LINEAR_ALGEBRA] = None  # type: ignore[assignment]
    try:
        import_module("numba.np.arraymath")
    finally:
        if is_hidden:
            del sys.modules[LINEAR_ALGEBRA]


load_numpy_functions()


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """``function`` as machine code, built at its first call or loaded from a cache."""
    return _compiled(function, error_model="python")


def compiled_for_threads(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The same, and other threads run meanwhile: they must leave the arguments as they are."""
    return _compiled(function, error_model="python", nogil=True)


def compiled_for_lanes(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The same for loops that divide: dividing by zero is infinite instead of an error.

    Without the check the processor takes several turns of a loop in one instruction.
    """
    return _compiled(function, error_model="numpy")


def _compiled(
    function: Callable[Parameters, Result], *, error_model: str, nogil: bool = False
) -> Callable[Parameters, Result]:
    function.__qualname__ = f"{function.__qualname__}-{source_digest(function)}"
    compiler: Any = njit  # its overloads do not know this option
    dispatcher: Any = compiler(error_model=error_model, nogil=nogil)(function)
    dispatcher._cache = MachineCode(function)  # noqa: SLF001 - enable_caching() takes numba's own only
    dispatcher.get_call_template = _for_plain_types(dispatcher.get_call_template)
    return cast("Callable[Parameters, Result]", dispatcher)


def _for_plain_types(template: Callable[..., Any]) -> Callable[..., Any]:
    """Let calls from machine code pass plain types.

    Else a function would be compiled again for each constant that a tuple holds, and again for
    numbers that come out of an array of short ones.
    """

    def of(arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        plain = {name: plain_type(kind) for name, kind in keywords.items()}
        return template(tuple(plain_type(kind) for kind in arguments), plain)

    return of


def plain_type(kind: Any) -> Any:
    """The type without the value of a constant, and with whole numbers of 64 bits."""
    if isinstance(kind, types.BaseAnonymousTuple):
        parts: Any = kind
        return types.Tuple([plain_type(part) for part in parts])  # type: ignore[no-untyped-call]
    plain: Any = types.unliteral(kind)  # type: ignore[no-untyped-call]
    return types.int64 if plain in {types.int8, types.int16, types.int32} else plain


def of_same_types(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A compiled function whose arguments are of the same types at every call.

    Their types are looked at in the first call only. To look at those of a few dozen arrays takes
    longer than most of what is compiled here. Arguments of other types are refused.
    """
    dispatcher: Any = function
    entry: Callable[..., Any] | None = None

    @wraps(dispatcher.py_func)
    def call(*arguments: Any) -> Any:
        nonlocal entry
        if entry is None:
            entry = dispatcher.compile(tuple(map(dispatcher.typeof_pyval, arguments)))
        return entry(*arguments)

    call.py_func = dispatcher.py_func  # type: ignore[attr-defined]
    call.dispatcher = dispatcher  # type: ignore[attr-defined]
    return cast("Callable[Parameters, Result]", call)


class MachineCode(NullCache):
    """Where the machine code of a function is kept: one cache to read and write, one to read.

    What this process compiles goes to NUMBA_CACHE_DIR, else beside the source, else to the user's
    cache directory; if none of these can be written, every process compiles for itself. What lies
    beside the source is read even where it cannot be written, as in an image with a read-only root.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._caches = [_opened(kind, function) for kind in (FunctionCache, _BesideSource)]

    @property
    def cache_path(self) -> str | None:
        """The directory that is written to."""
        return cast("str | None", self._caches[0].cache_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature and this processor, None if it is in neither."""
        found = (cache.load_overload(sig, target_context) for cache in self._caches)
        return next((code for code in found if code is not None), None)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code."""
        cache = self._caches[0]
        if isinstance(cache, NullCache):
            return
        cache._impl.locator.ensure_cache_path()  # noqa: SLF001 - as numba does before it saves
        with _alone_in(cache.cache_path):
            cache.save_overload(sig, data)


@contextmanager
def _alone_in(directory: str) -> Iterator[None]:
    """Let other processes wait that would write the same list of what a directory holds.

    Of two that read it, add to it and write it at one moment, one would take back the other's.
    """
    with open(f"{directory}/walltimed.lock", "a", encoding="ascii") as file:  # noqa: PTH123 - numba keeps files, we none
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _SourceDirectory(InTreeCacheLocator):
    def ensure_cache_path(self) -> None:
        """Nothing: it is only read."""


class _BesideSourceImpl(CompileResultCacheImpl):
    _locator_classes = [_SourceDirectory]  # noqa: RUF012 - as numba declares it


class _BesideSource(FunctionCache):
    _impl_class = _BesideSourceImpl


def _opened(kind: type[FunctionCache], function: Callable[..., Any]) -> Any:
    try:
        return kind(function)
    except RuntimeError:  # numba's answer to a read-only installation without a home directory
        return NullCache()


class _Announcement(numba_event.Listener):
    """Says that this process compiles, and counts what it compiles.

    numba tells it of functions that are not in its cache only.
    """

    def __init__(self) -> None:
        self.compilations = 0

    def on_start(self, event: numba_event.Event) -> None:
        """A function begins to be compiled, others perhaps within it."""
        del event
        if not self.compilations:
            log.warning(COMPILING)
        self.compilations += 1

    def on_end(self, event: numba_event.Event) -> None:
        """It is compiled."""
        del event


_announcement = _Announcement()
numba_event.register("numba:compile", _announcement)  # type: ignore[no-untyped-call]


def compilations() -> int:
    """How many functions this process has compiled because they were in no cache."""
    return _announcement.compilations


def source_digest(function: Callable[..., Any]) -> str:
    """A short text that changes with the code of ``function``, or of any part compiled into it."""
    digest = sha256()
    for part in parts_of(function):
        digest.update(f"{part.__module__}.{part.__name__}".encode())
        digest.update(repr(_text(part.__code__)).encode())
        digest.update(repr(_constants(part)).encode())
    return digest.hexdigest()[:12]


def parts_of(function: Callable[..., Any]) -> Iterator[FunctionType]:
    """``function`` and all compiled functions that it calls directly or indirectly, each once."""
    waiting, seen = [_python_of(function)], set()
    while waiting:
        part = waiting.pop()
        if part is None or part in seen:
            continue
        seen.add(part)
        yield part
        waiting += [_python_of(value) for _, value in _globals(part)]


def _python_of(value: Any) -> FunctionType | None:
    """The Python function behind a compiled one; None for anything else."""
    python = getattr(value, "py_func", value)
    return python if isinstance(python, FunctionType) else None


def _constants(part: FunctionType) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in _globals(part) if isinstance(value, CONSTANTS)]


def _globals(part: FunctionType) -> Iterator[tuple[str, Any]]:
    """The names that ``part`` looks up outside itself, with their values, in a fixed order."""
    closure = zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
    for name, cell in closure:
        yield name, cell.cell_contents
    names = sorted(_names(part.__code__))
    for name in names:
        value = part.__globals__.get(name)
        yield name, value
        if isinstance(value, ModuleType):
            yield from ((f"{name}.{each}", getattr(value, each, None)) for each in names)


def _names(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _text(code: CodeType) -> tuple[Any, ...]:
    """What the compiler reads of ``code``: its instructions, names and constants."""
    constants = [_text(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants
