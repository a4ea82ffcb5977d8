"""Whole nodes and whole cores on a real Slurm: what jobs will take is handed over and asked."""

import json
import sqlite3
import subprocess

import pytest
from private_slurm import reason_to_skip
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite

pytestmark = [
    pytest.mark.lengthy(90),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
HARDWARE = "CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2"
PARTITIONS = (
    "short Nodes=ALL Default=YES MaxTime=60 OverSubscribe=EXCLUSIVE State=UP\n"
    "PartitionName=long Nodes=ALL MaxTime=60 State=UP"
)
SETTINGS = {"SelectTypeParameters": "CR_Core", "PartitionName": PARTITIONS}
CASES = {
    ("-p", "short", "-N", "2"): 32,
    ("-p", "short", "-N", "1", "-n", "1", "-c", "4"): 16,
    ("-p", "long", "--exclusive", "-n", "1"): 16,
    ("-p", "long", "-n", "16", "--ntasks-per-core=1"): 32,
    ("-p", "long", "-n", "4", "--hint=nomultithread"): 8,
}
"""What is asked for, and the processors that slurmctld gives to it."""


@pytest.fixture(scope="module")
def site():
    """A site of two nodes whose first partition gives jobs whole nodes."""
    with SlurmSite(mode="observe", slurm_settings=SETTINGS, hardware=HARDWARE) as site:
        yield site


def update(site):
    url = f"http://127.0.0.1:{site.port}"
    command = [WALLTIMED, "slurm-updater", "--url", url, "--mode", "off", "--order", "none"]
    done = subprocess.run(
        [*command, "--once"], env=site.slurm.environment, capture_output=True, text=True,
        check=False, timeout=60, cwd=site.directory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "not handed over" not in done.stderr


def asked_about(site, job):
    """The processors in the question of the filter about a job."""
    mark = site.slurm.job(job).get("AdminComment", "").partition("wtp=")[2]

    def recorded():
        with sqlite3.connect(site.directory / "history.sqlite3") as history:
            return history.execute(
                "SELECT requested_processors FROM predictions WHERE prediction_id = ?", (mark,)
            ).fetchone()

    return eventually(recorded, seconds=30)[0]


def processors_of(site, job):
    """The processors of a job in squeue."""
    shown = json.loads(site.slurm.run("squeue", "--all", "--json"))["jobs"]
    found = next(each for each in shown if each["job_id"] == job)["cpus"]
    return found["number"] if isinstance(found, dict) else found


def test_the_processors_that_a_job_takes_are_those_that_it_was_counted_with(site):
    blocker = site.slurm.sbatch("-p", "short", "-N2", "-t", "30", script="sleep 1000")
    eventually(lambda: site.slurm.job(blocker)["JobState"] == "RUNNING", seconds=30)
    update(site)
    path = f"/v1/clusters/{CLUSTER}/snapshot"
    eventually(lambda: site.client.get(path).is_success, seconds=60)
    jobs = {site.slurm.sbatch("-t", "5", *asked, script="sleep 500"): asked for asked in CASES}
    update(site)
    eventually(lambda: len(site.client.get(path).json()["jobs"]) == 1 + len(jobs), seconds=60)
    shown = {job["job_id"]: job for job in site.client.get(path).json()["jobs"]}
    for job, asked in jobs.items():
        assert shown[str(job)]["requested_processors"] == CASES[asked], asked
        assert asked_about(site, job) == CASES[asked], asked
    site.slurm.run("scancel", str(blocker))
    for job, asked in jobs.items():
        eventually(lambda job=job: site.slurm.job(job)["JobState"] == "RUNNING", seconds=60)
        assert processors_of(site, job) == CASES[asked], "this Slurm gives what is written above"
        site.slurm.run("scancel", str(job))
    site.await_runs(blocker, *jobs)
    with sqlite3.connect(site.directory / "history.sqlite3") as history:
        rows = history.execute("SELECT job_id, requested_processors FROM completions").fetchall()
    learned = dict(rows)
    assert {learned[str(job)] for job in (blocker, *jobs)} == {8, 16, 32}
    assert all(learned[str(job)] == CASES[asked] for job, asked in jobs.items())
