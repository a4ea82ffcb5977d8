"""Mode `soft` on a real Slurm that knows soft limits: a job may outlive what was predicted."""

import getpass
import subprocess
import time

import pytest
from private_slurm import ROOT, reason_to_skip, within
from running_service import eventually
from slurm_site import CLUSTER, SlurmSite

OLDEST = (25, 5, 4)


def version() -> str:
    """Of the Slurm that is tested, such as 25.05.4."""
    command = [*within(ROOT), "/usr/sbin/slurmctld", "-V"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]


def reason() -> str | None:
    missing = reason_to_skip()
    if missing is None and tuple(map(int, version().split("."))) < OLDEST:
        missing = f"Slurm {version()} knows no soft limits"
    return missing


REASON = reason()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]
PARAMETERS = "bf_interval=2,sched_interval=5,time_min_as_soft_limit"


def test_a_prediction_becomes_the_soft_limit_and_ends_no_job():
    options = {"SchedulerParameters": PARAMETERS}
    config = {"mode": "soft", "slurm_version": version(), "pause_seconds": 1}
    with SlurmSite(slurm_settings=options, **config) as site:
        known = {
            "user": getpass.getuser(), "cluster": CLUSTER, "queue": "long",
            "requested_walltime": 3600, "requested_processors": 1,
        }  # fmt: skip
        learn(site, {**known, "application": "minutes"}, runtime=600, every=1000)
        predicted = site.client.post("/v1/predictions", json={**known, "application": "minutes"})
        minutes = -(-predicted.json()["interval"]["upper"] // 60)
        job = eventually(lambda: marked(site, "-J", "minutes"), seconds=30)
        assert (job["TimeMin"], job["TimeLimit"]) == (f"00:{minutes:02.0f}:00", "01:00:00")
        assert f"wtm={minutes:.0f}" in job["AdminComment"]
        own = submitted(site, "-J", "minutes", "--time-min", "20")
        assert own["TimeMin"] == "00:20:00"
        assert "wtm=" not in own["AdminComment"]
        learn(site, {**known, "application": "seconds"}, runtime=5, every=1)
        longer = eventually(lambda: least(site, "-J", "seconds", script="sleep 100"), seconds=30)
        (run,) = site.await_runs(int(longer["JobId"]), seconds=240)[longer["JobId"]]
        assert run.status == "completed"
        assert run.runtime >= 100


def learn(site, job, *, runtime, every):
    runs = [
        {**job, "job_id": f"{job['application']}-{place}", "runtime": runtime, "end_time": end}
        for place, end in enumerate(time.time() - every * step for step in range(200, 0, -1))
    ]
    site.client.post("/v1/completions", json={"completions": runs}).raise_for_status()


def submitted(site, *arguments, script="true"):
    return site.slurm.job(site.slurm.sbatch("-p", "long", "-t", "60", *arguments, script=script))


def marked(site, *arguments):
    """A job that was submitted, once the service is asked again and knows its runs."""
    job = submitted(site, *arguments)
    return job if "wtm=" in job.get("AdminComment", "") else None


def least(site, *arguments, script):
    """A job with the least soft limit that Slurm can hold, once its runs are learned."""
    job = submitted(site, *arguments, script=script)
    return job if job["TimeMin"] == "00:01:00" else None
