"""Scripts of research/ run beside the package as it is."""

import subprocess
import sys
from pathlib import Path

import pytest
from workloads import synthetic

RESEARCH = Path(__file__).parents[2] / "research"
STUDIES = (
    "calibration.py",
    "choice.py",
    "floods.py",
    "gamed_order.py",
    "ladder.py",
    "late_submissions.py",
    "least_cost.py",
    "starts_in_twin.py",
    "wait_prediction.py",
    "limits.py",
    "longer_limits.py",
    "rescue.py",
    "rescue_curve.py",
)


@pytest.mark.parametrize("script", STUDIES)
def test_a_script_says_what_it_asks_and_takes(script):
    done = subprocess.run(
        [sys.executable, RESEARCH / script, "--help"], capture_output=True, text=True, check=True
    )
    assert f"python research/{script}" in " ".join(done.stdout.split())


def test_every_script_is_in_the_list():
    listed = (RESEARCH / "README.md").read_text("utf-8")
    scripts = {path.name for path in RESEARCH.glob("*.py")} - {
        "attention_examples.py",
        "played_logs.py",
    }
    assert {name for name in scripts if f"| `{name}` |" in listed} == scripts


@pytest.mark.parametrize(("options", "method"), [([], "least-cost"), (["--auto"], "auto")])
def test_a_method_is_compared_with_the_published_ones_on_a_log(tmp_path, options, method):
    log = tmp_path / "a.swf"
    synthetic(log, jobs=300, seed=1)
    words = [sys.executable, RESEARCH / "least_cost.py", log, "--processes", "1", *options]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "max-usage" in done.stdout
    assert f"{method} there" in done.stdout


def test_jobs_that_would_be_cut_are_saved_on_a_log(tmp_path):
    log = tmp_path / "a.swf"
    synthetic(log, jobs=600, seed=1)
    words = [sys.executable, RESEARCH / "rescue.py", log, "--processes", "1", "--delay", "600"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    heads, _, row = (line.split() for line in done.stdout.splitlines()[:3])
    assert (heads[0], row[0], row[1]) == ("log", "a", "600")


def test_hindsight_saves_on_a_log_the_share_of_cut_jobs_that_it_is_told_to(tmp_path):
    log = tmp_path / "a.swf"
    synthetic(log, jobs=600, seed=1)
    words = [sys.executable, RESEARCH / "rescue_curve.py", log, "--processes", "1", "--seeds", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    rows = [line.split("%") for line in done.stdout.strip().splitlines()[2:]]
    told, saved = (float(part.split()[-1]) for part in next(r for r in rows if "hind" in r[0])[:2])
    assert abs(saved - told) <= 3, "whole jobs"
    assert len(rows) == 4 + 3 * 3 * 4


def test_hits_are_foreseen_and_longer_requests_suggested_on_a_log(tmp_path):
    log = tmp_path / "a.swf"
    synthetic(log, jobs=3_000, seed=1)
    for script in ("limits.py", "longer_limits.py"):
        words = [sys.executable, RESEARCH / script, log, "--processes", "1"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[2].split()[0] == "a"


def test_warnings_of_running_jobs_are_fewer_from_a_higher_probability_on(tmp_path):
    log = tmp_path / "a.swf"
    synthetic(log, jobs=3_000, seed=1)
    words = [sys.executable, RESEARCH / "limits.py", log, "--processes", "1", "--used", "0.8"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    table = done.stdout[done.stdout.index("\nfrom ") :].splitlines()
    rows = [line.split() for line in table[3:] if line.startswith("0.")]
    warned = [float(row[1].rstrip("%")) for row in rows]
    assert [row[0] for row in rows][:2] == ["0.5", "0.6"]
    assert warned[0] > 0
    assert warned == sorted(warned, reverse=True)


def test_what_models_of_a_log_itself_would_foresee_is_told(tmp_path):
    log = tmp_path / "a.swf"
    synthetic(log, jobs=3_000, seed=1)
    words = [sys.executable, RESEARCH / "limits.py", log, "--processes", "1", "--reachable"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.strip().splitlines()[2:]]
    assert [row[0] for row in rows] == ["a", "median"]
    assert all(0.0 < float(cell) <= 1.0 for cell in rows[0][1:])
