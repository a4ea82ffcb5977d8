"""Coverage is measured where it is meant to be, however tests make it pause."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).with_name("support")

PAUSED = """
import coverage, sys
sys.path.insert(0, sys.argv[1])
from coverage_pauses import uncovered
measured = coverage.Coverage(data_file=None, include=["*/looked_at.py"])
measured.start()
import looked_at
looked_at.before()
with uncovered():
    looked_at.meanwhile()
looked_at.after()
measured.stop()
print(measured.analysis(looked_at.__file__)[2])
"""

PROPERTY = """
import coverage, sys
sys.path.insert(0, sys.argv[1])
from coverage_pauses import TRACED_EXAMPLES, after_first_examples
from hypothesis import given, settings, strategies
import looked_at
examples = []
@settings(max_examples=TRACED_EXAMPLES + 1, database=None, derandomize=True)
@given(strategies.integers())
def holds(_):
    examples.append(1)
    looked_at.before()
    if len(examples) > TRACED_EXAMPLES:
        looked_at.meanwhile()
measured = coverage.Coverage(data_file=None, include=["*/looked_at.py"])
measured.start()
with after_first_examples(holds):
    holds()
looked_at.after()
measured.stop()
assert len(examples) == TRACED_EXAMPLES + 1
print(measured.analysis(looked_at.__file__)[2])
"""

LOOKED_AT = """
def before():
    return 1
def meanwhile():
    return 1
def after():
    return 1
"""


@pytest.mark.parametrize(("program", "never_run"), [(PAUSED, {5}), (PROPERTY, {2, 4, 5, 6})])
def test_only_what_runs_during_the_pause_is_left_out(tmp_path, program, never_run):
    (tmp_path / "looked_at.py").write_text(LOOKED_AT)
    done = subprocess.run(
        [sys.executable, "-c", program, SUPPORT], cwd=tmp_path, text=True, check=True,
        capture_output=True,
    )  # fmt: skip
    assert {*json.loads(done.stdout)} == never_run
