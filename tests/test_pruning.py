"""What packages and image leave out of libraries is needed by nothing that runs."""

import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PRUNING = runpy.run_path(str(Path(__file__).parent.parent / "deploy" / "prune.py"))

LOADS = """
import contextlib, io, sys
import numpy as np
from deap import base, tools
from sklearn.ensemble import RandomForestRegressor
import psycopg, rich.markdown, rich.traceback, service.cli, service.http.app, service.http.server

runs = np.arange(200.0).reshape(50, 4)
RandomForestRegressor(4, min_samples_leaf=4).fit(runs, runs[:, 0]).apply(runs)
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    service.cli.app(["import", "--help"])  # shows a block of plain text
print(*sys.modules)
"""


UPGRADES = """
import sys
from service.store import open_store

store = open_store(sys.argv[1])
store.upgrade()
store.close()
print(*sys.modules)
"""


def loaded_by(*words):
    command = [sys.executable, "-W", "ignore", "-c", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name.replace(".", "/") for name in done.stdout.split()}


def test_an_upgrade_loads_nothing_that_is_left_out(tmp_path):
    loaded = loaded_by(UPGRADES, f"sqlite:///{tmp_path}/new.sqlite3")
    assert "alembic/runtime/migration" in loaded
    assert loaded.isdisjoint(PRUNING["UNUSED"].split())


def test_nothing_that_is_left_out_is_loaded():
    loaded = loaded_by(LOADS)
    assert "sklearn/ensemble" in loaded
    assert loaded.isdisjoint(PRUNING["UNUSED"].split())
    lexers = {Path(name).name for name in loaded if name.startswith("pygments/lexers/")}
    assert lexers <= PRUNING["LEXERS"]


def test_every_part_that_is_left_out_exists():
    packages = Path(sysconfig.get_path("purelib"))
    assert [name for name in PRUNING["UNUSED"].split() if not (packages / name).is_dir()] == []


@pytest.fixture
def library(tmp_path):
    """Some extension module of a library."""
    original = next(Path(sysconfig.get_path("purelib")).glob("msgspec/*.so"))
    return Path(shutil.copy(original, tmp_path))


@pytest.mark.skipif(shutil.which("strip") is None, reason="needs strip of binutils")
def test_a_library_loses_its_symbols(library):
    before = library.stat().st_size
    PRUNING["strip"](library, shutil.which("strip"))
    assert library.stat().st_size < before
    assert PRUNING["loads"](library)


def test_a_library_that_cannot_be_loaded_any_more_is_left_as_it_is(library, tmp_path):
    program = tmp_path / "strip"
    program.write_text('#!/bin/sh\necho broken > "$3"\n')
    program.chmod(0o755)
    before = library.read_bytes()
    PRUNING["strip"](library, str(program))
    assert library.read_bytes() == before
    assert [*tmp_path.glob("*.stripped")] == []


def test_tests_sources_and_lexers_of_libraries_are_left_out(tmp_path, monkeypatch):
    for name in ("a/tests/test_a.py", "a/a.pyx", "a/a.py", "scipy/io/x.py", "scipy/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    lexers = tmp_path / "pygments" / "lexers"
    lexers.mkdir(parents=True)
    (lexers / "python.py").touch()
    (lexers / "ada.py").touch()
    monkeypatch.setattr(sys, "argv", ["prune.py", str(tmp_path)])
    PRUNING["main"]()
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"a/a.py", "scipy/x.py", "pygments/lexers/python.py"}
