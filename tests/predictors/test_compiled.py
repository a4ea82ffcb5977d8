"""What is cached as machine code is renewed when any part of it changes."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import predictors
from predictors import compiled, distribution
from predictors.memory import calibration, columns, rank_counts
from predictors.methods import least_cost_search
from simulator.engine import corrections
from simulator.engine.policies import backfilling

TWO_MODULES = {
    "constants.py": "LIMIT = 7\n",
    "part.py": (
        "from numba import njit\nimport constants\n\n@njit\ndef part():\n"
        "    return constants.LIMIT\n"
    ),
    "whole.py": (
        "from predictors.compiled import compiled\nfrom part import part\n\n@compiled\n"
        "def whole():\n    return part()\n"
    ),
}


def _answer(folder: Path, ask: str = "import whole; print(whole.whole())") -> str:
    return subprocess.run(
        [sys.executable, "-c", ask], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_cached_function_follows_a_constant_of_a_third_module(tmp_path):
    for name, text in TWO_MODULES.items():
        (tmp_path / name).write_text(text)
    assert _answer(tmp_path) == "7"
    assert list(tmp_path.glob("__pycache__/*.nbi")), "nothing was cached, so nothing is shown"
    (tmp_path / "constants.py").write_text("LIMIT = 9\n# not the same length\n")
    assert _answer(tmp_path) == "9"


def test_a_cached_function_follows_the_text_of_what_it_calls(tmp_path):
    for name, text in TWO_MODULES.items():
        (tmp_path / name).write_text(text)
    assert _answer(tmp_path) == "7"
    (tmp_path / "part.py").write_text(TWO_MODULES["part.py"] + "    # changed\n")
    assert _answer(tmp_path) == "7"
    changed = TWO_MODULES["part.py"].replace("constants.LIMIT", "constants.LIMIT + 1")
    (tmp_path / "part.py").write_text(changed)
    assert _answer(tmp_path) == "8"


def test_scipy_is_not_loaded_to_run_machine_code_and_can_be_loaded_afterwards(tmp_path):
    for name, text in TWO_MODULES.items():
        (tmp_path / name).write_text(text)
    loaded = "whole.whole(), 'scipy.linalg' in sys.modules, scipy.linalg.__name__"
    said = _answer(tmp_path, f"import sys, whole; import scipy; print({loaded})")
    assert said == "7 False scipy.linalg"


def test_the_digest_of_the_scheduling_loop_changes_with_a_constant_of_a_part(monkeypatch):
    before = compiled.source_digest(backfilling.run)
    assert compiled.source_digest(backfilling.run) == before
    monkeypatch.setattr(corrections, "_STEPS", (60, 120))
    assert compiled.source_digest(backfilling.run) != before


def test_the_digest_of_an_interval_covers_weights_quantiles_and_corrected_levels(monkeypatch):
    asked = least_cost_search.certain
    covered = set(compiled.parts_of(asked))
    parts = (least_cost_search.weigh, distribution.quantile_at, calibration.corrected)
    for part in (*parts, calibration.known, columns.admit):
        assert part.py_func in covered
    before = compiled.source_digest(asked)
    monkeypatch.setattr(rank_counts, "BORROWED", 999)
    assert compiled.source_digest(asked) != before


def test_the_digest_tells_nothing_of_one_process():
    ask = (
        "from predictors.compiled import source_digest;"
        "from simulator.engine.policies.backfilling import run;"
        "print(source_digest(run))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", ask], check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    }
    assert len(digests) == 1


def test_no_function_is_compiled_in_two_places():
    """Its name in the cache would depend on which of them is imported first."""
    names = {
        each.py_func.__qualname__
        for module in walk_packages(predictors.__path__, "predictors.")
        for each in vars(import_module(module.name)).values()
        if hasattr(each, "py_func")
    }
    assert len(names) > 50
    assert [name for name in names if name.count("-") != 1] == []
