"""A real Slurm with a long queue: the updater keeps to its share, and users get their answers.

Without ``--long`` there are 300 jobs; with it there are 10,000, as on a machine of 1,000 nodes.
"""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from private_slurm import reason_to_skip
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite

pytestmark = [
    pytest.mark.lengthy(60),
    pytest.mark.timeout(3600),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]

WAITING, LONG_WAITING = 300, 10_000
HELD_SHARE = 10
"""One in so many jobs is held."""

MOST_SHARE = 0.06
"""Of slurmctld's time; 5% is what the updater aims at."""

MOST_MEGABYTES = 60
SETTINGS = {
    "MaxJobCount": "30000",
    "CliFilterPlugins": None,  # else every sbatch reads Lua
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
        began = time.monotonic()
        assert [each.wait(1800) for each in loops] == [0, 0]
        sys.stdout.write(f"{count} jobs submitted in {time.monotonic() - began:.0f} s\n")
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


class Updating(NamedTuple):
    """What an updater did until every job was right, what slurmctld counted, and its memory."""

    rounds: list[dict]
    warnings: list[str]
    seconds: float
    updates: int
    slurmctld_seconds: float
    megabytes: float


@pytest.fixture(scope="module")
def updating(site):
    """An updater of a queue that it has never seen; it also hands the queue over."""
    words = [WALLTIMED, "slurm-updater", "--order", "shortest-first", "--timeout", "60"]
    words += ["--log-format", "json", "--url", f"http://127.0.0.1:{site.port}"]
    before, began = updates_of_slurmctld(site), time.monotonic()
    process = subprocess.Popen(
        words, env=site.slurm.environment, stderr=subprocess.PIPE, text=True, cwd=site.directory
    )
    with process:
        rounds, warnings = [], []
        while not rounds or rounds[-1]["postponed"]:
            said = json.loads(process.stderr.readline())
            if said["level"] == "warning":
                warnings.append(said["event"])
            elif said["event"] == "looked at the queue":
                rounds.append(said)
                sys.stdout.write(f"{time.monotonic() - began:.0f} s: {said}\n")
        took, after = time.monotonic() - began, updates_of_slurmctld(site)
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    most = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024 / 1e6
    return Updating(rounds, warnings, took, after[0] - before[0], after[1] - before[1], most)


def test_the_updater_keeps_to_its_share_of_slurmctld(updating, count):
    waiting = count - count // HELD_SHARE
    updates, share = updating.updates, updating.slurmctld_seconds / updating.seconds
    sys.stdout.write(
        f"{updates} updates of {waiting} waiting jobs in {updating.seconds:.0f} s, "
        f"{60 * updates / updating.seconds:.0f} a minute, "
        f"{1000 * updating.slurmctld_seconds / updates:.2f} ms of slurmctld each, "
        f"{100 * share:.1f}% of its time\n"
    )
    assert updating.warnings == []
    assert updating.rounds[0]["asked"] == waiting
    assert sum(each["refused"] for each in updating.rounds) == 0
    assert sum(each["updated"] for each in updating.rounds) == updates >= waiting
    assert share <= MOST_SHARE


def test_the_updater_needs_little_memory(updating):
    sys.stdout.write(f"the updater took at most {updating.megabytes:.0f} MB\n")
    assert updating.megabytes <= MOST_MEGABYTES


@pytest.mark.usefixtures("updating")
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
