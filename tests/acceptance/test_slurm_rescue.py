"""On a real Slurm the updater extends the limit of a job that will be cut, and of no other."""

import re
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from private_slurm import reason_to_skip
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite

pytestmark = [
    pytest.mark.lengthy(150),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
PARTITIONS = """short Nodes=ALL Default=YES MaxTime=5 DefaultTime=1 State=UP
PartitionName=long Nodes=ALL MaxTime=UNLIMITED DefaultTime=60 State=UP"""
CUT_RUNS = 240


@pytest.fixture(scope="module")
def site():
    """A site that cuts jobs a minute after their limits, and a user whose jobs are always cut."""
    settings = {"PartitionName": PARTITIONS, "OverTimeLimit": "1"}
    with SlurmSite(mode="off", slurm_settings=settings) as site:
        user = site.slurm.run("id", "-un").strip()
        jobs = [cut_run(number, user) for number in range(CUT_RUNS)]
        site.client.post("/v1/completions", json={"completions": jobs}).raise_for_status()
        yield site


def cut_run(number, user):
    now = datetime.now(UTC) - timedelta(hours=1 + number)
    times = {"submit_time": now - timedelta(minutes=2), "start_time": now - timedelta(minutes=1)}
    job = {"job_id": f"cut-{number}", "cluster": CLUSTER, "user": user, "application": "solve"}
    job |= {name: at.isoformat() for name, at in (times | {"end_time": now}).items()}
    return job | {
        "runtime": 60.0, "requested_walltime": 60.0, "requested_processors": 1, "status": "timeout",
    }  # fmt: skip


def update(site, *options):
    """One round of the updater; what it printed."""
    url = f"http://127.0.0.1:{site.port}"
    command = [WALLTIMED, "slurm-updater", "--url", url, "--once", "--mode", "off", *options]
    done = subprocess.run(
        command, env=site.slurm.environment, capture_output=True, text=True, check=False,
        timeout=60, cwd=site.directory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def limit(site, job):
    return site.slurm.job(job)["TimeLimit"]


def test_a_job_that_would_be_cut_is_extended_once_where_it_is_opted_in(site):
    slurm, file = site.slurm, site.directory / "done"
    waits = f"while [ ! -e {file} ]; do sleep 1; done"

    def submit(*options):
        return slurm.sbatch("-n1", "-t", "1", "-J", "solve", *options, script=waits)

    opted_in, by_comment = submit("-p", "short"), submit("-p", "long", "--comment=walltimed=extend")
    again, not_opted_in = submit("-p", "short"), submit("-p", "long")
    jobs = (opted_in, by_comment, again, not_opted_in)
    eventually(lambda: all(slurm.job(job)["JobState"] == "RUNNING" for job in jobs), seconds=30)
    options = ("--extend", "short", "--extend-by-comment", "--extend-share", "900")
    started = time.monotonic()
    shown = update(site, *options)
    if time.monotonic() - started < 10:
        assert "0 to change" in shown, "they have not used 80% of their limits"

    def extended():
        update(site, *options)
        return all(limit(site, job) != "00:01:00" for job in (opted_in, by_comment, again))

    eventually(extended, seconds=90)
    assert limit(site, opted_in) == limit(site, again) == "00:05:00", "MaxTime of the partition"
    assert limit(site, by_comment) == "00:10:00", "ten times as long"
    assert limit(site, not_opted_in) == "00:01:00"
    assert slurm.job(opted_in)["AdminComment"] == "wtx=1"

    slurm.run("scontrol", "update", f"JobId={again}", "TimeLimit=1")
    assert "0 to change" in update(site, *options), "never a second time"
    assert limit(site, again) == "00:01:00"

    slurm.await_end(not_opted_in, again, seconds=180)
    file.touch()
    slurm.await_end(opted_in, by_comment)
    assert slurm.job(not_opted_in)["JobState"] == slurm.job(again)["JobState"] == "TIMEOUT"
    assert slurm.job(opted_in)["JobState"] == slurm.job(by_comment)["JobState"] == "COMPLETED"


PROGRAM = """\
#!/bin/bash
if [ -e state.dat ]; then echo went on >> log; exit; fi
trap 'echo saved > state.dat; exit' USR1
echo began >> log
while true; do sleep 0.2; done
"""


@pytest.mark.long
def test_the_recipe_for_checkpoints_saves_the_state_and_goes_on(site):
    """The script of docs/users.md as it is, but for its times.

    Slurm sends the signal up to a minute earlier than it is asked to: never before the trap is set.
    """
    page = (Path(__file__).parents[2] / "docs" / "users.md").read_text("utf-8")
    (recipe,) = re.findall(r"```\n(#SBATCH --time=4:00:00 .*?)```", page, re.DOTALL)
    directory = site.directory / "recipe"
    directory.mkdir()
    (directory / "program").write_text(PROGRAM)
    (directory / "program").chmod(0o755)
    script = recipe.replace("4:00:00", "2").replace("@300", "@50")
    (directory / "job.sh").write_text(f"#!/bin/bash\n{script}")
    slurm = site.slurm
    options = ("-n1", f"--chdir={directory}", f"--output={directory / 'out'}")
    job = int(slurm.run("sbatch", "--parsable", *options, str(directory / "job.sh")).split(";")[0])

    eventually(lambda: slurm.job(job).get("Restarts") == "1", seconds=180)
    assert (directory / "state.dat").read_text() == "saved\n"
    eventually(lambda: slurm.job(job)["JobState"] == "PENDING", seconds=60)
    # Else it starts after two minutes; a start in the second of the requeue fails.
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now+20", "TimeLimit=10")
    slurm.await_end(job, seconds=120)
    assert slurm.job(job)["JobState"] == "COMPLETED"
    assert (directory / "log").read_text() == "began\nwent on\n"
