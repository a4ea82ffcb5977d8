"""The whole loop on a real Slurm: nobody is held up, nothing that was acknowledged is lost."""

import getpass
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_service import GARBAGE, FakeService, prediction
from patience import BUSY_SECONDS
from private_slurm import reason_to_skip
from running_service import eventually
from slurm_site import CLUSTER, SlurmSite

from predictors.jobs import Status

pytestmark = [
    pytest.mark.lengthy(60),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
RESENT_AFTER = 75  # Slurm sends again every 30 s
CONFIGURED = ("walltimed_config", "job_submit")
TIMED_OUT_AFTER = 150  # limits are minutes, and looked at every 30 s


@pytest.fixture(scope="module")
def site():
    """One site for all tests, and at once the job that shall run into its limit."""
    config = {"mode": "default-limit", "slurm_version": "22.05.8", "pause_seconds": 1}
    with SlurmSite(**config) as site:
        site.timed_out = site.slurm.sbatch("-J", "timeout", "-t", "1", script="sleep 200")
        yield site


@pytest.fixture
def well(site):
    """The site with its service running, and past any pause."""
    site.revive_service()
    eventually(lambda: "wtp=" in submitted(site).get("AdminComment", ""), seconds=30)
    return site


def submitted(site, *arguments, script="true"):
    return site.slurm.job(site.slurm.sbatch("-t", "5", *arguments, script=script))


def test_the_next_prediction_has_learned_from_the_last_run(well):
    name = "learner"
    first = well.slurm.sbatch("-J", name, "-t", "5", script="sleep 2")
    assert well.slurm.job(first)["AdminComment"].startswith("wtp=")
    (run,) = well.await_runs(first)[str(first)]
    assert run.status is Status.COMPLETED
    assert (run.submission.application, run.submission.user) == (name, getpass.getuser())
    assert run.submission.requested_walltime == 300
    job = {"user": getpass.getuser(), "cluster": CLUSTER, "requested_walltime": 300}
    eventually(
        lambda: well.client.post("/v1/predictions", json=job).json()["basis"]["reason"] == "history"
    )
    eventually(
        lambda: all(
            method["score"] and method["score"]["jobs"] >= 1
            for method in well.client.get("/v1/methods", params={"cluster": CLUSTER}).json()[
                "methods"
            ]
        )
    )


def test_the_users_limit_stays_and_no_soft_limit_is_set_on_an_old_slurm(well):
    job = submitted(well)
    assert job["TimeLimit"] == "00:05:00"
    assert job["TimeMin"] == "N/A"


def test_sbatch_tells_its_user_how_long_such_jobs_ran(well):
    # Five runs after the one that takes all of its time: max-usage looks at the last five.
    (run,) = well.await_runs(well.timed_out, seconds=TIMED_OUT_AFTER)[str(well.timed_out)]
    assert run.status is Status.TIMEOUT
    assert run.runtime >= run.submission.requested_walltime == 60
    tasks = well.slurm.sbatch("-t", "5", "--array=1-5", "-J", "short")
    well.slurm.await_end(tasks)
    eventually(lambda: _named(well, "short") == 5, seconds=RESENT_AFTER)
    asked = {"user": getpass.getuser(), "cluster": CLUSTER, "requested_walltime": 1800}
    eventually(lambda: predicted(well, asked) < 1800)
    script = ("--wrap", "true", "-o", "/dev/null", "-t", "30", "--comment", "first run")
    told = well.slurm.told("sbatch", *script)
    assert told.count("walltimed: ") == 2, "one of each plug-in"
    assert re.search(r"planned \S+ (s|min) of the 30 min requested", told), (
        "of the filter, which shortens limits"
    )
    assert re.search(r"predicted \S+ (s|min), requested 30 min", told), (
        "of the filter of sbatch, which advises"
    )
    silenced = well.slurm.told("sbatch", *script[:-1], "walltimed=off")
    assert "walltimed" not in silenced


def predicted(site, job):
    return site.client.post("/v1/predictions", json=job).json()["predicted_walltime"]


def test_a_job_without_a_limit_gets_one_with_a_margin_and_no_other_job_does(well):
    well.end_service(signal.SIGTERM)
    with FakeService(prediction(predicted_walltime=60), port=well.port).serving():
        eventually(lambda: "wtp=" in submitted(well).get("AdminComment", ""), seconds=30)
        job = well.slurm.job
        without = job(well.slurm.sbatch("-p", "long"))
        short_of_time = job(well.slurm.sbatch("-p", "short"))
        given = job(well.slurm.sbatch("-p", "long", "-t", "50"))
        endless = job(well.slurm.sbatch("-p", "long", "-t", "UNLIMITED"))
    assert without["TimeLimit"] == "00:46:00", "1801 s and a half more, instead of an hour"
    assert short_of_time["TimeLimit"] == "00:10:00", "the partition's"
    assert given["TimeLimit"] == "00:50:00"
    assert endless["TimeLimit"] == "UNLIMITED"
    assert {each["TimeMin"] for each in (without, short_of_time, given, endless)} == {"N/A"}


@pytest.fixture
def sure(well):
    """The site with a service that knows how sure it is."""
    well.end_service(signal.SIGTERM)
    well.environment["WALLTIMED_METHOD"] = "least-cost"
    well.revive_service()
    yield well
    del well.environment["WALLTIMED_METHOD"]
    well.end_service(signal.SIGTERM)


def test_a_default_limit_comes_from_the_interval_as_soon_as_there_is_history_enough(sure):
    eventually(lambda: "wtp=" in submitted(sure).get("AdminComment", ""), seconds=30)
    young = sure.slurm.job(sure.slurm.sbatch("-p", "long", "-J", "limited"))
    assert young["TimeLimit"] == "01:00:00", "the partition's: too little is known"
    now = time.time()
    known = {
        "user": getpass.getuser(),
        "cluster": CLUSTER,
        "application": "limited",
        "queue": "long",
        "requested_walltime": 3600,
        "requested_processors": 1,
    }
    runs = [
        {**known, "job_id": f"past-{place}", "runtime": 300 + place % 10 * 60, "end_time": end}
        for place, end in enumerate(now - 1000.0 * step for step in range(300, 0, -1))
    ]
    sure.client.post("/v1/completions", json={"completions": runs}).raise_for_status()

    def answered():
        return sure.client.post("/v1/predictions", json=known).json()

    # Runs that are older than others are scored in slices.
    eventually(lambda: answered()["basis"]["reason"] == "history", seconds=30)
    answer = answered()
    upper = answer["interval"]["upper"]
    assert answer["interval"]["coverage"] == 0.9
    assert 600 < upper < 1200
    limited = sure.slurm.sbatch("-p", "long", "-J", "limited")
    hours, minutes, _ = map(int, sure.slurm.job(limited)["TimeLimit"].split(":"))
    assert abs(60 * hours + minutes - 1.5 * upper / 60) <= 2, "the upper end and a half more"
    told = sure.slurm.told(
        "sbatch", "--wrap", "true", "-o", "/dev/null", "-t", "60", "-J", "limited", "-p", "long"
    )
    # The jobs of this test lasted a second each: once they have ended the lower end may be 0 s.
    assert re.search(r"range \d+ (s|min) to \d+ min \(90%\)", told), told
    (run,) = sure.await_runs(limited, seconds=RESENT_AFTER)[str(limited)]
    assert run.status is Status.COMPLETED


def test_a_broken_configuration_rejects_nobody(well):
    config, filter_ = (well.slurm.conf.parent / f"{name}.lua" for name in CONFIGURED)
    good = config.read_text()
    try:
        for broken in ("return {", "error('no')", "return 7", 'return {mode = "sideways"}'):
            config.write_text(broken)
            _newer(filter_)
            assert "AdminComment" not in submitted(well)
    finally:
        config.write_text(good)
        _newer(filter_)
    assert "walltimed is off" in well.slurm.log()
    eventually(lambda: "wtp=" in submitted(well).get("AdminComment", ""), seconds=30)


def _newer(script: Path) -> None:
    """Move the script's time of change on by a second: Slurm reads it again by whole seconds."""
    os.utime(script, ns=(0, script.stat().st_mtime_ns + 10**9))


def test_arrays_het_jobs_requeues_and_strange_names_come_back_as_runs(well):
    slurm = well.slurm
    array = slurm.sbatch("-t", "5", "--array=1-3", "-J", "sweep")
    het = int(
        slurm.run(
            "sbatch",
            "--parsable",
            "-o",
            "/dev/null",
            "-t",
            "5",
            "-n1",
            ":",
            "-n2",
            "--wrap",
            "true",
        ).split(";")[0]
    )
    named = slurm.sbatch("-t", "5", "-J", 'a|b, "c" ü')
    requeued = slurm.sbatch("-t", "5", "-J", "requeued", script="sleep 30")
    eventually(lambda: slurm.job(requeued)["JobState"] == "RUNNING")
    slurm.run("scontrol", "requeue", str(requeued))
    slurm.run("scancel", str(slurm.sbatch("-t", "5", "-H", "-J", "never")))
    found = well.await_runs(array, het, het + 1, named, requeued, seconds=RESENT_AFTER)
    assert found[str(named)][0].submission.application == 'a|b, "c" ü'
    assert found[str(requeued)][0].status is Status.PREEMPTED
    applications = [run.submission.application for runs in found.values() for run in runs]
    assert "never" not in applications
    eventually(lambda: _named(well, "sweep") == 3)
    slurm.run("scancel", str(requeued))


def _named(site, application):
    runs = [run for runs in site.runs().values() for run in runs]
    return sum(run.submission.application == application for run in runs)


@pytest.mark.long
def test_a_service_that_is_killed_then_replaced_by_a_liar_loses_nothing(well):
    before = well.slurm.sbatch("-t", "5", "-J", "before")
    well.await_runs(before)
    well.end_service(signal.SIGKILL)
    killed = well.submit_in_time("-t", "5", "-J", "killed")
    assert "AdminComment" not in well.slurm.job(killed)
    well.slurm.await_end(killed)
    with FakeService(GARBAGE["a server error"], hangs_up=True, port=well.port).serving():
        lied_to = well.submit_in_time("-t", "5", "-J", "lied to")
        well.slurm.await_end(lied_to)
    well.start_service()
    found = well.await_runs(before, killed, lied_to, seconds=RESENT_AFTER)
    assert [len(found[str(job)]) for job in (before, killed, lied_to)] == [1, 1, 1]


def test_while_the_service_hangs_slurm_stays_answerable(well):
    well.process.send_signal(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(well.submit_in_time, "-t", "5", "-J", "hung") for _ in range(5)]
            began = time.monotonic()
            well.slurm.run("scontrol", "update", "PartitionName=long", "MaxTime=UNLIMITED")
            others = time.monotonic() - began
            done = [job.result() for job in jobs]
    finally:
        well.process.send_signal(signal.SIGCONT)
    assert others < BUSY_SECONDS
    well.await_runs(*done, seconds=RESENT_AFTER)
