import os
import signal
import subprocess
import sys

import pytest
from patience import eventually

SCRIPT = """
import sys, time
from pathlib import Path
from simulator.scheduling.processes import several_processes

if __name__ != "__main__":
    Path(f"{sys.argv[1]}/begun").touch()
    time.sleep(600)

if __name__ == "__main__":
    try:
        with several_processes(1) as executor:
            executor.submit(print).result()
    except KeyboardInterrupt:
        sys.exit(130)
"""
"""Its process takes long to begin."""


@pytest.mark.cold
def test_ctrl_c_ends_a_process_that_begins_and_it_does_not_complain(tmp_path):
    script = tmp_path / "plays.py"
    script.write_text(SCRIPT)
    plays = subprocess.Popen(
        [sys.executable, script, tmp_path],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        eventually((tmp_path / "begun").exists, seconds=60)
        os.killpg(plays.pid, signal.SIGINT)
        said, _ = plays.communicate(timeout=60)
    finally:
        plays.kill()
    assert (plays.returncode, said) == (130, b"")
