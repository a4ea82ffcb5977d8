"""What is kept as machine code is renewed with the source, shared by processes, and optional."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from numba import types

from predictors.compiled import digest_of, directory_of, plain_type

SUPPORT = Path(__file__).parents[1] / "support"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

PACKAGE = {
    "__init__.py": "",
    "constants.py": "LIMIT = 7\n",
    "other.py": "LIMIT = 8\n",
    "part.py": (
        "from numba import njit\nfrom sample import constants\n\n@njit\ndef part():\n"
        "    return constants.LIMIT\n"
    ),
    "whole.py": (
        "from predictors.compiled import compiled\nfrom sample.part import part\n\n@compiled\n"
        "def whole():\n    return part()\n\n@compiled\ndef other(number):\n    return number\n"
    ),
}

ASK = "from sample import whole; from predictors.compiled import compilations as compiled;"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "sample"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    return folder


def _answer(
    package: Path,
    ask: str = "print(whole.whole(), compiled())",
    before: Sequence[str] = (),
    **known: object,
) -> str:
    """Return what a new process prints; ``before`` stands in front of its command."""
    done = subprocess.run(
        [*before, sys.executable, "-c", ASK + ask],
        cwd=package.parent,
        env=os.environ | {name: str(value) for name, value in known.items()},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_machine_code_follows_a_constant_of_a_third_module(package):
    assert _answer(package) == "7 2"
    assert _answer(package) == "7 0"
    (package / "constants.py").write_text("LIMIT = 9\n")
    assert _answer(package) == "9 2"


def test_machine_code_follows_the_text_of_what_it_calls(package):
    assert _answer(package) == "7 2"
    changed = PACKAGE["part.py"].replace("constants.LIMIT", "constants.LIMIT + 1")
    (package / "part.py").write_text(changed)
    assert _answer(package) == "8 2"


def test_a_change_of_a_module_that_is_not_imported_compiles_nothing(package):
    assert _answer(package) == "7 2"
    (package / "other.py").write_text("LIMIT = 9\n")
    assert _answer(package, "import sample.other; print(whole.whole(), compiled())") == "7 0"


def test_of_the_versions_of_a_module_the_last_few_stay(tmp_path):
    module, found = tmp_path / "module.py", []
    for number in range(8):
        module.write_text(f"LIMIT = {number}\n")
        digest_of.cache_clear()
        directory_of.cache_clear()
        found.append(directory_of("module", module))
        os.utime(found[-1], (number, number))
    assert [directory.exists() for directory in found] == [False] * 3 + [True] * 5


def test_code_beside_the_source_is_used_where_what_is_compiled_goes_elsewhere(package, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    assert _answer(package) == "7 2"
    assert _answer(package, NUMBA_CACHE_DIR=elsewhere) == "7 0"
    assert not elsewhere.exists()
    (package / "constants.py").write_text("LIMIT = 9\n")
    assert _answer(package, NUMBA_CACHE_DIR=elsewhere) == "9 2"
    assert list(elsewhere.rglob("*.nbc"))


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv: root writes everywhere")
def test_code_in_a_directory_that_cannot_be_written_is_used(package):
    assert _answer(package) == "7 2"
    places = [package, package / "__pycache__", *package.glob("__pycache__/*-*")]
    for place in places:
        place.chmod(0o500)
    as_any_user = ("setpriv", "--bounding-set=-dac_override")
    known = {"XDG_CACHE_HOME": "/dev/null", "PYTHONDONTWRITEBYTECODE": 1}
    try:
        assert _answer(package, before=as_any_user, **known) == "7 0"
        more = "print(whole.other(2), compiled())"
        for _ in range(2):
            assert _answer(package, more, before=as_any_user, **known) == "2 1"
    finally:
        for place in places:
            place.chmod(0o700)


def test_without_any_directory_every_process_compiles(package):
    (package / "__pycache__").write_text("no directory")
    for _ in range(2):
        assert _answer(package, XDG_CACHE_HOME="/dev/null") == "7 2"


def test_scipy_is_not_loaded_to_run_machine_code_and_can_be_loaded_afterwards(package):
    loaded = "whole.whole(), 'scipy.linalg' in sys.modules, scipy.linalg.__name__"
    assert _answer(package, f"import sys; import scipy; print({loaded})") == "7 False scipy.linalg"


MANY = """from predictors.compiled import compiled

@compiled
def doubled(number):
    return number + number
"""

KINDS = ("1", "1.5", "(1, 2)", "True", "1j", "'a'", "(1.5, 2)", "((1,), 2)")


def test_processes_that_compile_for_different_types_at_once_lose_nothing(tmp_path):
    (tmp_path / "many.py").write_text(MANY)
    ask = "from many import doubled; doubled({}); from predictors.compiled import compilations;"
    command = [sys.executable, "-c"]
    started = [
        subprocess.Popen([*command, ask.format(kind)], cwd=tmp_path, stderr=subprocess.DEVNULL)
        for kind in KINDS
    ]
    assert [process.wait(60) for process in started] == [0] * len(KINDS)
    again = "; ".join(f"doubled({kind})" for kind in KINDS)
    done = subprocess.run(
        [*command, ask.format("1") + again + "; print(compilations())"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "0\n"


PAIRS = """from predictors.compiled import compiled

@compiled
def first(pair):
    return pair[0]

@compiled
def whole(number):
    return first((1, number)) + first((2, 3)) + first((number, 4))
"""


def test_a_part_is_compiled_once_for_all_constants_that_it_is_called_with(package):
    """It rests on numba's ``get_call_template``: fails where numba asks for types otherwise."""
    (package / "whole.py").write_text(PAIRS)
    assert _answer(package, "print(whole.whole(5), compiled())") == "8 2"


def test_a_plain_type_has_no_constant_and_no_short_number():
    assert plain_type(types.literal(3)) == types.int64
    assert plain_type(types.Tuple([types.int32, types.float64])) == types.Tuple(
        [types.int64, types.float64]
    )


def test_policies_and_methods_answer_alike_as_python_and_as_machine_code():
    def said(**switch: str) -> object:
        done = subprocess.run(
            [sys.executable, str(SUPPORT / "plain_python.py")],
            env=os.environ | {"PYTHONPATH": f"{Path.cwd()}:{BENCHMARKS}"} | switch,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    assert said(NUMBA_DISABLE_JIT="1") == said()
