"""Coverage is measured where it is meant to be, however tests make it pause."""

import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).with_name("support")

MEASURED = """
import coverage, sys
sys.path.insert(0, sys.argv[1])
from coverage_pauses import pause
measured = coverage.Coverage(data_file=None, include=["*/looked_at.py"])
measured.start()
import looked_at
looked_at.before()
with pause():
    looked_at.meanwhile()
looked_at.after()
measured.stop()
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


def test_only_what_runs_during_the_pause_is_left_out(tmp_path):
    (tmp_path / "looked_at.py").write_text(LOOKED_AT)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(SUPPORT)], cwd=tmp_path, text=True, check=True,
        capture_output=True,
    )  # fmt: skip
    assert done.stdout == "[5]\n"
