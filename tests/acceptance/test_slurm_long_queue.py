"""A real Slurm with a long queue: the updater keeps to its share, and users get their answers.

There are 10,000 jobs, as on a machine of 1,000 nodes.
"""

import json
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from private_slurm import reason_to_skip
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]

QUEUED = 10_000
HELD_SHARE = 10
"""One in so many jobs is held."""

WAITING = QUEUED - QUEUED // HELD_SHARE

MOST_SHARE = 0.06
"""Of slurmctld's time; 5% is what the updater aims at."""

LATE = 1000
"""Submissions beside the updater, in a minute."""

MOST_SECONDS_BEHIND = 150
"""Two rounds and the reading of the queue."""

MOST_MEGABYTES = 60
SETTINGS = {
    "MaxJobCount": "30000",
    # No plug-ins of ours: with the updater a site needs none.
    "CliFilterPlugins": None,
    "JobSubmitPlugins": None,
    "PriorityType": "priority/multifactor",
    "SchedulerParameters": "bf_interval=30,sched_interval=60,default_queue_depth=100",
}
LOOPS = 4
"""Processes that submit the jobs of the queue."""

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
def site():
    """A site on whose machine one job runs and so many wait or are held."""
    with SlurmSite(mode="off", slurm_settings=SETTINGS) as site:
        slurm = site.slurm
        blocker = slurm.sbatch("-t", "60", "-N2", "-n16", script="sleep 3600")
        eventually(lambda: slurm.job(blocker)["JobState"] == "RUNNING", seconds=30)
        script = slurm.directory / "job.sh"
        script.write_text("#!/bin/sh\ntrue\n")
        slurm.run("scontrol", "update", "PartitionName=short", "State=DOWN")  # no lock is held long
        bounds = [QUEUED * part // LOOPS for part in range(LOOPS + 1)]
        loops = [
            subprocess.Popen(
                ["sh", "-c", SUBMITTING, "sh", str(first), str(last), str(script)],
                env=slurm.environment, cwd=slurm.directory,
            )
            for first, last in pairwise(bounds)
        ]  # fmt: skip
        began = time.monotonic()
        assert [each.wait(1800) for each in loops] == [0] * LOOPS
        slurm.run("scontrol", "update", "PartitionName=short", "State=UP")
        sys.stdout.write(f"{QUEUED} jobs submitted in {time.monotonic() - began:.0f} s\n")
        yield site


def command(site, *words):
    return subprocess.run(
        [WALLTIMED, *words, "--url", f"http://127.0.0.1:{site.port}"],
        env=site.slurm.environment, capture_output=True, text=True, check=False, timeout=300,
        cwd=site.directory,
    )  # fmt: skip


class Counted(NamedTuple):
    """All updates of jobs, and slurmctld's seconds for them by sdiag, waits for locks included."""

    updates: int
    seconds: float


def counted_by_sdiag(site):
    found = re.search(r"REQUEST_UPDATE_JOB.*count:(\d+).*total_time:(\d+)", site.slurm.run("sdiag"))
    return Counted(int(found[1]), int(found[2]) / 1e6) if found else Counted(0, 0.0)


class RunningUpdater:
    """An updater of a queue that it has never seen; it also hands the queue over.

    Attributes:
        rounds: the log records of its rounds.
        warnings: the warnings that it logged.
    """

    def __init__(self, site):
        words = [WALLTIMED, "slurm-updater", "--order", "shortest-first", "--timeout", "60"]
        words += ["--log-format", "json", "--url", f"http://127.0.0.1:{site.port}"]
        self._began = time.monotonic()
        self.process = subprocess.Popen(
            words, env=site.slurm.environment, stderr=subprocess.PIPE, text=True,
            cwd=site.directory,
        )  # fmt: skip
        self.rounds, self.warnings = [], []

    @property
    def updated(self):
        return sum(each["updated"] for each in self.rounds)

    @property
    def seconds(self):
        return time.monotonic() - self._began

    def follow(self, jobs):
        """Read the log until so many jobs were updated and no update is postponed."""
        while self.updated < jobs or self.rounds[-1]["postponed"]:
            said = json.loads(self.process.stderr.readline())
            if said["level"] == "warning":
                self.warnings.append(said["event"])
            elif said["event"] == "looked at the queue":
                self.rounds.append(said)
                sys.stdout.write(f"{self.seconds:.0f} s: {said}\n")

    def megabytes(self):
        """Return its largest resident size."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024 / 1e6

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


class Updating(NamedTuple):
    """The state of an updater when every job was right for the first time.

    Attributes:
        seconds: since its start.
        slurmctld_seconds: for its updates, as the updater counted them.
        counted: its updates by sdiag.
        submitted: seconds in which jobs were submitted then.
        behind: seconds from the last of these until they were right.
    """

    rounds: list[dict]
    seconds: float
    slurmctld_seconds: float
    counted: Counted
    submitted: float
    behind: float
    warnings: list[str]
    megabytes: float


@pytest.fixture(scope="module")
def updating(site):
    """An updater that gets every job right, and then those that are submitted meanwhile."""
    before, updater = counted_by_sdiag(site), RunningUpdater(site)
    try:
        updater.follow(WAITING)
        rounds, seconds, after = list(updater.rounds), updater.seconds, counted_by_sdiag(site)
        submitted = submit(site)
        ended = time.monotonic()
        updater.follow(sum(each["updated"] for each in rounds) + LATE)
        behind = time.monotonic() - ended
        megabytes = updater.megabytes()
    finally:
        updater.end()
    return Updating(
        rounds=rounds,
        seconds=seconds,
        slurmctld_seconds=sum(each["updated"] * each["update_ms"] for each in rounds) / 1000,
        counted=Counted(after.updates - before.updates, after.seconds - before.seconds),
        submitted=submitted,
        behind=behind,
        warnings=updater.warnings,
        megabytes=megabytes,
    )


def submit(site):
    """Submit jobs for a minute; return the seconds that it took."""
    began = time.monotonic()
    for number in range(LATE):
        time.sleep(max(0.0, began + 60 * number / LATE - time.monotonic()))
        site.slurm.run(
            "sbatch", "-Q", "-o", "/dev/null", "-n1", f"-t{5 + number % 50}", "-J", "late",
            site.slurm.directory / "job.sh",
        )  # fmt: skip
    return time.monotonic() - began


def test_the_updater_keeps_to_its_share_of_slurmctld(updating):
    updates = updating.counted.updates
    share = updating.slurmctld_seconds / updating.seconds
    sys.stdout.write(
        f"{updates} updates of {WAITING} waiting jobs in {updating.seconds:.0f} s, "
        f"{updates / updating.seconds:.1f} a second, {100 * share:.1f}% of slurmctld's time, "
        f"{1000 * updating.slurmctld_seconds / updates:.2f} ms each; by sdiag, with waits for "
        f"locks, {1000 * updating.counted.seconds / updates:.2f} ms each\n"
    )
    assert updating.warnings == []
    assert updating.rounds[0]["asked"] == WAITING
    assert sum(each["refused"] for each in updating.rounds) == 0
    assert sum(each["updated"] for each in updating.rounds) == updates >= WAITING
    assert share <= MOST_SHARE


def test_the_updater_keeps_up_with_submissions(updating):
    sys.stdout.write(
        f"{LATE} jobs were submitted in {updating.submitted:.0f} s and were right "
        f"{updating.behind:.0f} s after the last one\n"
    )
    assert updating.behind <= MOST_SECONDS_BEHIND


def test_the_updater_needs_little_memory(updating):
    sys.stdout.write(f"the updater took at most {updating.megabytes:.0f} MB\n")
    assert updating.megabytes <= MOST_MEGABYTES


@pytest.mark.usefixtures("updating")
def test_users_and_the_page_are_told_of_the_queue(site):
    path, page = f"/v1/clusters/{CLUSTER}/snapshot", f"/queue?cluster={CLUSTER}"
    eventually(lambda: site.client.get(path).json().get("forecast_at"), seconds=120)
    shown = site.client.get(path, params={"limit": 1}).json()
    totals = shown["totals"]
    assert totals["held"]["jobs"] == QUEUED // HELD_SHARE
    assert totals["waiting"]["jobs"] == WAITING + LATE
    assert 0 < shown["planned_jobs"] <= 500
    assert shown["forecast_error"] is None
    began = time.monotonic()
    asked = command(site, "ask", "--time", "30", "--cpus", "16", "--cluster", CLUSTER)
    asking = time.monotonic() - began
    assert asked.returncode == 0, asked.stderr
    assert "would start" in asked.stdout
    queue = command(site, "queue", "--cluster", CLUSTER, "--limit", "20000")
    assert queue.returncode == 0, queue.stderr
    assert len(queue.stdout.splitlines()) >= QUEUED + LATE
    text = site.client.get(page)
    assert text.status_code == 200
    assert f"{WAITING + LATE:,} jobs wait" in text.text
    sys.stdout.write(f"ask took {asking:.1f} s; {shown['planned_jobs']} jobs planned\n")
