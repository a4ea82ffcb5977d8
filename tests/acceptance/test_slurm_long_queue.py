"""A real Slurm with a long queue: the updater keeps to its share, and users get their answers.

Without ``--long`` there are 300 jobs; with it there are 10,000, as on a machine of 1,000 nodes.
"""

import json
import re
import subprocess
import sys
import time
from typing import NamedTuple

import pytest
from private_slurm import reason_to_skip
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite

pytestmark = [
    pytest.mark.lengthy(60),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]

WAITING, LONG_WAITING = 300, 10_000
HELD_SHARE = 10
"""One in so many jobs is held."""

UPDATER_SECONDS = 60.0
MOST_SHARE = 0.06
"""Of slurmctld's time; 5% is what the updater aims at."""

MOST_MEGABYTES = {WAITING: 60, LONG_WAITING: 80}
SETTINGS = {
    "MaxJobCount": "30000",
    "PriorityType": "priority/multifactor",
    "SchedulerParameters": "bf_interval=30,sched_interval=60,default_queue_depth=100",
}
SUBMITTING = """
number=$1
while [ $number -lt $2 ]; do
    held=
    [ $((number % 10)) -eq 0 ] && held=-H
    sbatch -Q -o /dev/null -N2 -n16 -t $((5 + number % 50)) -J work$((number % 7)) $held "$3" \
        > sbatch.$1 || exit 1
    number=$((number + 1))
done
"""


@pytest.fixture(scope="module")
def count(pytestconfig):
    return LONG_WAITING if pytestconfig.getoption("--long") else WAITING


@pytest.fixture(scope="module")
def site(count):
    """A site on whose machine one job runs and so many wait or are held."""
    with SlurmSite(mode="off", slurm_settings=SETTINGS) as site:
        slurm = site.slurm
        blocker = slurm.sbatch("-t", "60", "-N2", "-n16", script="sleep 3600")
        eventually(lambda: slurm.job(blocker)["JobState"] == "RUNNING", seconds=30)
        script = slurm.directory / "job.sh"
        script.write_text("#!/bin/sh\ntrue\n")
        halves = [(0, count // 2), (count // 2, count)]
        loops = [
            subprocess.Popen(
                ["sh", "-c", SUBMITTING, "sh", str(first), str(last), str(script)],
                env=slurm.environment, cwd=slurm.directory,
            )
            for first, last in halves
        ]  # fmt: skip
        assert [each.wait(900) for each in loops] == [0, 0]
        yield site


def command(site, *words):
    return subprocess.run(
        [WALLTIMED, *words, "--url", f"http://127.0.0.1:{site.port}"],
        env=site.slurm.environment, capture_output=True, text=True, check=False, timeout=300,
        cwd=site.directory,
    )  # fmt: skip


def updates_of_slurmctld(site):
    """Number and seconds of all updates of jobs, by sdiag."""
    found = re.search(r"REQUEST_UPDATE_JOB.*count:(\d+).*total_time:(\d+)", site.slurm.run("sdiag"))
    return (int(found[1]), int(found[2]) / 1e6) if found else (0, 0.0)


class UpdaterRound(NamedTuple):
    """What one round did, how long it took, and slurmctld's updates and seconds meanwhile."""

    told: dict
    seconds: float
    updates: int
    slurmctld_seconds: float


@pytest.fixture(scope="module")
def first_round(site):
    """The first round of the updater, which also hands the queue over."""
    before, began = updates_of_slurmctld(site), time.monotonic()
    options = ("--once", "--order", "shortest-first", "--interval", str(UPDATER_SECONDS), "--json")
    done = command(site, "slurm-updater", "--timeout", "60", *options)
    assert done.returncode == 0, done.stderr
    took, after = time.monotonic() - began, updates_of_slurmctld(site)
    return UpdaterRound(json.loads(done.stdout), took, after[0] - before[0], after[1] - before[1])


def test_the_updater_keeps_to_its_share_of_slurmctld(first_round, count):
    told, took, updates, seconds = first_round
    waiting, share = count - count // HELD_SHARE, seconds / took
    sys.stdout.write(
        f"{updates} of {waiting} waiting jobs updated in {took:.0f} s, "
        f"{1000 * seconds / updates:.2f} ms of slurmctld each, {100 * share:.1f}% of it\n"
    )
    assert (told["warnings"], told["refused"]) == ([], {})
    assert (told["asked"], told["updated"], told["updated"] + told["postponed"]) == (
        waiting, updates, waiting,
    )  # fmt: skip
    assert share <= MOST_SHARE
    assert updates > 50


@pytest.mark.usefixtures("first_round")
def test_the_updater_needs_little_memory(site, count):
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)"
        "; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    words = [WALLTIMED, "slurm-updater", "--once", "--interval", "1", "--timeout", "60"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words, "--url", f"http://127.0.0.1:{site.port}"],
        env=site.slurm.environment, capture_output=True, text=True, check=True, timeout=300,
        cwd=site.directory,
    )  # fmt: skip
    megabytes = int(done.stdout) * 1024 / 1e6
    sys.stdout.write(f"the updater took at most {megabytes:.0f} MB\n")
    assert megabytes <= MOST_MEGABYTES[count]


@pytest.mark.usefixtures("first_round")
def test_users_and_the_page_are_told_of_the_queue(site, count):
    path, page = f"/v1/clusters/{CLUSTER}/snapshot", f"/queue?cluster={CLUSTER}"
    eventually(lambda: site.client.get(path).json().get("forecast_at"), seconds=120)
    shown = site.client.get(path, params={"limit": 1}).json()
    totals = shown["totals"]
    assert totals["held"]["jobs"] == count // HELD_SHARE
    assert totals["waiting"]["jobs"] == count - count // HELD_SHARE
    assert 0 < shown["planned_jobs"] <= 500
    assert shown["forecast_error"] is None
    began = time.monotonic()
    asked = command(site, "ask", "--time", "30", "--cpus", "16", "--cluster", CLUSTER)
    asking = time.monotonic() - began
    assert asked.returncode == 0, asked.stderr
    assert "would start" in asked.stdout
    queue = command(site, "queue", "--cluster", CLUSTER, "--limit", "20000")
    assert queue.returncode == 0, queue.stderr
    assert len(queue.stdout.splitlines()) >= count
    text = site.client.get(page)
    assert text.status_code == 200
    assert f"{count - count // HELD_SHARE:,} jobs wait" in text.text
    sys.stdout.write(f"ask took {asking:.1f} s; {shown['planned_jobs']} jobs planned\n")
