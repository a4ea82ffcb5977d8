"""The follower of PBS's queue, on what a real OpenPBS printed."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import pytest
from asgi_client import InProcess

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "integrations" / "pbs" / "walltimed_queue.py"
CAPTURED = ROOT / "tests" / "data" / "pbs" / "openpbs-23.06.06"
SUBMITTED = 1795332369.0  # Sun Nov 22 07:26:09 2026 UTC


@pytest.fixture
def follower(monkeypatch):
    """The script as a module, on a machine whose clock is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    found = importlib.util.spec_from_file_location("walltimed_queue", SCRIPT)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    yield module
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def options(follower, tmp_path):
    """Options with stand-ins for the two commands, which print what the real ones printed."""
    for name in ("qstat", "pbsnodes"):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\nexec cat {CAPTURED / name}.json\n")
        command.chmod(0o755)
    words = ["--once", "--qstat", str(tmp_path / "qstat"), "--pbsnodes", str(tmp_path / "pbsnodes")]
    return follower.parsed([*words, "--cluster", "hill"])


def captured(name):
    return json.loads((CAPTURED / f"{name}.json").read_text())


def test_jobs_are_read_as_the_service_takes_them(follower):
    jobs = follower.queue_of(captured("qstat"))
    (running,) = jobs["running"]
    assert running == {
        "job_id": "0.pbsnode",
        "submit_time": SUBMITTED - 8,
        "start_time": SUBMITTED - 8,
        "requested_walltime": 600,
        "requested_processors": 2,
        "user": "alice",
        "group": "alice",
        "queue": "workq",
        "application": "train_model",
    }
    waiting = {job["job_id"]: job for job in jobs["waiting"]}
    assert waiting["1.pbsnode"]["requested_memory"] == 200 * 1024
    assert waiting["1.pbsnode"]["reason"] == "Not Running: Not enough free nodes available"
    assert {job_id for job_id, job in waiting.items() if job["held"]} == {"2.pbsnode", "5.pbsnode"}
    assert waiting["4.pbsnode"]["requested_walltime"] == follower.NO_LIMIT


def test_the_tasks_of_an_array_wait_and_the_array_itself_does_not(follower):
    jobs = follower.queue_of(captured("qstat"))
    found = [job["job_id"] for job in jobs["waiting"] if job["application"] == "sweep"]
    assert found == [f"3[{task}].pbsnode" for task in range(1, 6)]


def test_nodes_that_are_down_count_for_nothing_but_what_runs_on_them(follower):
    nodes = captured("pbsnodes")
    assert follower.pools_of(nodes) == [{"processors": 2, "queues": []}]
    nodes["nodes"]["pbsnode"]["state"] = "offline"
    nodes["nodes"]["n2"] = {
        "state": "down,offline",
        "resources_available": {"ncpus": 8},
    }
    nodes["nodes"]["n3"] = {
        "state": "free",
        "queue": "big",
        "resources_available": {"ncpus": 64},
    }
    assert follower.pools_of(nodes) == [
        {"processors": 2, "queues": []},
        {"processors": 64, "queues": ["big"]},
    ]


def test_commands_are_found_where_pbs_says_that_it_is(follower, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    assert follower.program("qstat") == "qstat"
    (tmp_path / "pbs.conf").write_text("# PBS\nPBS_HOME=/var/spool/pbs\nPBS_EXEC=/opt/hill\n")
    assert follower.parsed([]).qstat == "/opt/hill/bin/qstat"
    (tmp_path / "qstat").write_text("#!/bin/sh\n")
    (tmp_path / "qstat").chmod(0o755)
    assert follower.parsed([]).qstat == str(tmp_path / "qstat")
    assert follower.parsed([]).pbsnodes == "/opt/hill/bin/pbsnodes"


def test_the_service_takes_what_is_handed_over(follower, options, sqlite_url, monkeypatch):
    with InProcess(sqlite_url) as service:

        def urlopen(request, timeout):
            del timeout
            answer = service.request(
                request.method,
                "/v1/queues/hill",
                content=request.data,
                headers={"content-type": request.headers["Content-type"]},
            )
            assert answer.status_code == 202, answer.text
            return open(os.devnull)  # noqa: PTH123 - closed by the caller

        monkeypatch.setattr(follower.urllib.request, "urlopen", urlopen)
        assert follower.follow(options, follower.threading.Event()) == 0
        shown = service.get("/v1/queues/hill").json()
    assert shown["totals"]["running"] == {"jobs": 1, "processors": 2}
    assert shown["totals"]["waiting"]["jobs"] == 7
    assert shown["totals"]["held"]["jobs"] == 2


def test_what_is_wrong_is_told_and_ends_a_single_look(follower, options, capsys):
    options.qstat = "/nowhere/qstat"
    assert follower.follow(options, follower.threading.Event()) == 1
    assert "will try again: " in capsys.readouterr().err


def test_a_refused_token_is_told_with_what_to_do(follower, options):
    refused = follower.urllib.error.HTTPError("http://x", 403, "Forbidden", {}, None)
    assert "--scope ingest" in follower.advice_about(refused, options)
    refused.close()


def test_it_needs_nothing_but_the_standard_library():
    text = SCRIPT.read_text()
    imported = {
        line.split()[1].split(".")[0] for line in text.splitlines() if line[:7] == "import "
    }
    assert imported <= set(sys.stdlib_module_names)
