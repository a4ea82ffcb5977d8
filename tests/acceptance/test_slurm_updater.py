"""The updater on a real Slurm: nothing is called inside slurmctld, and jobs go in order."""

import signal
import subprocess
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from private_slurm import reason_to_skip
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite

pytestmark = [
    pytest.mark.lengthy(60),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
HOUR = timedelta(hours=1)
WHOLE_MACHINE = ("-N2", "-n16")


@pytest.fixture(scope="module")
def site():
    """A site whose filter does nothing, whose priorities are site factors, and that hides names."""
    settings = {"PriorityType": "priority/multifactor", "PriorityCalcPeriod": "1"}
    with SlurmSite(mode="off", slurm_settings=settings, hides_names=True) as site:
        yield site


@pytest.fixture
def busy(site):
    """The site with its service running and a job on all processors."""
    site.revive_service()
    blocker = site.slurm.sbatch("-t", "5", *WHOLE_MACHINE, "-J", "blocker", script="sleep 100")
    eventually(lambda: site.slurm.job(blocker)["JobState"] == "RUNNING", seconds=30)
    yield site
    site.slurm.run("scancel", "--user=" + site.slurm.run("id", "-un").strip())
    eventually(lambda: not site.slurm.run("squeue", "-h"), seconds=30)


def command(site, *options):
    url = f"http://127.0.0.1:{site.port}"
    return [WALLTIMED, "slurm-updater", "--url", url, "--timeout", "5", *options]


def update(site, *options):
    return subprocess.run(
        command(site, "--once", *options), env=site.slurm.environment, capture_output=True,
        text=True, check=False, timeout=60, cwd=site.directory,
    )  # fmt: skip


def comment(site, target):
    return site.slurm.job(target).get("AdminComment", "")


def ours(site, job):
    """What the updater may change."""
    shown = site.slurm.job(job)
    return [shown.get(name) for name in ("TimeLimit", "TimeMin", "Priority", "AdminComment")]


def submit(site, *arguments):
    return site.slurm.sbatch(*WHOLE_MACHINE, *arguments)


def use_up_a_request(site):
    """Complete a job that needs all of its request, so that max-usage predicts requests.

    Tests before may have ended a job in its first second: all later ones would be predicted short.
    """
    now = datetime.now(UTC)
    job = {"job_id": "used-up", "cluster": CLUSTER, "user": site.slurm.run("id", "-un").strip()}
    times = {"submit_time": now - HOUR, "start_time": now - HOUR, "end_time": now}
    job |= {name: instant.isoformat() for name, instant in times.items()}
    job |= {"runtime": HOUR.total_seconds(), "requested_walltime": HOUR.total_seconds()}
    site.client.post("/v1/completions", json={"completions": [job]}).raise_for_status()


def test_waiting_jobs_get_predictions_and_their_turn(busy):
    slurm = busy.slurm
    use_up_a_request(busy)
    long = submit(busy, "-p", "long", "-t", "5000", "-J", "lengthy")
    short = submit(busy, "-t", "5", "-J", 'a|b, "c" ü')
    array = submit(busy, "-t", "20", "--array=1-9:4%1", "-J", "sweep")
    het = int(
        slurm.run(
            "sbatch", "--parsable", "-o", "/dev/null", "-t", "9", "-n8", ":", "-n2", "--wrap",
            "true",
        ).split(";")[0]
    )  # fmt: skip
    held = submit(busy, "-t", "5", "-H")
    slurm.run("scontrol", "update", f"JobId={long}", "AdminComment=the site's own; x=1")

    dry = update(busy, "--dry-run", "--mode", "soft", "--order", "shortest-first")
    assert dry.returncode == 0, dry.stderr
    assert "5 would be changed" in dry.stdout
    assert "wtp=" not in comment(busy, short)

    done = update(busy, "--mode", "soft", "--order", "shortest-first")
    assert done.returncode == 0, done.stderr
    assert "5 updated, 0 refused" in done.stdout
    assert "25.05.4" in done.stderr, "TimeMin would lower limits on this version"
    jobs = {job: slurm.job(job) for job in (long, short, array, het, het + 1)}
    assert all(job["TimeMin"] == "N/A" for job in jobs.values())
    assert int(jobs[short]["Priority"]) > int(jobs[long]["Priority"]) > 1
    shown = slurm.run("scontrol", "-o", "show", "job", str(long))
    assert "AdminComment=the site's own; x=1;wtp=" in shown
    assert all("wtp=" in comment(busy, job) for job in (short, het, het + 1))
    assert slurm.job(held)["Priority"] == "0", "a held job stays held"
    assert "wtp=" not in comment(busy, held)
    assert "0 to change" in update(busy, "--order", "shortest-first").stdout

    slurm.run("scancel", "--name=blocker")
    slurm.await_end(short, long)
    assert slurm.job(short)["StartTime"] <= slurm.job(long)["StartTime"]
    assert slurm.job(short)["StartTime"] < slurm.job(long)["EndTime"]
    busy.await_runs(short, long)
    methods = busy.client.get("/v1/methods", params={"cluster": CLUSTER}).json()["methods"]
    assert all(method["score"]["jobs"] >= 2 for method in methods), "predictions are scored"
    stored = b"".join(file.read_bytes() for file in busy.directory.glob("history.sqlite3*"))
    assert b"short" in stored, "the partition"
    assert not [name for name in (b"lengthy", b"sweep", b"a|b") if name in stored]


def test_slurm_leaves_the_time_min_of_a_running_job_and_says_nothing(busy):
    slurm = busy.slurm
    (running,) = slurm.run("squeue", "-h", "-t", "R", "-o", "%A").split()
    waiting = submit(busy, "-t", "5")
    for job in (running, waiting):
        slurm.run("scontrol", "update", f"JobId={job}", "TimeMin=3", "AdminComment=x")
    assert slurm.job(waiting)["TimeMin"] == "00:03:00"
    assert slurm.job(running)["TimeMin"] == "N/A", "as tests/support/slurm_stand_in.py does"
    assert comment(busy, running) == "x"


def test_priorities_by_accuracy_reach_slurm(busy):
    job = submit(busy, "-t", "5")
    # Nobody has a history in this one: everybody is in the default group.
    options = ("--mode", "off", "--order", "psp", "--cluster", "new")
    assert update(busy, *options).returncode == 0
    assert int(busy.slurm.job(job)["Priority"]) > 1
    assert comment(busy, job) == ""


def test_a_dead_or_hung_service_changes_nothing_and_following_outlives_it(busy):
    waiting = submit(busy, "-t", "5")
    before = ours(busy, waiting)
    busy.process.send_signal(signal.SIGSTOP)
    hung = update(busy, "--timeout", "0.5")
    assert hung.returncode == 4
    busy.end_service(signal.SIGKILL)
    with following(busy) as log:
        eventually(lambda: "a round failed" in log.readline(), seconds=30)
        assert ours(busy, waiting) == before
        busy.start_service()
        eventually(lambda: "wtp=" in comment(busy, waiting), seconds=30)
        later = submit(busy, "-t", "5")
        eventually(lambda: "wtp=" in comment(busy, later), seconds=30)


@contextmanager
def following(site):
    """An updater in a process of its own meanwhile; gives its log."""
    process = subprocess.Popen(
        command(site, "--interval", "1"), env=site.slurm.environment, stderr=subprocess.PIPE,
        text=True, cwd=site.directory,
    )  # fmt: skip
    try:
        yield process.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def told(site, *words):
    """What a command of users prints, asked of the site's service."""
    url = f"http://127.0.0.1:{site.port}"
    done = subprocess.run(
        [WALLTIMED, *words, "--url", url, "--cluster", CLUSTER], env=site.slurm.environment,
        capture_output=True, text=True, check=False, timeout=120, cwd=site.directory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout
    return done.stdout


def test_the_queue_is_handed_over_and_users_are_told(busy):
    first = submit(busy, "-t", "5", "-J", "patient")
    array = submit(busy, "-t", "5", "-J", "sweep", "--array=1-3")
    held = submit(busy, "-t", "5", "-H", "-J", "held")
    done = update(busy, "--mode", "observe")
    assert "not handed over" not in done.stderr
    path = f"/v1/clusters/{CLUSTER}/snapshot"
    eventually(lambda: busy.client.get(path).json().get("forecast_at"), seconds=120)
    shown = busy.client.get(path).json()
    jobs = {job["job_id"]: job for job in shown["jobs"]}
    assert sum(pool["processors"] for pool in shown["pools"]) == 16
    assert jobs[str(first)]["start_time"] > shown["taken_at"], "the blocker is still running"
    assert [jobs[f"{array}_{task}"]["state"] for task in (1, 2, 3)] == ["waiting"] * 3
    assert jobs[str(held)]["state"] == "held"
    assert "patient" in told(busy, "queue") or str(first) in told(busy, "queue")
    assert "waiting, number" in told(busy, "queue", str(first))
    assert "would start  with 0:30:00" in told(busy, "ask", "--time", "30", "--cpus", "16")
    assert "Requests and runtimes" in told(busy, "report")

    busy.slurm.run("scancel", "--name=blocker")
    eventually(lambda: busy.slurm.job(first)["JobState"] != "PENDING", seconds=60)

    def scores():
        # The job may have ended unseen: then the next snapshot after its completion counts it.
        update(busy, "--mode", "observe")
        return busy.client.get("/v1/waits", params={"cluster": CLUSTER}).json()["scores"]

    assert eventually(scores, seconds=120)[0]["jobs"] >= 1
