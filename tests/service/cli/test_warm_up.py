"""Compiling once, and never silently."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import httpx
import pytest
from running_service import WALLTIMED, eventually

from predictors.compiled import COMPILING, PARTS, part_of
from predictors.registry import METHODS
from service.cli.warming import compile_methods

pytestmark = [pytest.mark.lengthy(40), pytest.mark.cold]

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
    assert (first.stdout, first.stderr) == ("1\n", f"{COMPILING}{PARTS['']}\n")
    assert (again.stdout, again.stderr) == ("0\n", "")


@pytest.mark.parametrize(
    ("module", "named"),
    [
        ("simulator.engine.slurm.slurm_loop", "twin of Slurm"),
        ("simulator.engine.pbs.pbs_loop", "twin of PBS"),
        ("simulator.engine.policies.fcfs", "loop of a policy"),
        ("predictors.methods.kernel", "methods"),
    ],
)
def test_what_is_compiled_is_named_with_its_time(module, named):
    import_module(module)
    assert re.search(rf"{named}.* (s|minutes?) on an idle core", part_of(module))


@pytest.mark.acceptance
def test_after_a_warm_up_nothing_is_left_to_be_compiled():
    done = run(WALLTIMED, "warm-up", "--json")  # one has run before all tests
    assert json.loads(done.stdout)["compiled"] == 0
    assert COMPILING not in done.stderr


def test_settings_that_a_user_may_not_read_keep_nothing_from_being_compiled(monkeypatch, tmp_path):
    monkeypatch.setenv("WALLTIMED_CONFIG", str(tmp_path / "of-the-service.toml"))
    monkeypatch.setenv("WALLTIMED_PORT", "none")
    compile_methods()


def loaded(printed: str) -> set[str]:
    """The machine code that a process has taken from the cache, as numba tells it."""
    assert "data saved" not in printed, "something was compiled"
    return set(re.findall(r"data loaded from '(.*)'", printed))


@pytest.mark.acceptance
def test_a_service_and_the_demo_use_nothing_that_a_warm_up_does_not_compile(tmp_path):
    debug = {"NUMBA_DEBUG_CACHE": "1", "PYTHONUNBUFFERED": "1"}
    known = loaded(run(WALLTIMED, "warm-up", **debug).stdout)
    assert len(known) > 10
    settings = {
        "WALLTIMED_DATABASE_URL": f"sqlite:///{tmp_path}/history.sqlite3",
        "WALLTIMED_FORECAST_SECONDS": "60",
    }
    with (tmp_path / "printed").open("w") as printed:
        service = subprocess.Popen(
            [WALLTIMED, "serve", "--port", "0"],
            env=os.environ | debug | settings, stdout=printed, stderr=printed,
        )  # fmt: skip
    try:
        text = (tmp_path / "printed").read_text
        (url,) = eventually(lambda: re.findall(r"listens on (http://\S+)", text()), seconds=60)
        eventually(lambda: is_ready(url), seconds=60)
        runs = list(busy_day_of_runs(300))
        assert httpx.post(
            f"{url}/v1/completions", json={"completions": runs}, timeout=60
        ).is_success
        for method in METHODS:
            job = {"user": "ada", "requested_walltime": 3600, "method": method, "coverage": 0.8}
            assert httpx.post(f"{url}/v1/predictions", json=job, timeout=60).is_success
        machine = {"now": 1.8e9 + 60, "machine": {"processors": 4}, "policy": "easy"}
        queue = {**machine, "running": [], "waiting": [WAITING]}
        assert httpx.post(f"{url}/v1/forecasts", json=queue, timeout=60).is_success
    finally:
        service.terminate()
        service.wait(60)
    used = loaded(text())
    assert len(used) > 10
    assert used <= known


WAITING = {
    "job_id": "1",
    "user": "ada",
    "requested_walltime": 60,
    "requested_processors": 1,
    "submit_time": 1.8e9,
}


def busy_day_of_runs(number: int) -> Iterator[dict[str, object]]:
    """Runs of three users, one after the other."""
    for run in range(number):
        yield {
            "job_id": str(run),
            "user": ("ada", "bob", "cyd")[run % 3],
            "requested_walltime": 3600,
            "start_time": 1.7e9 + 100 * run,
            "end_time": 1.7e9 + 100 * run + 50 + run % 7,
        }


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready").is_success
    except httpx.TransportError:
        return False


def test_every_installation_warms_up():
    root = Path(__file__).parents[3]
    for file in ("Makefile", "Dockerfile", "deploy/build-tree.sh"):
        assert re.search('walltimed"? warm-up', (root / file).read_text()), file
