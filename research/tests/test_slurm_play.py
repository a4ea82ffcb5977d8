"""A short log is played twice through a real Slurm in fast motion."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import slurm_accounting
from private_slurm import ROOT, reason_to_skip
from recorded_plays import read_play, rules_of, twin_starts

SCRIPT = Path(__file__).parents[2] / "research/fast_motion/slurm_play.py"

NEEDED = ("usr/sbin/slurmctld", "usr/sbin/slurmd", "usr/bin/sbatch")

MISSING = [name for name in NEEDED if not (ROOT / name).exists()]
MISSING += [name for name in ("gcc",) if shutil.which(name) is None]

MISSING_BESIDE = reason_to_skip() or slurm_accounting.reason_to_skip(Path("/"))
if os.geteuid() != 0 or Path("/") != ROOT:
    MISSING_BESIDE = "needs root, and a Slurm that is not in a tree of its own"

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
]

CONF = """\
NodeName=n[0-3] CPUs=1
PriorityType=priority/basic
OverTimeLimit=60
PartitionName=batch Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE
"""

# Submission, nodes, run time, limit: one waits for three nodes, another is backfilled beside it.
JOBS = [(0, 2, 1200, 1800), (60, 3, 900, 1200), (120, 1, 600, 900), (130, 4, 300, 600)]
JOBS += [(3600 + 300 * place, 1 + place % 4, 400, 900) for place in range(8)]
# A job runs on beyond its limit; ends are near one another. Releases plan otherwise then.
JOBS += [(7200, 2, 1000, 600), (7210, 4, 600, 600), (7801, 2, 200, 240)]
JOBS += [(10800, 1, 660, 660), (10801, 1, 1800, 1800), (10802, 1, 600, 600)]
JOBS += [(10803, 2, 600, 600), (10804, 1, 600, 600)]

MOST_DIFFERENT = 90
"""Seconds between a start in the real Slurm and in the twin: cycles, launches."""


def test_a_log_is_played_twice_and_compared_with_the_twin(tmp_path):
    lines = ["; MaxProcs: 4"]
    for number, (submit, size, run, limit) in enumerate(JOBS, start=1):
        lines.append(f"{number} {submit} -1 {run} {size} -1 -1 {size} {limit} " + "-1 " * 9)
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    (tmp_path / "slurm.conf").write_text(CONF)
    words = [
        sys.executable, SCRIPT, tmp_path / "log.swf", "--conf", tmp_path / "slurm.conf",
        "--root", ROOT, "--speeds", "50,200,1000", "--most-crawled", "1", "-o", tmp_path / "plays",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=550)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "first, second play" in done.stdout
    assert "second play, twin" in done.stdout
    first = read_play(tmp_path / "plays/first.csv.gz")
    assert len(first.submit) == len(JOBS)
    assert first.wait[0] < 60
    assert first.start[1] >= first.end[0]  # it needs three of four nodes
    assert first.start[2] < first.end[0]  # backfilled
    assert first.start[3] >= first.end[1]
    second = read_play(tmp_path / "plays/second.csv.gz")
    # A launch that takes seconds longer turns a decision between two equal jobs.
    alike = np.abs(second.start - first.start) <= MOST_DIFFERENT
    assert alike.sum() >= len(JOBS) - 2
    twin = twin_starts(first, rules_of(tmp_path / "plays/site"), processors=4)
    assert np.abs(twin - first.start)[alike].max() <= MOST_DIFFERENT
    assert (first.overrun >= 0).all()
    notes = json.loads((tmp_path / "plays/play.json").read_text())
    assert notes["second"]["not_completed"] == 0
    again = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    assert "jobs on 4 nodes" not in again.stdout


HISTORY = [
    (3600 * place, 1, run, 7200, user) for place in range(5) for user, run in ((1, 7200), (2, 60))
]
# One job takes all nodes; then that of user 1 is submitted first, and is predicted to be longer.
WINDOW = [(86_400, 4, 600, 900, 3), (86_460, 4, 600, 7200, 1), (86_520, 4, 600, 7200, 2)]

MULTIFACTOR = CONF.replace("priority/basic", "priority/multifactor")


@pytest.mark.skipif(MISSING_BESIDE is not None, reason=MISSING_BESIDE or "")
def test_a_running_service_orders_the_queue_of_a_play(tmp_path):
    lines = ["; MaxProcs: 4", "; UnixStartTime: 0"]
    for number, (submit, size, run, limit, user) in enumerate(HISTORY + WINDOW, start=1):
        fields = f"{number} {submit} 0 {run} {size} -1 -1 {size} {limit} -1 1 {user} 5 -1 -1"
        lines.append(f"{fields} -1 -1 -1")
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    (tmp_path / "slurm.conf").write_text(MULTIFACTOR)
    words = [
        sys.executable, SCRIPT, tmp_path / "log.swf", "--conf", tmp_path / "slurm.conf",
        "--from", "1", "--installed", "max-usage", "--most-crawled", "1",
        "--speeds", "50,200,1000", "-o", tmp_path / "plays",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=550)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "as replayed with the play's ends" in done.stdout
    notes = json.loads((tmp_path / "plays/play.json").read_text())
    for name in ("first", "second"):
        play, filtered = read_play(tmp_path / f"plays/{name}.csv.gz"), notes[name]["filter"]
        assert play.start[2] < play.start[1]
        assert filtered["seen"] >= 2
        assert filtered["replayed"] == filtered["seen"]
        assert notes[name]["updater"]["failed"] == 0
