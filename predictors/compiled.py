"""Compiles numeric loops to machine code with numba, and keeps the code between processes.

numba compiles a cached function again when the file of the function changes. It does not do so
when a function or constant of another module changes that was compiled into the cached function.
So the machine code of a module lies in a directory named by a digest of the module's text and of
all modules that the module imports.

With ``NUMBA_DISABLE_JIT=1`` all functions stay Python, for breakpoints and coverage.
"""

import fcntl
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, wraps
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba import njit, types
from numba.core import event as numba_event
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    NullCache,
)

log = logging.getLogger(__name__)

config: Any = numba.config

COMPILING = "compiling, once per installation: "
"""Begins what every process logs that has to compile a part, when it begins to."""

PARTS = {
    "simulator.engine.slurm": "the twin of Slurm, about 2 minutes on an idle core",
    "simulator.engine.pbs": "the twin of PBS, about 40 s on an idle core",
    "simulator.engine": "the loop of a policy, about 20 s on an idle core",
    "": "the methods, 20 s to a minute on an idle core",
}
"""Names and times of parts by the beginning of their modules' names; the first that fits counts."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

PACKAGES = ("predictors", "simulator")
"""Packages whose modules have functions that are compiled into functions of other modules."""

VERSIONS_KEPT = 5
"""Number of directories of machine code that one module leaves behind as its text changes."""

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
    """Return ``function`` as machine code, built at its first call or loaded from the cache."""
    return _compiled(function, error_model="python")


def compiled_for_threads(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Like ``compiled``, but other threads run meanwhile: they must not change the arguments."""
    return _compiled(function, error_model="python", nogil=True)


