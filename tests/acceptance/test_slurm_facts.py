"""What arrives of a real sbatch of an array with GPUs, from the filter to the history."""

import shutil
import signal

import pytest
from fake_service import FakeService, prediction
from patience import BUSY_SECONDS
from private_slurm import reason_to_skip
from running_service import eventually
from slurm_site import SlurmSite

from predictors.facts import script_hash_of

pytestmark = [
    pytest.mark.lengthy(60),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
SCRIPT = "#!/bin/sh\n#SBATCH --time=5\nsleep 1 # {}\nexit 0\n"
RESENT_AFTER = 75
"""Seconds; Slurm sends again every 30."""

OPTIONS = ("-J", "study", "--array=1-3", "--gres=gpu:a100:2", "-N1", "-o", "/dev/null")


@pytest.fixture(scope="module")
def site():
    """A site whose two nodes have four GPUs each, which are other devices."""
    site = SlurmSite(pause_seconds=1, budget_ms=2000)
    conf = site.slurm.conf
    nodes = conf.read_text().replace(" State=UNKNOWN", " Gres=gpu:a100:4 State=UNKNOWN")
    conf.write_text(f"{nodes}GresTypes=gpu\n")
    (conf.parent / "gres.conf").write_text("Name=gpu Type=a100 File=/dev/tty[0-3]\n")
    with site:
        yield site


def submit(site, directory, number: int) -> int:
    script = directory / "case.sh"
    script.write_text(SCRIPT.format(number))
    words = ("--parsable", "--chdir", str(directory), *OPTIONS, str(script), str(number))
    return int(site.slurm.run("sbatch", *words).split(";")[0])


@pytest.fixture
def directory(site):
    """A directory that this Slurm sees."""
    made = site.slurm.directory / "run12"
    made.mkdir()
    yield made
    shutil.rmtree(made)


@pytest.mark.long  # beside other tests no task of the array has started within 75 s
def test_the_history_holds_what_the_filter_saw_of_each_task_and_no_text(site, directory):
    job = submit(site, directory, 7)
    runs = eventually(
        lambda: [run for found in site.runs().values() for run in found if run.runtime] or None,
        seconds=RESENT_AFTER,
    )
    assert job
    facts = runs[0].submission.facts
    assert (facts.gpus, facts.nodes, facts.array_size) == (2, 1, 3)
    texts = (facts.work_dir, facts.script_hash, facts.submit_line, facts.gpu_type)
    assert all(text.startswith("~") for text in texts)
    history = (site.directory / "history.sqlite3").read_bytes()
    wal = site.directory / "history.sqlite3-wal"
    history += wal.read_bytes() if wal.exists() else b""
    assert b"run12" not in history
    assert b"a100" not in history


def test_the_filter_tells_script_directory_gpus_and_array_of_a_real_sbatch(site, directory):
    site.end_service(signal.SIGTERM)
    with FakeService(prediction(predicted_walltime=60), port=site.port).serving() as service:
        eventually(lambda: submit(site, directory, 12) and told(service), seconds=BUSY_SECONDS)
        found = told(service)
    assert found["work_dir"] == str(directory)
    assert found["script_hash"] == script_hash_of(SCRIPT.format(99))
    assert (found["gpus"], found["gpu_type"]) == (2, "a100")
    assert (found["array_size"], found["nodes"]) == (3, 1)
    assert found["submit_line"].split()[-2:] == [str(directory / "case.sh"), "12"]
    assert found["submit_host"]  # as the resolver calls this machine
    assert "interactive" not in found


def told(service):
    """The last question with a script: that of the filter in slurmctld."""
    return next((each for each in reversed(service.requests) if "submit_host" in each), None)
