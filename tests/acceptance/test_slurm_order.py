"""Mode `order` on a real Slurm: the number that is set is the number that a backtest plays."""

import getpass
import subprocess
import time
from math import ceil

import pytest
from private_slurm import reason_to_skip
from running_service import WALLTIMED, eventually
from slurm_site import CLUSTER, SlurmSite
from workloads import workload_of

from predictors.response_ratio import LONGEST, OFFSET, response_ratio, steps_of_ratio
from simulator.engine.state import whole_seconds
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import initial_state, run
from simulator.scheduling.slurm_rules import MULTIFACTOR, SlurmRules

pytestmark = [
    pytest.mark.lengthy(60),
    pytest.mark.acceptance,
    pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or ""),
]
AGE_WEIGHT = 604_800
BY_AGE = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": str(AGE_WEIGHT),
    "PriorityCalcPeriod": "1",
}
REQUEST = 30_000
JOB = {"user": getpass.getuser(), "cluster": CLUSTER, "queue": "long", "requested_processors": 1}
JOB |= {"requested_walltime": REQUEST}


@pytest.fixture
def busy():
    """A site whose processors are all taken, so that jobs wait."""
    with SlurmSite(mode="order", pause_seconds=1, slurm_settings=BY_AGE) as site:
        blocker = site.slurm.sbatch("-t", "60", "-N2", "-n16", script="sleep 1000")
        eventually(lambda: site.slurm.job(blocker)["JobState"] == "RUNNING", seconds=30)
        yield site


def learn(site, runtime, *, ago):
    """Let five jobs of the user, which max-usage looks at, have run for so long."""
    end = time.time() - ago
    runs = [
        {**JOB, "job_id": f"{runtime}-{step}", "runtime": runtime, "end_time": end + step}
        for step in range(5)
    ]
    site.client.post("/v1/completions", json={"completions": runs}).raise_for_status()


def predicted(site):
    return site.client.post("/v1/predictions", json=JOB).json()["predicted_walltime"]


def submitted(site):
    """A job that waits, once the filter has asked about it."""
    job = site.slurm.sbatch("-p", "long", "-N2", "-n16", "-t", str(REQUEST // 60))
    return job if "wtp=" in site.slurm.job(job).get("AdminComment", "") else None


def factor_of(site, job):
    return int(site.slurm.run("sprio", "-h", "-j", str(job), "-o", "%S").strip() or 0)


def played_factor(prediction):
    """What the twin of Slurm adds to the priority of a job with this prediction."""
    rules = SlurmRules(priority_type=MULTIFACTOR, priority_weight_age=AGE_WEIGHT)
    workload = workload_of([(0, 1, 10, REQUEST)], 1)
    state = initial_state(workload, Semantics.adjusted("aged-order", policy="slurm", slurm=rules))
    state.jobs["estimate"] = whole_seconds(prediction)
    run(state)
    return int(state.jobs["fixed_score"][0])


def update(site, *options):
    done = subprocess.run(
        [WALLTIMED, "slurm-updater", "--url", f"http://127.0.0.1:{site.port}", *options],
        env=site.slurm.environment, capture_output=True, text=True, check=False, timeout=60,
        cwd=site.directory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_filter_updater_and_backtest_have_one_number_and_there_is_a_way_back(busy):
    factors = {}
    for ago, runtime in ((500, 30), (400, 2000), (300, 10_000), (200, REQUEST)):
        learn(busy, runtime, ago=ago)
        job = eventually(lambda: submitted(busy), seconds=30)
        factors[job] = factor_of(busy, job)
        assert factors[job] == played_factor(predicted(busy))
    shortest, *_, longest = factors
    assert factors[shortest] == 86_400 - 4 * 60
    assert factors[longest] == 0
    priorities = [int(busy.slurm.job(job)["Priority"]) for job in factors]
    assert priorities == sorted(priorities, reverse=True)

    learn(busy, 5000, ago=100)
    assert "4 updated, 0 refused" in update(busy, "--mode", "off", "--order", "sjf-aging", "--once")
    assert {factor_of(busy, job) for job in factors} == {played_factor(predicted(busy))}
    by_ratio = ("--mode", "off", "--order", "response-ratio", "--first-after", "90", "--once")
    assert "4 updated, 0 refused" in update(busy, *by_ratio)
    lowest, step = OFFSET / LONGEST, AGE_WEIGHT
    steps = [
        steps_of_ratio(response_ratio(wait, 60 * ceil(predicted(busy) / 60)), lowest)
        for wait in (0, 600)
    ]
    for job in factors:
        assert step * steps[0] <= factor_of(busy, job) <= step * steps[1]
    assert "4 updated, 0 refused" in update(busy, "--reset")
    assert {factor_of(busy, job) for job in factors} == {0}