def compiled_for_lanes(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Like ``compiled``, for loops that divide: dividing by zero is infinite instead of an error.

    Without the check the processor takes several turns of a loop in one instruction.
    """
    return _compiled(function, error_model="numpy")


def _compiled(
    function: Callable[Parameters, Result], *, error_model: str, nogil: bool = False
) -> Callable[Parameters, Result]:
    if config.DISABLE_JIT:
        return function
    compiler: Any = njit  # its overloads do not know this option
    dispatcher: Any = compiler(error_model=error_model, nogil=nogil)(function)
    dispatcher._cache = _cache_of(function)  # noqa: SLF001 - enable_caching() takes numba's own only
    dispatcher.get_call_template = with_plain_types(dispatcher.get_call_template)
    return cast("Callable[Parameters, Result]", dispatcher)


def with_plain_types(template: Callable[..., Any]) -> Callable[..., Any]:
    """Let calls from machine code pass plain types.

    Else a function would be compiled again for each constant that a tuple holds, and again for
    numbers that come out of an array of short ones.
    """

    def of(arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        plain = {name: plain_type(kind) for name, kind in keywords.items()}
        return template(tuple(plain_type(kind) for kind in arguments), plain)

    return of


def plain_type(kind: Any) -> Any:
    """Return the type without the value of a constant, and with whole numbers of 64 bits."""
    if isinstance(kind, types.BaseAnonymousTuple):
        parts: Any = kind
        return types.Tuple([plain_type(part) for part in parts])  # type: ignore[no-untyped-call]
    plain: Any = types.unliteral(kind)  # type: ignore[no-untyped-call]
    return types.int64 if plain in {types.int8, types.int16, types.int32} else plain


def of_same_types(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a compiled function for arguments of the same types at every call.

    Their types are looked at in the first call only. To look at those of a few dozen arrays takes
    longer than most of what is compiled here. Arguments of other types are refused.
    """
    if config.DISABLE_JIT:
        return function
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


class DirectoryLocator(InTreeCacheLocator):
    """Tells numba's cache the directory of a function's machine code, see ``directory_of``."""

    def __init__(self, py_func: FunctionType, py_file: str) -> None:
        super().__init__(py_func, py_file)  # type: ignore[no-untyped-call]
        self.directory = directory_of(py_func.__module__, Path(py_file))

    def ensure_cache_path(self) -> None:
        """Make the directory if it is missing.

        Raises:
            OSError: there is none that can be read or written; numba then uses no cache.
        """
        if self.directory is None:
            raise FileNotFoundError
        self.directory.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> Any:
        """Return the directory."""
        return self.directory

    def get_source_stamp(self) -> str:
        """Return a constant: the name of the directory changes with the source."""
        return ""


class DirectoryCacheImpl(CompileResultCacheImpl):
    """numba's cache with our directories alone."""

    _locator_classes = [DirectoryLocator]  # noqa: RUF012 - as in numba


class MachineCode(FunctionCache):
    """numba's cache of one function, for processes that write at once or cannot write at all."""

    _impl_class = DirectoryCacheImpl

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the machine code for a signature, unless the directory cannot be written.

        Of two processes that read numba's list of a directory, add to it and write it at once, one
        would lose what the other added, or both would give one name to different machine code.
        """
        with suppress(OSError), Path(self.cache_path, "walltimed.lock").open("a") as file:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _cache_of(function: Callable[..., Any]) -> Any:
    """Return the cache of a function's machine code; without any directory one that is empty."""
    try:
        return MachineCode(function)  # type: ignore[no-untyped-call]
    except RuntimeError:  # raised by numba without a locator
        return NullCache()


@cache
def directory_of(module: str, source: Path) -> Path | None:
    """Return the directory of a module's machine code; None if none can be read or written.

    The places are NUMBA_CACHE_DIR, the directory of the source, and the user's cache directory. A
    directory that exists is used where it is, even if it cannot be written, so that an image with a
    read-only root brings its machine code; without any, the first that can be made.
    """
    name = f"{module.rpartition('.')[2]}-{digest_of(module, source)}"
    places = [root / name for root in roots_of(source)]
    usable = [place for place in places if os.access(place, os.R_OK | os.X_OK)]
    usable.sort(key=lambda place: not os.access(place, os.W_OK))
    if usable:
        return usable[0]
    for place in places:
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            _remove_old_versions(place)
            return place
    return None


def roots_of(source: Path) -> list[Path]:
    """Return the places for directories of machine code, the first choice first."""
    roots = [source.parent / "__pycache__"]
    if config.CACHE_DIR:
        roots.insert(0, Path(config.CACHE_DIR))
    with suppress(RuntimeError):  # a user without a home directory
        user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        roots.append(Path(user, "walltimed"))
    return roots


def _remove_old_versions(directory: Path) -> None:
    """Remove the oldest directories of a module beyond VERSIONS_KEPT."""
    versions = directory.parent.glob(directory.name.rpartition("-")[0] + "-" + "[0-9a-f]" * 12)
    for old in sorted(versions, key=lambda each: each.stat().st_mtime)[:-VERSIONS_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


@cache
def digest_of(module: str, source: Path) -> str:
    """Return a short text that changes with the text of a module or of modules that it imports.

    Imports count that stand at the beginning of a line: these have happened when a function of
    the module is compiled.
    """
    texts, waiting = {module: ""}, [(module, source)]
    packages = {*PACKAGES, module.partition(".")[0]}
    while waiting:
        module, source = waiting.pop()
        texts[module] = source.read_text("utf-8")
        for name in _imported(texts[module]) - texts.keys():
            path = getattr(sys.modules.get(name), "__file__", None)
            if path and name.partition(".")[0] in packages:
                texts[name] = ""
                waiting.append((name, Path(path)))
    return sha256(repr(sorted(texts.items())).encode()).hexdigest()[:12]


def _imported(text: str) -> set[str]:
    """Return the names of modules that a text may import: also of names that are no modules."""
    found = set(re.findall(r"^import ([\w.]+)", text, re.MULTILINE))
    for package, names in re.findall(r"^from ([\w.]+) import (\([^)]*\)|.*)", text, re.MULTILINE):
        found |= {package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))}
    return found


class _Announcement(numba_event.Listener):
    """Logs each part once that this process compiles, and counts what it compiles.

    numba tells of functions that are not in its cache only.
    """

    def __init__(self) -> None:
        self.compilations = 0
        self._depth = 0
        self._parts: set[str] = set()

    def on_start(self, event: numba_event.Event) -> None:
        """Count a function that begins to be compiled, perhaps with others in it."""
        self.compilations += 1
        self._depth += 1
        if self._depth > 1:
            return
        part = part_of(event.data["dispatcher"].py_func.__module__)
        if part not in self._parts:
            self._parts.add(part)
            log.warning("%s%s", COMPILING, part)

    def on_end(self, event: numba_event.Event) -> None:
        """Leave the function that is compiled."""
        del event
        self._depth -= 1


def part_of(module: str) -> str:
    """Return the name and the time of the part that a compiled module belongs to."""
    return next(part for beginning, part in PARTS.items() if module.startswith(beginning))


_announcement = _Announcement()
numba_event.register("numba:compile", _announcement)  # type: ignore[no-untyped-call]


def compilations() -> int:
    """Return how many functions this process has compiled because they were in no cache."""
    return _announcement.compilations
