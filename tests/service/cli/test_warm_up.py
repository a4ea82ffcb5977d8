"""Compiling once, and never silently."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from running_service import WALLTIMED

from predictors.compiled import COMPILING

SMALL = """
import sys
sys.path.insert(0, sys.argv[1])
import compiled_here
compiled_here.twice(2)
from predictors.compiled import compilations
print(compilations())
"""

MODULE = """
from predictors.compiled import compiled

@compiled
def twice(number: int) -> int:
    return 2 * number
"""


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_whoever_compiles_says_so_and_whoever_finds_it_compiled_does_not(tmp_path):
    (tmp_path / "compiled_here.py").write_text(MODULE)
    first = run(sys.executable, "-c", SMALL, tmp_path)
    again = run(sys.executable, "-c", SMALL, tmp_path)
    assert (first.stdout, first.stderr) == ("1\n", f"{COMPILING}\n")
    assert (again.stdout, again.stderr) == ("0\n", "")


@pytest.mark.acceptance
def test_after_a_warm_up_nothing_is_left_to_be_compiled():
    run(WALLTIMED, "warm-up", "--json")
    again = run(WALLTIMED, "warm-up", "--json")
    assert json.loads(again.stdout)["compiled"] == 0
    assert COMPILING not in again.stderr


def test_every_installation_warms_up():
    root = Path(__file__).parents[3]
    for file in ("Makefile", "Dockerfile", "deploy/postinst"):
        assert "walltimed warm-up" in (root / file).read_text(), file
