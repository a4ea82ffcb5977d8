import os
import signal
import subprocess
import sys
import time

import pytest
from patience import eventually

from simulator.scheduling.processes import in_order, several_processes

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


def test_an_error_ends_what_other_processes_do_without_a_word(capfd):
    """With Executor.map, whose cancelled work the end of a process met, a thread complained."""
    began = time.monotonic()
    with pytest.raises(ValueError, match="negative"), several_processes(2) as executor:
        list(in_order(executor, time.sleep, [-1.0, *[600.0] * 20]))
    assert time.monotonic() - began < 60
    assert capfd.readouterr().err == ""
