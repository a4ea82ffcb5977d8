"""The parts of the house where a mistake costs a user, and the tests that should notice it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Area:
    """Files by glob patterns, and the folders or files of their tests."""

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = (
    Area(
        "predictors",
        ("predictors/**/*.py",),
        (
            "tests/predictors",
            "tests/simulator/replay",
            "tests/service/contract",
        ),
    ),
    Area(
        "engine and policies",
        ("simulator/engine/**/*.py", "simulator/scheduling/*.py"),
        ("tests/simulator/engine", "tests/simulator/scheduling", "tests/simulator/shared_nodes"),
    ),
    Area("store", ("service/store/*.py",), ("tests/service/store", "tests/migrations")),
    Area(
        "auth and doors",
        ("service/auth.py", "service/http/*.py"),
        ("tests/service/http", "tests/service/contract", "tests/service/test_pseudonyms.py"),
    ),
    Area("adapters", ("service/adapters/**/*.py",), ("tests/service/adapters",)),
    Area(
        "hooks",
        ("integrations/**/*.py", "integrations/slurm/*.lua"),
        ("tests/integrations",),
    ),
)


def files(root: Path, area: Area) -> list[str]:
    """The area's files that hold code, from `root` on."""
    found = {path for pattern in area.files for path in root.glob(pattern)}
    return sorted(str(path.relative_to(root)) for path in found if path.name != "__init__.py")


def nearest(root: Path, area: Area, path: str) -> list[str]:
    """The area's test files that bear the name of the file at `path`, or name it.

    They are tried first: most mistakes are noticed there, in seconds.
    """
    stem, module = Path(path).stem, path.removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    signs = (module, f"from {package} import {name}", Path(path).name)
    return [
        str(test.relative_to(root))
        for test in _test_files(root, area)
        if stem in test.stem or any(sign in test.read_text("utf-8") for sign in signs)
    ]


def _test_files(root: Path, area: Area) -> list[Path]:
    places = [root / place for place in area.tests]
    found = [[place] if place.is_file() else place.rglob("test_*.py") for place in places]
    return sorted(file for files_ in found for file in files_)
