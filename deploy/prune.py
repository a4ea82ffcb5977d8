"""Takes out of an environment what a service does not load, about a quarter of its size.

    deploy/prune.py SITE-PACKAGES

These are tests and sources of libraries, parts of libraries that nothing imports here, and symbols
that only a debugger reads (where strip of binutils is there). Learning a forest is what needs most
of SciPy and scikit-learn.
"""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = {"tests", ".agents"}
SOURCES = {".a", ".c", ".cpp", ".h", ".hpp", ".pc", ".pxd", ".pyi", ".pyx"}
UNUSED = """
alembic/testing
joblib/test
numba/cuda
numpy/distutils
scipy/_lib/cobyqa scipy/cluster scipy/datasets scipy/differentiate scipy/fftpack scipy/io scipy/misc
scipy/odr scipy/signal scipy/stats/_unuran
sklearn/cluster sklearn/cross_decomposition sklearn/datasets sklearn/feature_extraction
sklearn/feature_selection sklearn/frozen sklearn/gaussian_process sklearn/impute sklearn/inspection
sklearn/manifold sklearn/mixture sklearn/neural_network sklearn/semi_supervised
sqlalchemy/dialects/mssql sqlalchemy/dialects/mysql sqlalchemy/dialects/oracle
sqlalchemy/ext/asyncio sqlalchemy/orm sqlalchemy/testing
"""
"""Subpackages that neither walltimed nor what it imports loads."""

LEXERS = {"__init__", "_mapping", "python", "special"}
"""Modules of pygments that show a trace of Python, and plain text in a help; the others know other
languages."""


def main() -> None:
    """Prune the directory that is named."""
    packages = Path(sys.argv[1])
    unused = [packages / name for name in UNUSED.split()]
    tests = [path for path in packages.rglob("*") if path.name in TESTS and path.is_dir()]
    for directory in [*unused, *tests]:
        shutil.rmtree(directory, ignore_errors=True)
    sources = [path for path in packages.rglob("*") if path.suffix in SOURCES and path.is_file()]
    lexers = [path for path in packages.glob("pygments/lexers/*.py") if path.stem not in LEXERS]
    for file in [*sources, *lexers]:
        file.unlink()
    if program := shutil.which("strip"):
        for library in packages.rglob("*.so"):
            strip(library, program)


def strip(library: Path, program: str) -> None:
    """Take the symbols out of a library, unless it cannot be loaded then.

    Tools that make wheels move headers of libraries, and strip does not always keep these aligned.
    """
    stripped = library.with_suffix(".stripped")
    command: list[str | Path] = [program, "--strip-unneeded", "-o", stripped, library]
    done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL)  # noqa: S603 - fixed words
    if done.returncode == 0 and loads(stripped):
        stripped.replace(library)
    stripped.unlink(missing_ok=True)


def loads(library: Path) -> bool:
    """Return whether a library can be loaded; lazily, so that Python's symbols are found later."""
    try:
        ctypes.CDLL(str(library.resolve()), mode=ctypes.DEFAULT_MODE)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
