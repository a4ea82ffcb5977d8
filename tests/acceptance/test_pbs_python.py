"""The hook under PBS's own interpreter, on what a real server handed to it: no server, any user."""

import json
import subprocess
from pathlib import Path

import pytest
from fake_service import GARBAGE, fake_service, prediction
from private_pbs import MISSING, PREFIX

PYTHON = PREFIX / "bin" / "pbs_python"
ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "tests" / "data" / "pbs" / "openpbs-23.06.06"

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(not PYTHON.exists(), reason=MISSING),
]


@pytest.fixture
def hook(tmp_path):
    """Runs the hook on the submission that was captured; gives what PBS takes back."""
    (tmp_path / "pbs.conf").write_text(
        f"PBS_EXEC={PREFIX}\nPBS_HOME={tmp_path}\nPBS_SERVER=localhost\n"
    )
    (tmp_path / "resourcedef").write_text("walltimed_prediction type=string\n")
    config = tmp_path / "hook.json"
    environment = {
        "PBS_CONF_FILE": str(tmp_path / "pbs.conf"),
        "PBS_HOOK_CONFIG_FILE": str(config),
        "PATH": "/usr/bin:/bin",
    }

    def run(service, **settings):
        settings = {"mode": "soft", "port": service.port, "pause_seconds": 0} | settings
        config.write_text(json.dumps(settings | service.patience("budget_seconds", seconds=0.4)))
        command = [PYTHON, "--hook", "-i", EVENTS / "hook_queuejob.in", "-o", tmp_path / "out"]
        command += ["-L", tmp_path, "-l", tmp_path / "log", "-e", "2047"]
        command += ["-r", tmp_path / "resourcedef"]
        done = subprocess.run(
            [*map(str, command), ROOT / "integrations" / "pbs" / "walltimed_hook.py"],
            env=environment, cwd=tmp_path, check=False, timeout=60, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{done}, {(tmp_path / 'log').read_text()}"
        return dict(line.split("=", 1) for line in (tmp_path / "out").read_text().splitlines())

    return run


def of_job(said, name):
    """What was set of a job, whatever its type."""
    return [value for key, value in said.items() if f"Resource_List[{name}" in key]


def test_a_prediction_becomes_the_soft_walltime(hook):
    with fake_service(prediction(interval=None)) as service:
        said = hook(service)
    assert said["pbs.event().accept"] == "True"
    assert of_job(said, "soft_walltime") in (["422"], ["00:07:02"])
    assert of_job(said, "walltimed_prediction") == ["0b7c-42"]
    (asked,) = service.requests
    assert (asked["application"], asked["queue"]) == ("arr", "workq")
    assert (asked["requested_walltime"], asked["requested_processors"]) == (600, 1)


@pytest.mark.parametrize("answer", [*GARBAGE.values(), None], ids=[*GARBAGE, "silence"])
def test_whatever_answers_the_job_is_accepted_as_it_was(hook, answer):
    with fake_service(answer) as service:
        said = hook(service)
    assert said["pbs.event().accept"] == "True"
    assert of_job(said, "soft_walltime") == []
    assert of_job(said, "walltimed_prediction") == []
